#include "widgets/timeline/timeline_painter.h"

#include "widgets/common/format.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetrics>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>
#include <QtGui/QPixmap>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kLabelPixels = 26; ///< Spans narrower than this have no label.
constexpr double kGapPixels = 6; ///< Spans wider than this stand apart by a hairline.
constexpr int kTextMargin = 4;
constexpr int kHatchTile = 64; ///< Pixels; a multiple of the pattern's 8.
constexpr double kFlagPixels = 90; ///< About the width of "step 62.7 ms".

QString words(const std::string &text)
{
    return QString::fromStdString(text);
}

QString translated(const char *text)
{
    return QCoreApplication::translate("planloom::TimelineView", text);
}

/// Draws the parts of one picture in a coordinate system of its own for each.
class TimelinePainter
{
public:
    TimelinePainter(QPainter &painter, const Palette &palette, const TimelinePicture &picture)
        : m_painter(painter), m_palette(palette), m_picture(picture), m_scene(*picture.scene),
          m_canvas(picture.canvas()), m_small(picture.font)
    {
        m_small.setPointSizeF(std::max(picture.font.pointSizeF() * 0.82, 6.5));
    }

    void paint()
    {
        m_painter.fillRect(QRect(QPoint(0, 0), m_picture.size), m_palette.canvas);
        m_ticks = ticksOf(m_picture.axis, m_canvas.width());
        makeHatch();
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        paintGrid();
        for (const TimelineRow &row : *m_picture.rows) {
            if (visible(row) && row.kind == TimelineRow::Kind::Device)
                paintLane(row);
        }
        paintEndOfStep();
        m_painter.restore();
        paintHeaders();
        paintRuler();
        paintLegend();
    }

private:
    int top(int y) const { return m_canvas.top() + y - m_picture.scroll; }

    bool visible(const TimelineRow &row) const
    {
        return top(row.y + row.height) > m_canvas.top() && top(row.y) < m_canvas.bottom();
    }

    double x(double nanoseconds) const { return m_canvas.left() + m_picture.axis.xOf(nanoseconds); }

    /// A rectangle from x0 to x1 in pixels of the canvas' own, at least one wide, cut to what is visible.
    QRectF box(double x0, double x1, int y, int height) const
    {
        const double left = std::max(x0, -2.0);
        const double right = std::min(std::max(x1, x0 + 1), m_canvas.width() + 2.0);
        return {m_canvas.left() + left, static_cast<double>(y), std::max(right - left, 1.0),
            static_cast<double>(height)};
    }

    /// Idle time as an opaque tile: copying it is several times faster than a pattern blended anew for every lane.
    void makeHatch()
    {
        const qreal ratio = m_painter.device()->devicePixelRatioF();
        m_hatch = QPixmap(static_cast<int>(kHatchTile * ratio), static_cast<int>(kHatchTile * ratio));
        m_hatch.setDevicePixelRatio(ratio);
        m_hatch.fill(m_palette.surface);
        QPainter tile(&m_hatch);
        tile.fillRect(QRect(0, 0, kHatchTile, kHatchTile),
            QBrush(mixed(m_palette.surface, m_palette.textMuted, 0.34), Qt::BDiagPattern));
    }

    void paintGrid()
    {
        m_painter.setPen(m_palette.grid);
        for (const TimeTick &tick : m_ticks.ticks) {
            if (tick.label.empty())
                continue;
            const int at = static_cast<int>(std::lround(x(tick.nanoseconds)));
            m_painter.drawLine(at, m_canvas.top(), at, m_canvas.bottom());
        }
    }

    void paintEndOfStep()
    {
        const double end = x(static_cast<double>(m_scene.timeline->step.count()));
        if (end > m_canvas.right() + 1)
            return;
        // Behind the end of the step there is nothing: not even idle time.
        m_painter.setPen(QPen(m_palette.border, 1, Qt::DashLine));
        m_painter.drawLine(QPointF(end, m_canvas.top()), QPointF(end, m_canvas.bottom()));
    }

