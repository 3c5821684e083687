#include "widgets/timeline/pixel_strip.h"

#include <QtGui/QPaintEngine>
#include <QtGui/QPainter>

#include <algorithm>
#include <utility>

namespace planloom {

PixelStrip::PixelStrip(QPainter &painter)
    : m_painter(painter)
{
    m_toPixels = painter.deviceTransform();
    m_hasPixels = painter.paintEngine() && painter.paintEngine()->type() == QPaintEngine::Raster
        && m_toPixels.type() <= QTransform::TxScale;
}

QRect PixelStrip::pixelsOf(const QRectF &rect) const
{
    const QRectF mapped = m_toPixels.mapRect(rect);
    const QPoint first(qRound(mapped.left()), qRound(mapped.top()));
    return {first, QPoint(qRound(mapped.right()) - 1, qRound(mapped.bottom()) - 1)};
}

void PixelStrip::begin(const QRect &area)
{
    finish();
    m_area = area;
    if (!m_hasPixels)
        return;
    m_pixels = pixelsOf(area);
    if (m_image.width() >= m_pixels.width() && m_image.height() >= m_pixels.height())
        return;
    m_image = QImage(m_pixels.size().expandedTo(m_image.size()), QImage::Format_ARGB32_Premultiplied);
    m_image.fill(Qt::transparent);
    m_bits = reinterpret_cast<QRgb *>(m_image.bits());
    m_stride = static_cast<std::size_t>(m_image.bytesPerLine()) / sizeof(QRgb);
}

void PixelStrip::fill(const QRectF &rect, const QColor &colour)
{
    if (!m_hasPixels) {
        const QRectF visible = rect & m_area;
        const bool goesOn = m_pending.colour == colour && m_pending.rect.right() == visible.left()
            && m_pending.rect.top() == visible.top() && m_pending.rect.height() == visible.height();
        if (!goesOn) {
            finish();
            m_pending = {visible, colour};
        }
        m_pending.rect.setRight(visible.right());
        return;
    }
    const QRect pixels = (pixelsOf(rect) & m_pixels).translated(-m_pixels.topLeft());
    if (pixels.isEmpty())
        return;
    fillPixels(pixels, qPremultiply(colour.rgba()));
    m_filled |= pixels;
}

void PixelStrip::fillPixels(const QRect &pixels, QRgb value)
{
    const auto width = static_cast<std::size_t>(pixels.width());
    QRgb *line = m_bits + static_cast<std::size_t>(pixels.top()) * m_stride + pixels.left();
    for (int y = pixels.top(); y <= pixels.bottom(); ++y, line += m_stride)
        std::fill_n(line, width, value);
}

void PixelStrip::finish()
{
    if (const Pending last = std::exchange(m_pending, {}); !last.rect.isEmpty())
        m_painter.fillRect(last.rect, last.colour);
    if (m_filled.isEmpty())
        return;
    const QRectF target = m_toPixels.inverted().mapRect(QRectF(m_filled.translated(m_pixels.topLeft())));
    m_painter.drawImage(target, m_image, m_filled);
    fillPixels(m_filled, 0);
    m_filled = {};
}

} // namespace planloom
