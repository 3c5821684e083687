#include "engine/base/words.h"
#include "widgets/common/qt_text.h"
#include "widgets/timeline/timeline_painter.h"

#include "widgets/common/format.h"
#include "widgets/timeline/timeline_canvas_painter.h"
#include "widgets/timeline/timeline_text.h"

#include <QtGui/QFontMetrics>
#include <QtGui/QPainterPath>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr int kLeastLegendGap = 5; ///< Pixels.
constexpr int kLeastLegendStretch = 75; ///< Percent: what is narrower is hard to read.
constexpr double kFlagPixels = 90; ///< About the width of "step 62.7 ms".

/// Draws what surrounds the lanes: headers, ruler, legend.
class FramePainter : public TimelineCanvasPainter
{
public:
    using TimelineCanvasPainter::TimelineCanvasPainter;

    void paint()
    {
        m_ticks = ticksOf(m_picture.axis, m_canvas.width());
        paintHeaders();
        paintRuler();
        paintLegend();
    }

private:
    void paintHeaders()
    {
        const QRect column(0, m_canvas.top(), m_picture.metrics.header, m_canvas.height());
        m_painter.save();
        const QRect whole(0, m_canvas.top(), m_picture.size.width(), m_canvas.height());
        m_painter.setClipRect(whole.adjusted(0, m_sticky, 0, 0));
        m_painter.fillRect(column, m_palette.surface);
        eachVisible([this](const TimelineRow &row) { paintHeader(row); });
        m_painter.setClipRect(whole);
        eachSticky([this](const TimelineRow &row) {
            m_painter.fillRect(
                QRect(0, m_picture.top(row, row.y), m_picture.metrics.header, row.height), m_palette.surface);
            paintHeader(row);
        });
        m_painter.setPen(m_palette.border);
        m_painter.drawLine(column.right(), column.top(), column.right(), column.bottom());
        if (m_sticky > 0)
            m_painter.drawLine(
                0, m_canvas.top() + m_sticky - 1, m_canvas.right(), m_canvas.top() + m_sticky - 1);
        m_painter.restore();
    }

    void paintHeader(const TimelineRow &row)
    {
        if (row.kind == TimelineRow::Kind::Group)
            paintGroup(row);
        else
            paintDevice(row);
    }