    void paintLane(const TimelineRow &row)
    {
        const DeviceLane &lane = m_scene.lanes[static_cast<std::size_t>(row.lane)];
        const int compute = top(row.computeTop());
        const double begin = m_picture.axis.xOf(0);
        const double end = m_picture.axis.xOf(static_cast<double>(m_scene.timeline->step.count()));
        const QRectF idle
            = box(begin, end, compute, TimelineMetrics::kBlocks + row.operators);
        m_painter.drawTiledPixmap(idle, m_hatch, QPointF(std::fmod(idle.left(), kHatchTile), 0));
        m_painter.fillRect(box(begin, end, top(row.communicationTop()), TimelineMetrics::kCommunication),
            mixed(m_palette.surface, m_palette.canvas, 0.5));
        paintBlocks(lane, compute);
        paintCompute(lane, compute + TimelineMetrics::kBlocks, row.operators);
        paintCommunication(lane, top(row.communicationTop()));
        paintMemory(lane, top(row.memoryTop()), row.memory);
        paintSelected(lane, row);
        m_painter.setPen(m_palette.grid);
        const int bottom = top(row.y + row.height) - 1;
        m_painter.drawLine(m_canvas.left(), bottom, m_canvas.right(), bottom);
    }

    void paintBlocks(const DeviceLane &lane, int y)
    {
        const double first = m_picture.axis.timeAt(0);
        const double last = m_picture.axis.timeAt(m_canvas.width());
        auto block = std::partition_point(lane.blocks.begin(), lane.blocks.end(),
            [first](const TimelineBlock &b) { return static_cast<double>(b.end) <= first; });
        m_painter.setFont(m_small);
        double drawn = -1e9;
        for (; block != lane.blocks.end() && static_cast<double>(block->begin) < last; ++block) {
            const double x0 = m_picture.axis.xOf(static_cast<double>(block->begin));
            const double x1 = m_picture.axis.xOf(static_cast<double>(block->end));
            if (x1 < drawn + 0.5)
                continue; // the pixel is taken: thousands of blocks cost no more than there are pixels
            drawn = x1;
            const QColor colour = faded(blockColour(m_palette, lane, m_picture.colouring, *block));
            const QRectF rect = separated(box(x0, x1, y, TimelineMetrics::kBlocks), x1 - x0);
            m_painter.fillRect(rect, colour);
            label(rect, labelOf(*block), readableOn(colour), Qt::AlignCenter, 10);
        }
    }

    void paintCompute(const DeviceLane &lane, int y, int height)
    {
        m_records.clear();
        foldSpans(m_scene.timeline->spans, m_scene.before, lane.compute, m_picture.axis, m_canvas.width(), m_records);
        m_painter.setFont(m_small);
        const QColor idle = m_palette.surface;
        for (const DrawRecord &record : m_records) {
            const double width = record.x1 - record.x0;
            if (record.count > 1) {
                const QColor colour = faded(runColour(m_palette, m_scene, m_picture.colouring, record));
                // Paler where part of it is idle: the ink of a stretch is its busy time.
                m_painter.fillRect(box(record.x0, record.x1, y, height),
                    mixed(idle, mixed(colour, m_palette.surface, 0.18), 0.15 + 0.85 * record.busy));
                continue;
            }
            QColor colour = faded(computeColour(m_palette, m_scene, m_picture.colouring, record.row));
            colour = mixed(colour, m_palette.surface, 0.18);
            const Instruction *instruction = m_scene.findInstruction(record.row);
            const QRectF rect = separated(box(record.x0, record.x1, y, height), width);
            m_painter.fillRect(rect, colour);
            if (instruction && instruction->recompute)
                m_painter.fillRect(rect, QBrush(mixed(colour, readableOn(colour), 0.35), Qt::FDiagPattern));
            if (width >= kLabelPixels)
                label(rect, labelOf(m_scene, record.row), readableOn(colour), Qt::AlignCenter, kLabelPixels);
            if (static_cast<std::int64_t>(record.row) == m_picture.hovered)
                outline(rect, m_palette.hover);
        }
    }

