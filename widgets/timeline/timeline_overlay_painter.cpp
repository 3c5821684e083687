#include "widgets/timeline/timeline_overlay_painter.h"

#include "widgets/common/format.h"
#include "widgets/timeline/timeline_canvas_painter.h"

#include <QtGui/QFontMetrics>
#include <QtGui/QPainterPath>

#include <algorithm>

namespace planloom {

namespace {

class OverlayPainter : public TimelineCanvasPainter
{
public:
    using TimelineCanvasPainter::TimelineCanvasPainter;

    void box(const QRect &rect, bool zoom)
    {
        QColor wash = zoom ? m_palette.hover : m_palette.accent;
        m_painter.setPen(QPen(wash, 1, zoom ? Qt::DashLine : Qt::SolidLine));
        wash.setAlpha(36);
        m_painter.setBrush(wash);
        m_painter.drawRect((rect & m_canvas).adjusted(0, 0, -1, -1));
        m_painter.setBrush(Qt::NoBrush);
    }

    void measure(double begin, double end)
    {
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        const double left = x(std::min(begin, end));
        const double right = x(std::max(begin, end));
        const int middle = m_canvas.top() + m_canvas.height() / 3;
        QColor wash = m_palette.accent;
        wash.setAlpha(24);
        m_painter.fillRect(QRectF(left, m_canvas.top(), right - left, m_canvas.height()), wash);
        m_painter.setPen(QPen(m_palette.accent, 1));
        for (const double at : {left, right})
            m_painter.drawLine(QPointF(at, m_canvas.top()), QPointF(at, m_canvas.bottom()));
        m_painter.drawLine(QPointF(left, middle), QPointF(right, middle));
        m_painter.setFont(m_picture.font);
        const QString text = words(formatSeconds((std::max(begin, end) - std::min(begin, end)) * 1e-9));
        const QFontMetrics metrics(m_picture.font);
        const int width = metrics.horizontalAdvance(text) + 12;
        const double centre
            = std::clamp((left + right) / 2, m_canvas.left() + width / 2.0, m_canvas.right() - width / 2.0);
        const QRectF plate(centre - width / 2.0, middle - metrics.height() / 2.0 - 3, width, metrics.height() + 6);
        m_painter.fillRect(plate, m_palette.accent);
        m_painter.setPen(readableOn(m_palette.accent));
        m_painter.drawText(plate, Qt::AlignCenter, text);
        m_painter.restore();
    }

    void badge(const QString &text)
    {
        m_painter.setFont(m_small);
        const QFontMetrics metrics(m_small);
        const int room = m_canvas.width() - 24;
        const QRect needed
            = metrics.boundingRect(QRect(0, 0, room, 1000), Qt::AlignCenter | Qt::TextWordWrap, text);
        const QRectF plate(m_canvas.right() - needed.width() - 20, m_canvas.top() + 6, needed.width() + 14,
            needed.height() + 6);
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        QPainterPath path;
        path.addRoundedRect(plate, 4, 4);
        m_painter.fillPath(path, m_palette.warning);
        m_painter.setRenderHint(QPainter::Antialiasing, false);
        m_painter.setPen(readableOn(m_palette.warning));
        m_painter.drawText(plate, Qt::AlignCenter | Qt::TextWordWrap, text);
    }
};

} // namespace

void paintBox(QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QRect &box, bool zoom)
{
    OverlayPainter(painter, palette, picture).box(box, zoom);
}

void paintMeasure(QPainter &painter, const Palette &palette, const TimelinePicture &picture, double begin, double end)
{
    OverlayPainter(painter, palette, picture).measure(begin, end);
}

void paintBadge(QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QString &text)
{
    OverlayPainter(painter, palette, picture).badge(text);
}

} // namespace planloom