    void paintGroup(const TimelineRow &row)
    {
        const QRect strip(0, m_picture.top(row, row.y), m_picture.size.width(), row.height);
        m_painter.fillRect(strip, m_palette.surfaceRaised);
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(strip.bottomLeft(), strip.bottomRight());
        QFont bold = m_picture.font;
        bold.setBold(true);
        m_painter.setFont(bold);
        m_painter.setPen(m_palette.text);
        const QString title = toQString(row.title);
        const int left = m_picture.metrics.header / 8 + 1;
        if (row.foldable)
            paintTriangle(QPointF(left - m_picture.metrics.line / 2.0, strip.center().y()), row.expanded);
        m_painter.drawText(strip.adjusted(left, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, title);
        const int width = QFontMetrics(bold).horizontalAdvance(title);
        m_painter.setFont(m_small);
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(strip.adjusted(left + 10 + width, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft,
            toQString(row.detail));
    }

    void paintDevice(const TimelineRow &row)
    {
        const DeviceLane &lane = m_scene.lanes[static_cast<std::size_t>(row.lane)];
        const auto device = static_cast<std::size_t>(lane.device.index);
        const TimelineMetrics &sizes = m_picture.metrics;
        const int y = m_picture.top(row, row.y);
        const int left = sizes.header / 8 + 1;
        const int right = sizes.header - 10;
        m_painter.fillRect(QRect(0, y + 4, 4, row.height - 8), deviceColour(m_palette, lane.device));
        QFont bold = m_picture.font;
        bold.setBold(true);
        m_painter.setFont(bold);
        m_painter.setPen(m_palette.text);
        if (row.height < 2 * sizes.line + row.padding) {
            paintLowDevice(row, device, left, right);
            return;
        }
        const QRect title(left, m_picture.top(row, row.bracketTop()) - 1, right - left, sizes.line + 1);
        if (row.foldable)
            paintTriangle(QPointF(left - sizes.line / 2.0, title.center().y() + 1), row.expanded);
        const int detail =
            QFontMetrics(m_picture.font).horizontalAdvance(toQString(row.detail)) + (row.pinned ? 18 : 4);
        const QString name =
            QFontMetrics(bold).elidedText(toQString(row.title), Qt::ElideRight, title.width() - detail);
        m_painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, name);
        m_painter.setFont(m_picture.font);
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(title.adjusted(0, 0, row.pinned ? -14 : 0, 0), Qt::AlignRight | Qt::AlignVCenter,
            toQString(row.detail));
        if (row.pinned)
            paintPin(QPointF(right - 4, title.center().y()));
        m_painter.setFont(m_small);
        // A strip of memory that is too thin for words of its own has them here, where they matter.
        const bool isThin = row.memory > 0 && !fitsLabel(row.memory);
        const bool isFull = isThin && isTooFull(row, device);
        if (isFull)
            m_painter.setPen(m_palette.error);
        m_painter.drawText(title.translated(0, sizes.line), Qt::AlignLeft | Qt::AlignVCenter,
            QFontMetrics(m_small).elidedText(isFull ? translated("too much memory") : figuresOf(row, device),
                Qt::ElideRight, title.width()));
        m_painter.setPen(m_palette.textMuted);
        paintTrackNames(row, left, right);
        if (isInConflict(row))
            paintConflict(row, y);
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(0, y + row.height - 1, sizes.header, y + row.height - 1);
        if (device >= m_scene.timeline->memory.size())
            return;
        if (row.memory == 0 || isThin)
            return;
        const Bytes peak = m_scene.timeline->memory[device].peak;
        const auto cap = static_cast<std::int64_t>(m_scene.deviceModel(row.devices.front()).memory.value);
        m_painter.setPen(peak.count > cap ? m_palette.error : m_palette.textMuted);
        const QRect memory(left, m_picture.top(row, row.memoryTop()), right - left, row.memory);
        m_painter.drawText(memory, Qt::AlignLeft | Qt::AlignTop,
            peak.count > cap ? translated("memory peak: too much") : translated("memory peak"));
        m_painter.drawText(memory.adjusted(0, QFontMetrics(m_small).height(), 0, 6),
            Qt::AlignLeft | Qt::AlignTop, toQString(formatBytes(peak) + " / " + formatBytes({cap})));
    }

    /// The name and the figures in one line; of lanes that are lower than a line as many as there is room
    /// for.
    void paintLowDevice(const TimelineRow &row, std::size_t device, int left, int right)
    {
        QFont bold = m_small;
        bold.setBold(true);
        const QFontMetrics metrics(bold);
        const int y = m_picture.top(row, row.y);
        const int line = std::max(metrics.height() - 2, row.height);
        if (isInConflict(row))
            m_painter.fillRect(QRect(0, y, m_picture.metrics.header, row.height),
                mixed(m_palette.surface, m_palette.error, 0.35));
        if (row.y / line == (row.y - row.height) / line && row.y > 0)
            return; // the lane above has taken the line
        const QRect place(left, y + (row.height - line) / 2, right - left, line);
        const QString name = toQString(row.title);
        m_painter.setFont(bold);
        m_painter.setPen(m_palette.text);
        m_painter.drawText(place, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextDontClip, name);
        m_painter.setFont(m_small);
        m_painter.setPen(isTooFull(row, device) ? m_palette.error : m_palette.textMuted);
        QString figures = isTooFull(row, device) ? translated("too much memory") : figuresOf(row, device);
        const int room = place.width() - metrics.horizontalAdvance(name) - 8;
        if (QFontMetrics(m_small).horizontalAdvance(figures)
            > room) // where it belongs, before how busy it is
            figures = figures.section(QStringLiteral(" · "), 1);
        const QString shown = QFontMetrics(m_small).elidedText(figures, Qt::ElideLeft, room);
        m_painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip, shown);
        if (row.pinned)
            paintPin(QPointF(right + 4, place.center().y() - 2));
        if (row.foldable)
            paintTriangle(QPointF(left - m_picture.metrics.line / 2.0, place.center().y() + 1), row.expanded);
    }

    bool isTooFull(const TimelineRow &row, std::size_t device) const
    {
        const auto cap = static_cast<std::int64_t>(m_scene.deviceModel(row.devices.front()).memory.value);
        return device < m_scene.timeline->memory.size() && m_scene.timeline->memory[device].peak.count > cap;
    }

    bool isInConflict(const TimelineRow &row) const
    {
        return m_picture.conflicts
            && std::any_of(row.devices.begin(), row.devices.end(),
                [this](DeviceId device) { return m_picture.conflicts->contains(device); });
    }