    void paintCommunication(const DeviceLane &lane, int y)
    {
        m_records.clear();
        foldSpans(
            m_scene.timeline->spans, m_scene.before, lane.communication, m_picture.axis, m_canvas.width(), m_records);
        m_painter.setFont(m_small);
        const QColor idle = mixed(m_palette.surface, m_palette.canvas, 0.5);
        for (const DrawRecord &record : m_records) {
            const std::size_t middle = record.row + static_cast<std::size_t>(record.count) / 2;
            const Instruction *instruction = m_scene.findInstruction(middle);
            const QColor colour = faded(
                instruction ? communicationColour(m_palette, instruction->kind) : m_palette.neutral);
            const QRectF rect = box(record.x0, record.x1, y, TimelineMetrics::kCommunication);
            if (record.count > 1) {
                m_painter.fillRect(rect, mixed(idle, colour, 0.25 + 0.75 * record.busy));
                continue;
            }
            const QRectF single = separated(rect, record.x1 - record.x0);
            m_painter.fillRect(single, colour);
            if (record.x1 - record.x0 >= 2 * kLabelPixels) {
                label(single,
                    labelOf(m_scene, record.row) + "  " + formatBytes(bytesOf(m_scene, record.row)),
                    readableOn(colour), Qt::AlignCenter, kLabelPixels);
            }
            if (static_cast<std::int64_t>(record.row) == m_picture.hovered)
                outline(single, m_palette.hover);
        }
    }

    /// Bytes at the upper edge of a memory strip: of the largest peak, or of the device's memory once that is near.
    double memoryScale() const
    {
        const double peak = std::max(static_cast<double>(m_scene.largestPeak), 1.0) * 1.08;
        const double cap = m_scene.cluster.device.memory.value;
        return peak > 0.6 * cap ? std::max(peak, cap * 1.05) : peak;
    }

