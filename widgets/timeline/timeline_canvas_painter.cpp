#include "widgets/timeline/timeline_canvas_painter.h"

#include "widgets/common/qt_text.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetrics>
#include <QtGui/QPainterPath>

#include <algorithm>

namespace planloom {

namespace {

constexpr double kGapPixels = 6; ///< Spans wider than this stand apart by a hairline.
constexpr int kTextMargin = 4;
constexpr double kSmall = 0.82; ///< Size of small texts, of the font's.
constexpr double kLeastPoints = 6.5;
constexpr double kStaleShade = 0.55;
constexpr double kGhostShade = 0.74;

} // namespace

TimelineCanvasPainter::TimelineCanvasPainter(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture)
    : m_painter(painter)
    , m_palette(palette)
    , m_picture(picture)
    , m_scene(*picture.scene)
    , m_canvas(picture.canvas())
    , m_strip(painter)
    , m_sticky(picture.stickyHeight())
    , m_small(picture.font)
{
    if (picture.font.pixelSize() > 0)
        m_small.setPixelSize(std::max(static_cast<int>(picture.font.pixelSize() * kSmall), 9));
    else
        m_small.setPointSizeF(std::max(picture.font.pointSizeF() * kSmall, kLeastPoints));
}

QString TimelineCanvasPainter::translated(const char *text)
{
    return QCoreApplication::translate("planloom::TimelineView", text);
}

bool TimelineCanvasPainter::visible(const TimelineRow &row) const
{
    return m_picture.top(row, row.y + row.height) > m_canvas.top()
        && m_picture.top(row, row.y) < m_canvas.bottom();
}

QueueSet TimelineCanvasPainter::queuesOf(const TimelineRow &row) const
{
    const auto lane = static_cast<std::size_t>(row.lane);
    const TimelineScene *would = m_picture.would;
    return would && lane < would->lanes.size() ? row.queues | would->lanes[lane].queues() : row.queues;
}

std::optional<TrackPlace> TimelineCanvasPainter::trackOf(const TimelineRow &row, QueueKind queue) const
{
    return trackIn(queuesOf(row), queue, m_picture.top(row, row.communicationTop()), row.communication);
}

std::optional<TrackPlace> TimelineCanvasPainter::placeOf(const TimelineRow &row, QueueKind queue) const
{
    return queue == QueueKind::Compute ? TrackPlace{m_picture.top(row, row.operatorsTop()), row.operators}
                                       : trackOf(row, queue);
}

bool TimelineCanvasPainter::fitsLabel(int height) const
{
    return height + 1 >= QFontMetrics(m_small).ascent();
}

QRectF TimelineCanvasPainter::box(double x0, double x1, int y, int height) const
{
    const double left = std::max(x0, -2.0);
    const double right = std::min(std::max(x1, x0 + 1), m_canvas.width() + 2.0);
    return {m_canvas.left() + left, static_cast<double>(y), std::max(right - left, 1.0),
        static_cast<double>(height)};
}

QRectF TimelineCanvasPainter::boxOfTimes(double begin, double end, int y, int height) const
{
    return box(m_picture.axis.xOf(begin), m_picture.axis.xOf(end), y, height);
}

QColor TimelineCanvasPainter::faded(const QColor &colour) const
{
    if (m_picture.behindGhost)
        return mixed(colour, m_palette.surface, kGhostShade);
    return m_picture.stale ? mixed(colour, m_palette.surface, kStaleShade) : colour;
}

QRectF TimelineCanvasPainter::separated(const QRectF &rect, double width)
{
    return width > kGapPixels ? rect.adjusted(0, 0, -1, 0) : rect;
}

void TimelineCanvasPainter::label(
    const QRectF &rect, const std::string &text, const QColor &colour, double least)
{
    if (rect.width() < least)
        return;
    const QString whole = toQString(text);
    const int width = static_cast<int>(rect.width());
    // Two or three characters ("F0") may touch the edges; a cut name may not.
    const ShapedText &uncut = shaped(whole);
    const ShapedText &fits = uncut.size.width() <= width
        ? uncut
        : shaped(QFontMetrics(m_small).elidedText(whole, Qt::ElideRight, width - kTextMargin));
    if (fits.letters < 2)
        return;
    m_painter.setPen(colour);
    m_painter.drawStaticText(QPointF(std::round(rect.left() + (rect.width() - fits.size.width()) / 2),
                                 std::round(rect.top() + (rect.height() - fits.size.height()) / 2)),
        fits.text);
}

const TimelineCanvasPainter::ShapedText &TimelineCanvasPainter::shaped(const QString &text)
{
    auto [found, isNew] = m_shaped.try_emplace(text);
    if (isNew) {
        ShapedText &made = found->second;
        made.text.setTextFormat(Qt::PlainText);
        made.text.setText(text);
        made.text.prepare(m_painter.deviceTransform(), m_small);
        made.size = {QFontMetrics(m_small).horizontalAdvance(text), QFontMetrics(m_small).height()};
        made.letters = text.size();
    }
    return found->second;
}

void TimelineCanvasPainter::outline(const QRectF &rect, const QColor &colour)
{
    m_painter.setPen(QPen(colour, 2));
    m_painter.setBrush(Qt::NoBrush);
    m_painter.drawRect(rect.adjusted(1, 1, -1, -1));
    if (rect.width() < 9)
        return;
    // A light line within, so that the mark stands out on spans of nearly its own colour.
    m_painter.setPen(QPen(m_palette.surface, 1));
    m_painter.drawRect(rect.adjusted(2.5, 2.5, -3.5, -3.5));
}

void TimelineCanvasPainter::fillStretch(const DrawRecord &record, int y, int height, const QColor &colour)
{
    const QRect area(m_canvas.left(), y, m_canvas.width(), height);
    if (m_strip.area() != area)
        m_strip.begin(area);
    m_strip.fill(box(record.x0, record.x1, y, height), colour);
}

QColor TimelineCanvasPainter::readable(const QColor &background)
{
    QColor &known = m_readable[background.rgb()];
    if (!known.isValid())
        known = readableOn(background);
    return known;
}

void TimelineCanvasPainter::flag(double at, const QString &text, const QColor &fill, bool leftwards)
{
    m_painter.setFont(m_small);
    const int width = QFontMetrics(m_small).horizontalAdvance(text) + 12;
    const QRectF rect(leftwards ? at - width : at, 3, width, m_picture.metrics.ruler - 8);
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    QPainterPath path;
    path.addRoundedRect(rect, 3, 3);
    m_painter.fillPath(path, fill);
    m_painter.setRenderHint(QPainter::Antialiasing, false);
    m_painter.setPen(readable(fill));
    m_painter.drawText(rect, Qt::AlignCenter, text);
}

} // namespace planloom