    /// A frame around the lane, and why, below the header's figures.
    void paintConflict(const TimelineRow &row, int y)
    {
        m_painter.setPen(QPen(m_palette.error, 2));
        m_painter.drawRect(QRect(1, y + 1, m_picture.size.width() - 3, row.height - 3));
        const QFontMetrics metrics(m_small);
        const QString text = translated("in conflict");
        const int width = metrics.horizontalAdvance(text) + 8;
        const int top = m_picture.top(row, row.bracketTop()) + 2 * m_picture.metrics.line;
        const QRect tag(m_picture.metrics.header / 8 + 1, top, width, metrics.height());
        m_painter.fillRect(tag, m_palette.error);
        m_painter.setFont(m_small);
        m_painter.setPen(m_palette.surface);
        m_painter.drawText(tag, Qt::AlignCenter, text);
    }

    /// "communication", or beside each of several tracks whose it is: "data queue".
    void paintTrackNames(const TimelineRow &row, int left, int right)
    {
        if (row.communication == 0)
            return;
        const QueueSet queues = queuesOf(row);
        const auto draw = [&](int top, int height, const QString &text) {
            m_painter.drawText(QRect(left, top - 2, right - left, height + 4),
                Qt::AlignLeft | Qt::AlignVCenter | Qt::TextDontClip, text);
        };
        const int each = row.communication / std::max(queues.count(), 1);
        if (queues.count() < 2 || !fitsLabel(each)) { // squeezed together by a ghost
            draw(m_picture.top(row, row.communicationTop()), row.communication, translated("communication"));
            return;
        }
        for (int q = 0; q < kQueueCount; ++q) {
            const auto queue = static_cast<QueueKind>(q);
            if (const auto track = trackOf(row, queue))
                draw(track->top, track->height, toQString(wordsOf(queue)));
        }
    }

    /// "Stage 0 · busy 82%", or of measured spans "error +3.1% · Stage 0 · busy 79%": what matters first,
    /// which is seen where there is room for little.
    QString figuresOf(const TimelineRow &row, std::size_t device) const
    {
        const Timeline &timeline = *m_scene.timeline;
        const double step = std::max(static_cast<double>(timeline.step.count()), 1.0);
        const double busy = device < timeline.busy.size()
            ? 100 * static_cast<double>(timeline.busy[device].count()) / step
            : 0;
        QString text = row.subtitle.empty() ? QString() : toQString(row.subtitle) + QStringLiteral(" · ");
        text += translated("busy %1%").arg(busy, 0, 'f', busy < 10 ? 1 : 0);
        if (!m_picture.outlines)
            return text;
        if (const auto error = busyErrorOf(*m_picture.outlines, m_scene, device))
            text = translated("error %1%2% · %3")
                       .arg(*error < 0 ? QStringLiteral("−") : QStringLiteral("+"))
                       .arg(std::abs(*error), 0, 'f', 1)
                       .arg(text);
        return text;
    }

    void paintPin(QPointF centre)
    {
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.setPen(QPen(m_palette.accent, 1.5));
        m_painter.setBrush(m_palette.accent);
        m_painter.drawEllipse(centre + QPointF(0, -3), 3, 3);
        m_painter.drawLine(centre, centre + QPointF(0, 6));
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setRenderHint(QPainter::Antialiasing, false);
    }

    void paintTriangle(QPointF centre, bool open)
    {
        QPainterPath path;
        if (open) {
            path.moveTo(centre + QPointF(-4, -2.5));
            path.lineTo(centre + QPointF(4, -2.5));
            path.lineTo(centre + QPointF(0, 3.5));
        } else {
            path.moveTo(centre + QPointF(-2.5, -4));
            path.lineTo(centre + QPointF(3.5, 0));
            path.lineTo(centre + QPointF(-2.5, 4));
        }
        path.closeSubpath();
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.fillPath(path, m_palette.textMuted);
        m_painter.setRenderHint(QPainter::Antialiasing, false);
    }