    void paintMemory(const DeviceLane &lane, int y, double height)
    {
        const auto device = static_cast<std::size_t>(lane.device.index);
        if (device >= m_scene.timeline->memory.size())
            return;
        const MemoryCurve &curve = m_scene.timeline->memory[device];
        const double scale = memoryScale();
        const double cap = m_scene.cluster.device.memory.value;
        const double step = static_cast<double>(m_scene.timeline->step.count());
        const int from = std::max(0, static_cast<int>(std::floor(m_picture.axis.xOf(0))));
        const int to = std::min(m_canvas.width(), static_cast<int>(std::ceil(m_picture.axis.xOf(step))));
        std::array<QColor, kMemoryKindCount> colours;
        for (int kind = 0; kind < kMemoryKindCount; ++kind) {
            colours[static_cast<std::size_t>(kind)]
                = mixed(m_palette.surface, faded(memoryColour(m_palette, static_cast<MemoryKind>(kind))), 0.78);
        }
        // One column a pixel, neighbours with the same content drawn as one.
        std::int64_t shown = -2;
        int begin = from;
        for (int column = from; column <= to; ++column) {
            const std::int64_t entry = column == to
                ? -3
                : lane.memory.largestIn(curve, m_picture.axis.timeAt(column), m_picture.axis.timeAt(column + 1));
            if (entry == shown)
                continue;
            if (shown >= 0) {
                double bottom = y + height;
                for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind) {
                    const double bytes
                        = static_cast<double>(curve.bytes[static_cast<std::size_t>(shown)][kind]);
                    const double part = bytes / scale * height;
                    if (part <= 0)
                        continue;
                    m_painter.fillRect(QRectF(m_canvas.left() + begin, bottom - part, column - begin, part), colours[kind]);
                    bottom -= part;
                }
                const double total = static_cast<double>(lane.memory.total(static_cast<std::size_t>(shown)));
                if (total > cap) {
                    const double over = (total - cap) / scale * height;
                    m_painter.fillRect(QRectF(m_canvas.left() + begin, y + height - total / scale * height,
                                           column - begin, over),
                        m_palette.error);
                }
            }
            shown = entry;
            begin = column;
        }
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(QPointF(m_canvas.left() + from, y + height), QPointF(m_canvas.left() + to, y + height));
        if (cap <= scale) {
            m_painter.setPen(QPen(m_palette.error, 1, Qt::DashLine));
            const double at = y + height - cap / scale * height;
            m_painter.drawLine(QPointF(m_canvas.left() + from, at), QPointF(m_canvas.left() + to, at));
        }
    }

    void paintSelected(const DeviceLane &lane, const TimelineRow &row)
    {
        if (!m_picture.selected || m_picture.selected->empty())
            return;
        const SpanColumns &spans = m_scene.timeline->spans;
        const std::vector<std::size_t> &all = *m_picture.selected;
        const double first = m_picture.axis.timeAt(0);
        const double last = m_picture.axis.timeAt(m_canvas.width());
        double drawn = -1e9;
        const auto begin = std::lower_bound(all.begin(), all.end(), lane.compute.begin);
        for (auto at = begin; at != all.end() && *at < lane.communication.end; ++at) {
            const double start = static_cast<double>(spans.start[*at]);
            const double end = start + static_cast<double>(spans.duration[*at]);
            if (*at == lane.communication.begin)
                drawn = -1e9;
            if (end < first || start > last)
                continue;
            const bool compute = *at < lane.compute.end;
            const double x0 = m_picture.axis.xOf(start);
            const double x1 = std::max(m_picture.axis.xOf(end), x0 + 2);
            if (x1 < drawn + 1)
                continue;
            drawn = x1;
            const int y = top(compute ? row.operatorsTop() : row.communicationTop());
            const int height = compute ? row.operators : TimelineMetrics::kCommunication;
            const QRectF rect = box(x0, x1, y, height);
            if (rect.width() < 5)
                m_painter.fillRect(rect.adjusted(0, -3, 0, 3), m_palette.accent);
            else
                outline(rect, m_palette.accent);
        }
    }

    void paintHeaders()
    {
        const QRect column(0, m_canvas.top(), TimelinePicture::kHeader, m_canvas.height());
        m_painter.save();
        m_painter.setClipRect(QRect(0, m_canvas.top(), m_picture.size.width(), m_canvas.height()));
        m_painter.fillRect(column, m_palette.surface);
        for (const TimelineRow &row : *m_picture.rows) {
            if (!visible(row))
                continue;
            if (row.kind == TimelineRow::Kind::Group)
                paintGroup(row);
            else
                paintDevice(row);
        }
        m_painter.setPen(m_palette.border);
        m_painter.drawLine(column.right(), column.top(), column.right(), column.bottom());
        m_painter.restore();
    }

    void paintGroup(const TimelineRow &row)
    {
        const QRect strip(0, top(row.y), m_picture.size.width(), row.height);
        m_painter.fillRect(strip, m_palette.surfaceRaised);
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(strip.bottomLeft(), strip.bottomRight());
        QFont bold = m_picture.font;
        bold.setBold(true);
        m_painter.setFont(bold);
        m_painter.setPen(m_palette.text);
        const QString title = words(row.title);
        m_painter.drawText(strip.adjusted(10, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, title);
        const int width = QFontMetrics(bold).horizontalAdvance(title);
        m_painter.setFont(m_small);
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(strip.adjusted(20 + width, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, words(row.detail));
    }

    void paintDevice(const TimelineRow &row)
    {
        const DeviceLane &lane = m_scene.lanes[static_cast<std::size_t>(row.lane)];
        const auto device = static_cast<std::size_t>(lane.device.index);
        const int y = top(row.y);
        const int left = 22;
        const int right = TimelinePicture::kHeader - 10;
        m_painter.fillRect(QRect(0, y + 4, 4, row.height - 8), deviceColour(m_palette, lane.device));
        if (row.foldable)
            paintTriangle(QPointF(13, top(row.computeTop()) + 9), row.expanded);
        QFont bold = m_picture.font;
        bold.setBold(true);
        m_painter.setFont(bold);
        m_painter.setPen(m_palette.text);
        const QRect title(left, top(row.computeTop()) - 1, right - left, 19);
        const QString name = QFontMetrics(bold).elidedText(words(row.title), Qt::ElideRight, title.width() - 34);
        m_painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, name);
        m_painter.setFont(m_picture.font);
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(title, Qt::AlignRight | Qt::AlignVCenter, words(row.detail));
        m_painter.setFont(m_small);
        const double step = std::max(static_cast<double>(m_scene.timeline->step.count()), 1.0);
        const double busy = device < m_scene.timeline->busy.size()
            ? 100 * static_cast<double>(m_scene.timeline->busy[device].count()) / step
            : 0;
        m_painter.drawText(QRect(left, top(row.computeTop()) + 18, right - left, 18), Qt::AlignLeft | Qt::AlignVCenter,
            (row.subtitle.empty() ? QString() : words(row.subtitle) + QStringLiteral(" · "))
                + translated("busy %1%").arg(busy, 0, 'f', busy < 10 ? 1 : 0));
        m_painter.drawText(
            QRect(left, top(row.communicationTop()) - 1, right - left, TimelineMetrics::kCommunication + 2),
            Qt::AlignLeft | Qt::AlignVCenter, translated("communication"));
        if (device >= m_scene.timeline->memory.size())
            return;
        const Bytes peak = m_scene.timeline->memory[device].peak;
        const auto cap = static_cast<std::int64_t>(m_scene.cluster.device.memory.value);
        if (peak.count > cap)
            m_painter.setPen(m_palette.error);
        const QRect memory(left, top(row.memoryTop()), right - left, row.memory);
        m_painter.drawText(memory, Qt::AlignLeft | Qt::AlignTop, translated("memory peak"));
        m_painter.drawText(memory.adjusted(0, 15, 0, 0), Qt::AlignLeft | Qt::AlignTop,
            words(formatBytes(peak) + " / " + formatBytes({cap})));
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(0, y + row.height - 1, TimelinePicture::kHeader, y + row.height - 1);
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
        const QRect strip(0, 0, m_picture.size.width(), TimelineMetrics::kRuler);
        m_painter.fillRect(strip, m_palette.surfaceRaised);
        m_painter.setFont(m_small);
        m_painter.save();
        m_painter.setClipRect(strip.adjusted(TimelinePicture::kHeader, 0, 0, 0));
        const double flagRight = x(static_cast<double>(m_scene.timeline->step.count()));
        const double flagLeft = flagRight - kFlagPixels;
        const QFontMetrics metrics(m_small);
        for (const TimeTick &tick : m_ticks.ticks) {
            const int at = static_cast<int>(std::lround(x(tick.nanoseconds)));
            m_painter.setPen(m_palette.border);
            m_painter.drawLine(at, strip.bottom() - (tick.label.empty() ? 3 : 7), at, strip.bottom());
            if (tick.label.empty() || (at + 4 < flagRight && at + 60 > flagLeft))
                continue; // the flag would cover it
            const QString label = words(tick.label + " " + m_ticks.unit);
            if (at + 4 + metrics.horizontalAdvance(label) > strip.right())
                continue; // half a number is worse than none
            m_painter.setPen(m_palette.text);
            m_painter.drawText(QRect(at + 4, 1, 120, strip.height() - 4), Qt::AlignLeft | Qt::AlignVCenter, label);
        }
        paintStepFlag(strip);
        if (m_picture.pointer >= 0)
            paintPointer(strip);
        m_painter.restore();
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(strip.adjusted(10, 0, 0, -2), Qt::AlignVCenter | Qt::AlignLeft, translated("Device"));
        m_painter.setPen(m_palette.border);
        m_painter.drawLine(strip.bottomLeft(), strip.bottomRight());
        if (m_picture.pointer >= 0) {
            m_painter.setPen(QPen(m_palette.textMuted, 1, Qt::DotLine));
            const double at = m_canvas.left() + m_picture.pointer;
            m_painter.drawLine(QPointF(at, m_canvas.top()), QPointF(at, m_canvas.bottom()));
        }
    }

    void flag(const QRect &strip, double at, const QString &text, const QColor &fill, bool leftwards)
    {
        const int width = QFontMetrics(m_small).horizontalAdvance(text) + 12;
        const QRectF rect(leftwards ? at - width : at, strip.top() + 3, width, strip.height() - 8);
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        QPainterPath path;
        path.addRoundedRect(rect, 3, 3);
        m_painter.fillPath(path, fill);
        m_painter.setRenderHint(QPainter::Antialiasing, false);
        m_painter.setPen(readableOn(fill));
        m_painter.drawText(rect, Qt::AlignCenter, text);
    }

    void paintStepFlag(const QRect &strip)
    {
        const double step = static_cast<double>(m_scene.timeline->step.count());
        const double end = x(step);
        if (end < m_canvas.left() || end > m_canvas.right() + 1)
            return;
        flag(strip, end, translated("step %1").arg(words(formatSeconds(step * 1e-9))), m_palette.textMuted, true);
    }

    void paintPointer(const QRect &strip)
    {
        const double time = m_picture.axis.timeAt(m_picture.pointer);
        if (time < 0)
            return;
        const double at = m_canvas.left() + m_picture.pointer;
        flag(strip, at, words(formatSeconds(time * 1e-9)), m_palette.accent, at > m_canvas.right() - 90);
    }

    void paintLegend()
    {
        const int height = TimelinePicture::kLegend;
        const QRect strip(0, m_picture.size.height() - height, m_picture.size.width(), height);
        m_painter.fillRect(strip, m_palette.surfaceRaised);
        m_painter.setPen(m_palette.grid);
        m_painter.drawLine(strip.topLeft(), strip.topRight());
        m_painter.setFont(m_small);
        int left = 10;
        if (m_picture.colouring == TimelineColouring::Direction) {
            for (const Direction direction : {Direction::Forward, Direction::Backward, Direction::Optimizer})
                swatch(strip, left, directionColour(m_palette, direction), nameOfDirection(direction));
        } else if (m_picture.colouring == TimelineColouring::Kind) {
            for (const OperatorCategory category :
                {OperatorCategory::Product, OperatorCategory::Normalization, OperatorCategory::Activation,
                    OperatorCategory::Elementwise, OperatorCategory::Reduction, OperatorCategory::Movement,
                    OperatorCategory::Loss, OperatorCategory::Optimizer})
                swatch(strip, left, categoryColour(m_palette, category), nameOfCategory(category));
        } else if (m_picture.colouring == TimelineColouring::Time) {
            swatch(strip, left, heatColour(m_palette, 0), translated("short"));
            swatch(strip, left, heatColour(m_palette, 1),
                translated("longest: %1").arg(words(formatSeconds(static_cast<double>(m_scene.longestSpan) * 1e-9))));
        }
        swatch(strip, left, {}, translated("Idle"));
        paintMemoryLegend(strip, left + 16);
    }

    void paintMemoryLegend(const QRect &strip, int left)
    {
        std::array<bool, kMemoryKindCount> used{};
        for (const MemoryCurve &curve : m_scene.timeline->memory) {
            for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind)
                used[kind] = used[kind] || curve.atPeak[kind] > 0;
        }
        m_painter.setPen(m_palette.textMuted);
        const QString title = translated("Memory:");
        m_painter.drawText(QRect(left, strip.top(), 80, strip.height()), Qt::AlignVCenter | Qt::AlignLeft, title);
        left += QFontMetrics(m_small).horizontalAdvance(title) + 8;
        for (int kind = 0; kind < kMemoryKindCount; ++kind) {
            if (used[static_cast<std::size_t>(kind)])
                swatch(strip, left, memoryColour(m_palette, static_cast<MemoryKind>(kind)),
                    words(nameOf(static_cast<MemoryKind>(kind))));
        }
    }

    void swatch(const QRect &strip, int &left, const QColor &colour, const QString &text)
    {
        const QRect box(left, strip.top() + strip.height() / 2 - 4, 10, 10);
        if (colour.isValid()) {
            m_painter.fillRect(box, colour);
        } else {
            m_painter.fillRect(box, m_palette.surface);
            m_painter.fillRect(box, QBrush(mixed(m_palette.surface, m_palette.textMuted, 0.5), Qt::BDiagPattern));
        }
        m_painter.setPen(m_palette.textMuted);
        const int width = QFontMetrics(m_small).horizontalAdvance(text);
        m_painter.drawText(QRect(left + 14, strip.top(), width + 4, strip.height()), Qt::AlignVCenter | Qt::AlignLeft, text);
        left += width + 28;
    }

    QColor faded(const QColor &colour) const { return m_picture.stale ? mixed(colour, m_palette.surface, 0.55) : colour; }

    static QRectF separated(const QRectF &rect, double width)
    {
        return width > kGapPixels ? rect.adjusted(0, 0, -1, 0) : rect;
    }

    void label(const QRectF &rect, const std::string &text, const QColor &colour, int alignment, double least)
    {
        if (rect.width() < least)
            return;
        const QFontMetrics metrics(m_small);
        const QString whole = words(text);
        const int width = static_cast<int>(rect.width());
        // Two or three characters ("F0") may touch the edges; a cut name may not.
        const QString fits = metrics.horizontalAdvance(whole) <= width
            ? whole
            : metrics.elidedText(whole, Qt::ElideRight, width - kTextMargin);
        if (fits.size() < 2)
            return;
        m_painter.setPen(colour);
        m_painter.drawText(rect, alignment | Qt::TextSingleLine, fits);
    }

    void outline(const QRectF &rect, const QColor &colour)
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

    QPainter &m_painter;
    const Palette &m_palette;
    const TimelinePicture &m_picture;
    const TimelineScene &m_scene;
    QRect m_canvas;
    QFont m_small;
    TimeTicks m_ticks;
    std::vector<DrawRecord> m_records;
    QPixmap m_hatch;
};

} // namespace

void paintTimeline(QPainter &painter, const Palette &palette, const TimelinePicture &picture)
{
    TimelinePainter(painter, palette, picture).paint();
}

} // namespace planloom
