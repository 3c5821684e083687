#include "widgets/timeline/timeline_overlay_painter.h"

#include "engine/base/words.h"
#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"
#include "widgets/timeline/timeline_canvas_painter.h"

#include <QtGui/QFontMetrics>
#include <QtGui/QPainterPath>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

class OverlayPainter : public TimelineCanvasPainter
{
    /// The middle of a span's sub-lane or track; nothing if its lane is not shown.
    std::optional<double> heightOf(std::size_t span) const
    {
        const SpanColumns &spans = m_scene.timeline->spans;
        const auto device = static_cast<std::size_t>(spans.device[span]);
        if (device >= m_picture.rowOfDevice->size() || (*m_picture.rowOfDevice)[device] < 0)
            return {};
        const TimelineRow &row =
            (*m_picture.rows)[static_cast<std::size_t>((*m_picture.rowOfDevice)[device])];
        if (const auto place = placeOf(row, spans.queue[span]))
            return place->top + place->height / 2.0;
        return m_picture.top(row, row.operatorsTop()) + row.operators;
    }

    void arrow(std::size_t from, std::size_t to, bool dashed)
    {
        const SpanColumns &spans = m_scene.timeline->spans;
        const auto fromY = heightOf(from);
        const auto toY = heightOf(to);
        if (!fromY || !toY)
            return;
        const QPointF start(x(static_cast<double>(spans.start[from] + spans.duration[from])), *fromY);
        const QPointF end(x(static_cast<double>(spans.start[to])), *toY);
        const double bend = std::max(std::abs(end.x() - start.x()) / 2, 14.0);
        QPainterPath path(start);
        path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end);
        // A light rim, so that it is seen on spans of any colour.
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(QPen(m_palette.surface, 4));
        m_painter.drawPath(path);
        m_painter.setPen(QPen(m_palette.text, 1.5, dashed ? Qt::DashLine : Qt::SolidLine));
        m_painter.drawPath(path);
        QPainterPath head(end);
        head.lineTo(end + QPointF(-7, -4));
        head.lineTo(end + QPointF(-7, 4));
        head.closeSubpath();
        m_painter.fillPath(head, m_palette.text);
    }

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

    /// Outlines the span under the pointer, if it is wide enough to be drawn alone.
    void hovered(std::size_t span)
    {
        const SpanColumns &spans = m_scene.timeline->spans;
        const double start = static_cast<double>(spans.start[span]);
        const double end = start + static_cast<double>(spans.duration[span]);
        const auto device = static_cast<std::size_t>(spans.device[span]);
        if (!m_picture.rowOfDevice || (end - start) / m_picture.axis.nanosecondsPerPixel < kFoldPixels
            || device >= m_picture.rowOfDevice->size() || (*m_picture.rowOfDevice)[device] < 0)
            return;
        const TimelineRow &row =
            (*m_picture.rows)[static_cast<std::size_t>((*m_picture.rowOfDevice)[device])];
        const auto place = placeOf(row, spans.queue[span]);
        if (!place)
            return;
        m_painter.save();
        m_painter.setClipRect(row.pinned && m_sticky > 0 ? m_canvas : scrolledArea());
        const double width = (end - start) / m_picture.axis.nanosecondsPerPixel;
        outline(separated(boxOfTimes(start, end, place->top, place->height), width), m_palette.hover);
        m_painter.restore();
    }

    void laneEdge(std::int32_t index)
    {
        const TimelineRow &row = (*m_picture.rows)[static_cast<std::size_t>(index)];
        m_painter.save();
        m_painter.setClipRect(QRect(0, m_canvas.top(), m_picture.size.width(), m_canvas.height()));
        const int y = m_picture.top(row, row.y + row.height);
        const int middle = m_picture.metrics.header / 2;
        m_painter.fillRect(QRect(0, y - 3, m_picture.metrics.header, 3), m_palette.accent);
        QPainterPath arrow(QPointF(middle - 6, y));
        arrow.lineTo(middle + 6, y);
        arrow.lineTo(middle, y + 6);
        arrow.closeSubpath();
        m_painter.fillPath(arrow, m_palette.accent);
        m_painter.restore();
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
        const QString text = toQString(formatSeconds((std::max(begin, end) - std::min(begin, end)) * 1e-9));
        const QFontMetrics metrics(m_picture.font);
        const int width = metrics.horizontalAdvance(text) + 12;
        const double centre =
            std::clamp((left + right) / 2, m_canvas.left() + width / 2.0, m_canvas.right() - width / 2.0);
        const QRectF plate(
            centre - width / 2.0, middle - metrics.height() / 2.0 - 3, width, metrics.height() + 6);
        m_painter.fillRect(plate, m_palette.accent);
        m_painter.setPen(readableOn(m_palette.accent));
        m_painter.drawText(plate, Qt::AlignCenter, text);
        m_painter.restore();
    }

    void phases(const SteadyState *steady)
    {
        const QRect strip(0, m_picture.metrics.ruler, m_picture.size.width(), m_picture.phases);
        m_painter.fillRect(strip, m_palette.surface);
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(strip.bottomLeft(), strip.bottomRight());
        m_painter.setFont(m_small);
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(strip.adjusted(10, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft,
            m_picture.unitPinned ? translated("Phases, unit pinned") : translated("Phases"));
        if (!steady)
            return;
        m_painter.save();
        m_painter.setClipRect(strip.adjusted(m_picture.metrics.header, 0, 0, 0));
        phase(
            0, steady->steadyBegin, translated("warm-up"), mixed(m_palette.surface, m_palette.accent, 0.22));
        const bool repeats = steady->repeats > 1 && steady->period > 0;
        phase(steady->steadyBegin, steady->steadyEnd, repeats ? QString() : translated("steady"),
            mixed(m_palette.surface, m_palette.success, 0.30));
        phase(steady->steadyEnd, steady->end, translated("cool-down"),
            mixed(m_palette.surface, m_palette.warning, 0.26));
        if (repeats)
            unit(*steady, strip);
        m_painter.restore();
    }

    void phase(std::int64_t begin, std::int64_t end, const QString &name, const QColor &colour)
    {
        if (end <= begin)
            return;
        const QRectF rect = boxOfTimes(static_cast<double>(begin), static_cast<double>(end),
            m_picture.metrics.ruler, m_picture.phases - 1);
        m_painter.fillRect(rect.adjusted(0, 0, -1, 0), colour);
        // In the part of it that is in sight.
        const QRectF inSight = rect & QRectF(m_canvas.left(), rect.top(), m_canvas.width(), rect.height());
        if (name.isEmpty() || QFontMetrics(m_small).horizontalAdvance(name) + 8 > inSight.width())
            return;
        m_painter.setPen(m_palette.text);
        m_painter.drawText(inSight.adjusted(6, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, name);
    }

    /// A bracket over the first unit that repeats in whole: "steady: 1.20 ms ×6", unless there is no room to
    /// say so.
    void unit(const SteadyState &steady, const QRect &strip)
    {
        const double begin = static_cast<double>(steady.periodBegin);
        const double left = x(begin);
        const double right = x(begin + static_cast<double>(steady.period));
        QString text =
            translated("steady: %1 ×%2").arg(toQString(formatNanoseconds(steady.period))).arg(steady.repeats);
        if (steady.microBatchesPerPeriod > 1)
            text += translated(" (%1 micro-batches)").arg(steady.microBatchesPerPeriod);
        const int y = strip.top() + 2;
        m_painter.setPen(m_picture.unitPinned ? QPen(m_palette.accent, 3) : QPen(m_palette.text, 1.5));
        m_painter.drawLine(QPointF(left, y), QPointF(right, y));
        m_painter.drawLine(QPointF(left, y), QPointF(left, strip.bottom() - 2));
        m_painter.drawLine(QPointF(right, y), QPointF(right, strip.bottom() - 2));
        m_painter.setPen(m_palette.text);
        // In it, behind it or before it, where there is room among what repeats.
        const double width = QFontMetrics(m_small).horizontalAdvance(text) + 8;
        const double first = std::max(x(static_cast<double>(steady.steadyBegin)), double(m_canvas.left()));
        const double last = std::min(x(static_cast<double>(steady.steadyEnd)), double(m_canvas.right()));
        QRectF place(left, y, right - left, strip.height() - 3);
        if (width > place.width()) {
            if (right + width <= last)
                place.moveLeft(right);
            else if (left - width >= first)
                place.moveLeft(left - width);
            else
                return;
            place.setWidth(width);
        }
        m_painter.drawText(place, Qt::AlignCenter, text);
    }

    void criticalPath(const TimelineAnalysis &analysis)
    {
        if (!m_picture.rowOfDevice)
            return;
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        const SpanColumns &spans = m_scene.timeline->spans;
        const LaneRows inSight =
            analysis.pathIn(m_picture.axis.timeAt(0), m_picture.axis.timeAt(m_canvas.width()));
        const QColor colour = m_palette.error;
        double before = -1e9;
        double beforeY = 0;
        bool connected = false;
        for (std::size_t i = inSight.begin; i < inSight.end; ++i) {
            const auto span = static_cast<std::size_t>(analysis.path.span[i]);
            const double x0 = x(static_cast<double>(spans.start[span]));
            const double x1 = x(static_cast<double>(spans.start[span] + spans.duration[span]));
            const auto y = heightOf(span);
            if (!y) {
                connected = false;
                continue;
            }
            // One mark a pixel: a path of many thousand spans costs no more than the screen is wide.
            if (connected && x1 < before + 0.5 && *y == beforeY)
                continue;
            m_painter.setPen(QPen(colour, 1.5));
            if (connected && *y != beforeY)
                m_painter.drawLine(QPointF(x0, beforeY), QPointF(x0, *y));
            m_painter.fillRect(QRectF(x0, *y - 1.5, std::max(x1 - x0, 1.0), 3), colour);
            before = x1;
            beforeY = *y;
            connected = true;
        }
        m_painter.restore();
    }

    void idleChain(const IdleChain &chain)
    {
        if (!m_picture.rowOfDevice || static_cast<std::size_t>(chain.device) >= m_picture.rowOfDevice->size())
            return;
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        const QColor colour = m_palette.accent;
        if (const std::int32_t at = (*m_picture.rowOfDevice)[static_cast<std::size_t>(chain.device)];
            at >= 0) {
            const TimelineRow &row = (*m_picture.rows)[static_cast<std::size_t>(at)];
            const auto place = placeOf(row, QueueKind::Compute);
            const int top = place ? place->top : m_picture.top(row, row.computeTop());
            const int height = place ? place->height : row.blocks;
            QColor wash = colour;
            wash.setAlpha(40);
            const QRectF pause =
                boxOfTimes(static_cast<double>(chain.begin), static_cast<double>(chain.end), top, height);
            m_painter.fillRect(pause, wash);
            m_painter.setPen(QPen(colour, 1.5, Qt::DashLine));
            m_painter.drawRect(pause.adjusted(0, 0, -1, -1));
        }
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        double before = 1e9; // pixels: where the nearer link begins
        double beforeY = 0;
        bool connected = false;
        std::vector<std::pair<QPointF, std::int32_t>> numbers;
        for (const IdleChain::Link &link : chain.links) {
            const double x0 = x(static_cast<double>(link.begin));
            const double x1 = x(static_cast<double>(link.end));
            const auto y = heightOf(static_cast<std::size_t>(link.span));
            if (!y) {
                connected = false;
                continue;
            }
            // One mark a pixel, as of the critical path.
            if (connected && link.number == 0 && x0 > before - 0.5 && *y == beforeY)
                continue;
            if (connected && *y != beforeY) {
                m_painter.setPen(QPen(m_palette.surface, 4));
                m_painter.drawLine(QPointF(x1, *y), QPointF(x1, beforeY));
                m_painter.setPen(QPen(colour, 2));
                m_painter.drawLine(QPointF(x1, *y), QPointF(x1, beforeY));
            }
            m_painter.fillRect(QRectF(x0, *y - 3, std::max(x1 - x0, 1.0), 6), m_palette.surface);
            m_painter.fillRect(QRectF(x0, *y - 2, std::max(x1 - x0, 1.0), 4), colour);
            if (link.number > 0 && (numbers.empty() || numbers.back().first.x() - x1 > 22 || *y != beforeY))
                numbers.emplace_back(QPointF(x1, *y), link.number);
            before = x0;
            beforeY = *y;
            connected = true;
        }
        chainNumbers(numbers);
        m_painter.restore();
    }

    /// At the ends of links, left of where the next one begins.
    void chainNumbers(const std::vector<std::pair<QPointF, std::int32_t>> &numbers)
    {
        m_painter.setFont(m_small);
        const QFontMetrics metrics(m_small);
        for (const auto &[at, number] : numbers) {
            const QString text = QString::number(number);
            const double width = std::max(metrics.horizontalAdvance(text) + 8, metrics.height());
            QRectF plate(at.x() - width - 2, at.y() - metrics.height() / 2.0, width, metrics.height());
            m_painter.setPen(QPen(m_palette.surface, 1.5));
            m_painter.setBrush(m_palette.accent);
            m_painter.drawRoundedRect(plate, plate.height() / 2, plate.height() / 2);
            m_painter.setPen(readableOn(m_palette.accent));
            m_painter.drawText(plate, Qt::AlignCenter, text);
        }
    }

    void arrows(const TimelineAnalysis &analysis, std::size_t span)
    {
        constexpr std::size_t kMost = 48; // more would hide what they are about
        if (!m_picture.rowOfDevice)
            return;
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        const auto row = static_cast<std::int32_t>(span);
        std::size_t drawn = 0;
        for (const Dependency &need : needsOf(analysis.dependencies, row)) {
            if (need.kind != WaitKind::Order && drawn++ < kMost)
                arrow(static_cast<std::size_t>(need.span), span, false);
        }
        drawn = 0;
        for (const Dependency &next : unblocksOf(analysis.dependencies, row)) {
            if (next.kind != WaitKind::Order && next.kind != WaitKind::Peer && drawn++ < kMost)
                arrow(span, static_cast<std::size_t>(next.span), true);
        }
        m_painter.restore();
    }

    void badge(const QString &text)
    {
        m_painter.setFont(m_small);
        const QFontMetrics metrics(m_small);
        const int room = m_canvas.width() - 24;
        const QRect needed =
            metrics.boundingRect(QRect(0, 0, room, 1000), Qt::AlignCenter | Qt::TextWordWrap, text);
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

void paintPhases(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const SteadyState *steady)
{
    OverlayPainter(painter, palette, picture).phases(steady);
}

void paintCriticalPath(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
    const TimelineAnalysis &analysis)
{
    OverlayPainter(painter, palette, picture).criticalPath(analysis);
}

void paintIdleChain(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const IdleChain &chain)
{
    OverlayPainter(painter, palette, picture).idleChain(chain);
}

void paintToCome(QPainter &painter, const Palette &palette, const TimelinePicture &picture)
{
    const QRect canvas = picture.canvas();
    const double from = std::max(canvas.left() + picture.axis.xOf(picture.marked), double(canvas.left()));
    QColor veil = palette.canvas;
    veil.setAlpha(170);
    painter.fillRect(QRectF(from, canvas.top(), canvas.right() + 1 - from, canvas.height()), veil);
}

void paintArrows(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
    const TimelineAnalysis &analysis, std::size_t span)
{
    OverlayPainter(painter, palette, picture).arrows(analysis, span);
}

void paintBox(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QRect &box, bool zoom)
{
    OverlayPainter(painter, palette, picture).box(box, zoom);
}

void paintHovered(QPainter &painter, const Palette &palette, const TimelinePicture &picture, std::size_t span)
{
    OverlayPainter(painter, palette, picture).hovered(span);
}

void paintLaneEdge(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, std::int32_t row)
{
    OverlayPainter(painter, palette, picture).laneEdge(row);
}

void paintMeasure(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, double begin, double end)
{
    OverlayPainter(painter, palette, picture).measure(begin, end);
}

void paintBadge(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QString &text)
{
    OverlayPainter(painter, palette, picture).badge(text);
}

} // namespace planloom