    void paintRuler()
    {
        const QRect strip(0, 0, m_picture.size.width(), m_picture.metrics.ruler);
        m_painter.fillRect(strip, m_palette.surfaceRaised);
        m_painter.setFont(m_small);
        m_painter.save();
        m_painter.setClipRect(strip.adjusted(m_picture.metrics.header, 0, 0, 0));
        const double flagRight = x(static_cast<double>(m_scene.timeline->step.count()));
        const double flagLeft = flagRight - kFlagPixels;
        const QFontMetrics metrics(m_small);
        for (const TimeTick &tick : m_ticks.ticks) {
            const int at = static_cast<int>(std::lround(x(tick.nanoseconds)));
            m_painter.setPen(m_palette.border);
            m_painter.drawLine(at, strip.bottom() - (tick.label.empty() ? 3 : 7), at, strip.bottom());
            if (tick.label.empty() || (at + 4 < flagRight && at + 60 > flagLeft))
                continue; // the flag would cover it
            const QString label = toQString(tick.label + " " + m_ticks.unit);
            if (at + 4 + metrics.horizontalAdvance(label) > strip.right())
                continue; // half a number is worse than none
            m_painter.setPen(m_palette.text);
            m_painter.drawText(
                QRect(at + 4, 1, 120, strip.height() - 4), Qt::AlignLeft | Qt::AlignVCenter, label);
        }
        paintStepFlag();
        if (m_picture.marked >= 0)
            paintMark();
        if (m_picture.pointer >= 0)
            paintPointer();
        m_painter.restore();
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(strip.adjusted(10, 0, 0, -2), Qt::AlignVCenter | Qt::AlignLeft,
            m_picture.filter.isEmpty() ? translated("Device")
                                       : translated("Only \"%1\"").arg(m_picture.filter));
        m_painter.setPen(m_palette.border);
        m_painter.drawLine(strip.bottomLeft(), strip.bottomRight());
        if (m_picture.pointer >= 0) {
            m_painter.setPen(QPen(m_palette.textMuted, 1, Qt::DotLine));
            const double at = m_canvas.left() + m_picture.pointer;
            m_painter.drawLine(QPointF(at, m_canvas.top()), QPointF(at, m_canvas.bottom()));
        }
    }

    void paintStepFlag()
    {
        const double step = static_cast<double>(m_scene.timeline->step.count());
        const double end = x(step);
        if (end < m_canvas.left() || end > m_canvas.right() + 1)
            return;
        flag(
            end, translated("step %1").arg(toQString(formatSeconds(step * 1e-9))), m_palette.textMuted, true);
    }

    /// A marked time: a line through all lanes, with its flag on the ruler.
    void paintMark()
    {
        const double at = x(m_picture.marked);
        if (at < m_canvas.left() || at > m_canvas.right())
            return;
        m_painter.setClipRect(QRect(m_canvas.left(), 0, m_canvas.width(), m_canvas.bottom() + 1));
        m_painter.fillRect(
            QRectF(at - 2, m_picture.metrics.ruler, 4, m_canvas.bottom() - m_picture.metrics.ruler),
            m_palette.surface);
        m_painter.fillRect(
            QRectF(at - 1, m_picture.metrics.ruler - 5, 2, m_canvas.bottom() - m_picture.metrics.ruler + 5),
            m_palette.text);
        flag(at, toQString(formatSeconds(m_picture.marked * 1e-9)), m_palette.text,
            at > m_canvas.right() - 90);
        m_painter.setClipRect(QRect(m_picture.metrics.header, 0,
            m_picture.size.width() - m_picture.metrics.header, m_picture.metrics.ruler));
    }

    void paintPointer()
    {
        const double time = m_picture.axis.timeAt(m_picture.pointer);
        if (time < 0)
            return;
        const double at = m_canvas.left() + m_picture.pointer;
        flag(at, toQString(formatSeconds(time * 1e-9)), m_palette.accent, at > m_canvas.right() - 90);
    }

    void paintLegend()
    {
        const int height = m_picture.metrics.legend;
        const QRect strip(0, m_picture.size.height() - height, m_picture.size.width(), height);
        m_painter.fillRect(strip, m_palette.surfaceRaised);
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(strip.topLeft(), strip.topRight());
        m_painter.setFont(m_small);
        // Where there are many, they stand closer, without headings, and in the end in narrower letters.
        const auto over = [&](const Legend &tried) {
            m_legend = tried;
            m_legend.measures = true;
            paintEntries(strip);
            m_legend.measures = false;
            return m_legend.end - strip.width();
        };
        if (const int most = over({}); most > 0) {
            const int gap = std::max(m_legend.gap - most / m_legend.entries - 1, kLeastLegendGap);
            if (over({.gap = gap}) > 0 && over({.headings = false, .gap = kLeastLegendGap}) > 0) {
                const int percent = std::max(100 * strip.width() / m_legend.end - 4, kLeastLegendStretch);
                over({.headings = false, .gap = kLeastLegendGap, .stretch = percent});
            }
        }
        paintEntries(strip);
    }

    void paintEntries(const QRect &strip)
    {
        int left = m_legend.gap - 4;
        for (const ColourWord &entry : legendOf(m_palette, m_scene, m_picture.colouring))
            swatch(strip, left, entry.colour, entry.words);
        swatch(strip, left, {}, translated("Idle"));
        if (m_picture.outlines)
            paintOutlineSwatch(strip, left);
        const auto shows = [this](int TimelineRow::*part) {
            return std::any_of(m_picture.rows->begin(), m_picture.rows->end(),
                [part](const TimelineRow &row) { return row.*part > 0; });
        };
        if (shows(&TimelineRow::communication))
            paintCommunicationLegend(strip, left);
        if (shows(&TimelineRow::memory))
            paintMemoryLegend(strip, left);
    }

    /// A heading of a group of swatches.
    void heading(const QRect &strip, int &left, const QString &title)
    {
        if (!m_legend.headings)
            return;
        left += m_legend.gap - 4;
        legendText(strip, left, title);
        left += 8;
    }

    void legendText(const QRect &strip, int &left, const QString &text)
    {
        QFont font = m_small;
        if (m_legend.stretch < 100)
            font.setStretch(m_legend.stretch);
        const int width = QFontMetrics(font).horizontalAdvance(text);
        if (!m_legend.measures) {
            m_painter.setFont(font);
            m_painter.setPen(m_palette.textMuted);
            m_painter.drawText(
                QRect(left, strip.top(), width + 4, strip.height()), Qt::AlignVCenter | Qt::AlignLeft, text);
        }
        left += width;
        m_legend.end = left;
    }

    void paintCommunicationLegend(const QRect &strip, int &left)
    {
        if (m_scene.communicationKinds.empty())
            return;
        heading(strip, left, translated("Communication:"));
        for (const InstructionKind kind : m_scene.communicationKinds)
            swatch(strip, left, communicationColour(m_palette, kind), toQString(nameOf(kind)));
    }

    void paintMemoryLegend(const QRect &strip, int left)
    {
        heading(strip, left, translated("Memory:"));
        for (int kind = 0; kind < kMemoryKindCount; ++kind) {
            if (m_scene.memoryKinds[static_cast<std::size_t>(kind)])
                swatch(strip, left, memoryColour(m_palette, static_cast<MemoryKind>(kind)),
                    toQString(nameOf(static_cast<MemoryKind>(kind))));
        }
        const bool tooMuch =
            std::any_of(m_picture.rows->begin(), m_picture.rows->end(), [this](const TimelineRow &row) {
                return row.kind == TimelineRow::Kind::Device
                    && isTooFull(row, static_cast<std::size_t>(row.lane));
            });
        if (tooMuch)
            swatch(strip, left, m_palette.error, translated("too much"));
    }

    void paintOutlineSwatch(const QRect &strip, int &left)
    {
        if (!m_legend.measures) {
            m_painter.setPen(m_palette.text);
            m_painter.setBrush(Qt::NoBrush);
            m_painter.drawRect(QRect(left, strip.top() + strip.height() / 2 - 4, 9, 9));
        }
        legendEntry(strip, left, translated("Predicted"));
    }

    void swatch(const QRect &strip, int &left, const QColor &colour, const QString &text)
    {
        const QRect box(left, strip.top() + strip.height() / 2 - 4, 10, 10);
        if (m_legend.measures) {
            // nothing is painted
        } else if (colour.isValid()) {
            m_painter.fillRect(box, colour);
        } else {
            m_painter.fillRect(box, m_palette.surface);
            m_painter.fillRect(
                box, QBrush(mixed(m_palette.surface, m_palette.textMuted, 0.5), Qt::BDiagPattern));
        }
        legendEntry(strip, left, text);
    }

    /// Beside its swatch.
    void legendEntry(const QRect &strip, int &left, const QString &text)
    {
        left += 14;
        legendText(strip, left, text);
        left += m_legend.gap;
        ++m_legend.entries;
    }

    /// The legend's entries as they follow one another.
    struct Legend {
        bool measures = false; ///< Instead of painting.
        bool headings = true;
        int gap = 14; ///< Between two, pixels.
        int stretch = 100; ///< Of the letters, percent.
        int entries = 1;
        int end = 0; ///< Of the last text.
    };

    Legend m_legend{};
    TimeTicks m_ticks;
};

} // namespace

void paintFrame(QPainter &painter, const Palette &palette, const TimelinePicture &picture)
{
    FramePainter(painter, palette, picture).paint();
}

} // namespace planloom
