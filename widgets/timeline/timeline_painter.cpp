#include "widgets/timeline/timeline_painter.h"

#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"
#include "widgets/scene/busy_stretches.h"
#include "widgets/timeline/timeline_canvas_painter.h"

#include <QtGui/QFontMetrics>
#include <QtGui/QPolygonF>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace planloom {

namespace {

constexpr int kHatchTile = 64; ///< Pixels; a multiple of the pattern's 8.
constexpr int kZigzagHeight = 5; ///< Twice one less divides the tile's width.
constexpr double kZigzagPixels = 12; ///< Folded stretches narrower than this have no zigzag.
constexpr double kRunLabelPixels = 64; ///< Folded stretches narrower than this have no label.
constexpr double kPinnedPixels = 46; ///< Blocks narrower than this have no pin.
constexpr int kPinWidth = 9;
constexpr int kPinHeight = 13;
constexpr double kLinkedPixels =
    16; ///< A block's header is cut where the block is idle for longer than this.
constexpr int kLinkHeight = 2; ///< Of the line that joins its parts.
constexpr double kBodyShade = 0.18; ///< Operators are this much paler than the blocks above them.

/// Draws the lanes.
class LanePainter : public TimelineCanvasPainter
{
public:
    using TimelineCanvasPainter::TimelineCanvasPainter;

    void paint()
    {
        m_painter.fillRect(QRect(QPoint(0, 0), m_picture.size), m_palette.canvas);
        makeHatch();
        makeZigzag();
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        paintGrid();
        m_painter.setClipRect(scrolledArea());
        eachVisible([this](const TimelineRow &row) { paintLaneOf(row); });
        m_painter.setClipRect(m_canvas);
        eachSticky([this](const TimelineRow &row) {
            m_painter.fillRect(
                QRect(m_canvas.left(), m_picture.top(row, row.y), m_canvas.width(), row.height),
                m_palette.canvas);
            paintLaneOf(row);
        });
        paintEndOfStep();
        m_painter.restore();
    }

private:
    void paintLaneOf(const TimelineRow &row)
    {
        if (row.kind == TimelineRow::Kind::Device)
            paintLane(row);
    }

    /// Idle time as an opaque tile: copying it is several times faster than a pattern blended anew for every
    /// lane.
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

    /// A line that goes up and down along the lower edge of what is merged: no single span looks like that.
    void makeZigzag()
    {
        const double ratio = m_painter.device()->devicePixelRatioF();
        m_zigzag = QPixmap(static_cast<int>(kHatchTile * ratio), static_cast<int>(kZigzagHeight * ratio));
        m_zigzag.setDevicePixelRatio(ratio);
        m_zigzag.fill(Qt::transparent);
        QPainter tile(&m_zigzag);
        tile.setRenderHint(QPainter::Antialiasing, true);
        tile.setPen(QPen(m_palette.surface, 1.3));
        QPolygonF line;
        for (int at = 1 - kZigzagHeight; at <= kHatchTile + kZigzagHeight; at += kZigzagHeight - 1)
            line << QPointF(at, (at / (kZigzagHeight - 1)) % 2 == 0 ? kZigzagHeight - 1 : 1);
        tile.drawPolyline(line);
    }

    /// What is held has a pin, what follows from it a hollow one, on the timeline as on the DAG.
    QPixmap pin(const QColor &head) const
    {
        const qreal ratio = m_painter.device()->devicePixelRatioF();
        QPixmap pixmap(static_cast<int>(kPinWidth * ratio), static_cast<int>(kPinHeight * ratio));
        pixmap.setDevicePixelRatio(ratio);
        pixmap.fill(Qt::transparent);
        QPainter tile(&pixmap);
        tile.setRenderHint(QPainter::Antialiasing, true);
        const QPointF centre(kPinWidth / 2.0, kPinWidth / 2.0);
        const QPointF tip(centre.x(), kPinHeight - 1);
        tile.setPen(QPen(m_palette.surface, 3)); // a rim, on blocks of any colour
        tile.drawLine(centre, tip);
        tile.drawEllipse(centre, 3, 3);
        tile.setPen(QPen(m_palette.text, 1.2));
        tile.drawLine(centre, tip);
        tile.setBrush(faded(head));
        tile.drawEllipse(centre, 2.7, 2.7);
        return pixmap;
    }

    void paintPin(const QRectF &rect, DecidedBy decidedBy)
    {
        if (decidedBy == DecidedBy::Default || rect.width() < kPinnedPixels || rect.height() < kPinHeight + 1)
            return;
        const bool held = decidedBy == DecidedBy::Row;
        QPixmap &pixmap = held ? m_heldPin : m_impliedPin;
        if (pixmap.isNull())
            pixmap = pin(held ? m_palette.accent : m_palette.surface);
        m_painter.drawPixmap(QPointF(rect.left() + 2, rect.top() + 1), pixmap);
    }

    void paintGrid()
    {
        for (const TimeTick &tick : ticksOf(m_picture.axis, m_canvas.width()).ticks) {
            if (tick.label.empty())
                continue;
            // Filled, which is several times faster than a line of a pen.
            const int at = static_cast<int>(std::lround(x(tick.nanoseconds)));
            m_painter.fillRect(at, m_canvas.top(), 1, m_canvas.height(), m_palette.grid);
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
        const int compute = m_picture.top(row, row.computeTop());
        const double begin = m_picture.axis.xOf(0);
        const double end = m_picture.axis.xOf(static_cast<double>(m_scene.timeline->step.count()));
        const QRectF idle = box(begin, end, compute, row.blocks + row.operators);
        m_painter.drawTiledPixmap(idle, m_hatch, QPointF(std::fmod(idle.left(), kHatchTile), 0));
        paintTracks(row, begin, end);
        const DeviceLane *predicted =
            m_picture.outlines && static_cast<std::size_t>(row.lane) < m_picture.outlines->lanes.size()
            ? &m_picture.outlines->lanes[static_cast<std::size_t>(row.lane)]
            : nullptr;
        if (row.bracket > 0)
            paintBracket(lane, row);
        const int body = compute + row.blocks;
        if (m_picture.would) {
            // The ghost's operators come over it: what is there now is told by its blocks.
            paintBlocks(lane, compute, row.blocks + row.operators);
        } else if (predicted && !row.isCompact()) {
            paintBlocks(lane, compute, row.blocks);
            // Measured spans leave a rim at which the outlines of the predicted ones can be seen.
            const int rim = std::max(row.operators / 6, 2);
            paintCompute(lane, body + rim, row.operators - 2 * rim);
            paintOutlines(predicted->compute, body, row.operators);
        } else {
            paintBlocks(lane, compute, row.blocks);
            if (!row.isCompact())
                paintCompute(lane, body, row.operators);
        }
        for (const LaneTrack &track : lane.tracks) {
            if (const auto place = trackOf(row, track.queue))
                paintCommunication(track.rows, place->top, place->height);
        }
        if (predicted) {
            for (const LaneTrack &track : predicted->tracks) {
                // A rim around what was measured; tracks that stand close have no room for it.
                const auto place = trackOf(row, track.queue);
                const int rim = place && place->height == row.communication ? 1 : 0;
                if (place)
                    paintOutlines(track.rows, place->top - rim, place->height + 2 * rim);
            }
        }
        const bool wouldHave =
            m_picture.would && static_cast<std::size_t>(row.lane) < m_picture.would->lanes.size();
        const TimelineScene &holder = wouldHave ? *m_picture.would : m_scene;
        paintMemory(holder, holder.lanes[static_cast<std::size_t>(row.lane)],
            m_picture.top(row, row.memoryTop()), row.memory);
        paintSelected(lane, row);
        paintFocus(lane, row);
        m_painter.fillRect(
            m_canvas.left(), m_picture.top(row, row.y + row.height) - 1, m_canvas.width(), 1, m_palette.grid);
    }

    /// The ground of the communication sub-lane: a strip for each queue.
    void paintTracks(const TimelineRow &row, double begin, double end)
    {
        const QColor ground = mixed(m_palette.surface, m_palette.canvas, 0.5);
        const QueueSet queues = queuesOf(row);
        if (queues.count() == 0 && row.communication > 0)
            m_painter.fillRect(
                box(begin, end, m_picture.top(row, row.communicationTop()), row.communication), ground);
        for (int queue = 0; queue < kQueueCount; ++queue) {
            if (const auto place = trackOf(row, static_cast<QueueKind>(queue)))
                m_painter.fillRect(box(begin, end, place->top, place->height), ground);
        }
    }

    /// A bracket over the warm-up's forward blocks, with a grip at its right end.
    void paintBracket(const DeviceLane &lane, const TimelineRow &row)
    {
        const WarmUp &warmUp = lane.warmUp;
        const int y = m_picture.top(row, row.bracketTop());
        const double left = x(static_cast<double>(warmUp.begin));
        const double right = x(static_cast<double>(warmUp.end));
        const QColor colour = faded(m_palette.textMuted);
        const int middle = y + row.bracket / 2;
        const QString text = translated("%1 in flight").arg(warmUp.count);
        m_painter.setFont(m_small);
        const int width = QFontMetrics(m_small).horizontalAdvance(text) + 8;
        m_painter.setPen(QPen(colour, 1.5));
        m_painter.drawLine(QPointF(left, middle), QPointF(right, middle));
        m_painter.drawLine(QPointF(left, middle), QPointF(left, y + row.bracket - 1));
        m_painter.fillRect(QRectF(right - 4, y + 2, 4, row.bracket - 3), colour);
        const bool inside = right - left > width + 16;
        const double at = inside ? (left + right - width) / 2 : right + 4;
        const QRectF place(at, y, width, row.bracket);
        if (inside)
            m_painter.fillRect(place, m_palette.canvas);
        m_painter.setPen(faded(m_palette.text));
        m_painter.drawText(place, Qt::AlignCenter, text);
    }

    void paintBlocks(const DeviceLane &lane, int y, int height)
    {
        m_painter.setFont(m_small);
        std::map<std::int32_t, InterruptedHeader> interrupted; // by block
        eachPiece(lane, [&](const BlockPiece &piece, double x0, double x1) {
            const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(piece.block)];
            const QColor colour = faded(blockColour(m_palette, lane, m_picture.colouring, block));
            const QRectF whole = box(x0, x1, y, height);
            if (!block.interrupted) {
                const QRectF rect = paintHeader(piece, separated(whole, x1 - x0), colour);
                labelHeader(block, rect, rect, colour);
                return;
            }
            // Linked by a line up to its end, which what interrupts it is drawn over.
            const auto [header, isFirst] = interrupted.try_emplace(piece.block);
            const double end = m_picture.axis.xOf(static_cast<double>(block.end));
            if (isFirst)
                m_painter.fillRect(box(x1, end, y + (height - kLinkHeight) / 2, kLinkHeight), colour);
            const bool isLast = piece.rows.end == block.rows.end;
            header->second.add(paintHeader(piece, isLast ? separated(whole, x1 - x0) : whole, colour));
        });
        for (const auto &[index, header] : interrupted) {
            const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(index)];
            const QColor colour = faded(blockColour(m_palette, lane, m_picture.colouring, block));
            const int text = QFontMetrics(m_small).horizontalAdvance(toQString(labelOf(block)));
            labelHeader(block, header.placeFor(text + 2 * kPinWidth), header.widestRun(), colour);
        }
    }

    /// The header of a block that others interrupt, as it is painted piece by piece.
    class InterruptedHeader
    {
    public:
        void add(const QRectF &piece)
        {
            constexpr double kGap = 10; // narrower than any label of what lies in it
            m_run = m_run.isValid() && piece.left() - m_run.right() < kGap ? m_run | piece : piece;
            if (m_run.width() > m_widestRun.width())
                m_widestRun = m_run;
            if (piece.width() > m_widest.width())
                m_widest = piece;
        }
        /// Where a label of this width goes: into one piece if it fits there, else over several that are next
        /// to each other.
        QRectF placeFor(int width) const { return m_widest.width() >= width ? m_widest : m_widestRun; }
        const QRectF &widestRun() const { return m_widestRun; }

    private:
        QRectF m_run{}; ///< The last pieces without a gap to speak of.
        QRectF m_widestRun{};
        QRectF m_widest{}; ///< Piece.
    };

    /// @param pinned  what has a pin at its left, where there is room
    void labelHeader(
        const TimelineBlock &block, const QRectF &rect, const QRectF &pinned, const QColor &colour)
    {
        if (m_picture.behindGhost)
            return;
        label(rect, labelOf(block), readable(colour), 10);
        paintPin(pinned, block.decidedBy);
    }

    /// Fills a header where its block works, and joins the parts by a thin line where it waits for long.
    /// @return the widest part, which has room for its label
    QRectF paintHeader(const BlockPiece &piece, const QRectF &whole, const QColor &colour)
    {
        if (whole.width() < kLinkedPixels) {
            m_painter.fillRect(whole, colour);
            return whole;
        }
        const auto parts = busyStretches(m_scene.timeline->spans, m_scene.before, piece.rows, m_picture.axis,
            m_canvas.width(), kLinkedPixels);
        // One part may be all that is in sight of a block that waits for longer than that.
        const double left = std::max(m_picture.axis.xOf(static_cast<double>(piece.begin)), 0.0);
        const double right =
            std::min(m_picture.axis.xOf(static_cast<double>(piece.end)), m_canvas.width() + 0.0);
        if (parts.size() == 1 && parts.front().x0 - left < kLinkedPixels
            && right - parts.front().x1 < kLinkedPixels) {
            m_painter.fillRect(whole, colour);
            return whole;
        }
        const double middle = whole.center().y() - kLinkHeight / 2.0;
        m_painter.fillRect(QRectF(whole.left(), middle, whole.width(), kLinkHeight), colour);
        QRectF widest;
        for (const BusyStretch &part : parts) {
            const QRectF rect =
                box(part.x0, part.x1, static_cast<int>(whole.top()), static_cast<int>(whole.height()));
            m_painter.fillRect(rect, colour);
            if (rect.width() > widest.width())
                widest = rect;
        }
        return widest;
    }

    /// What stands over a run of folded spans, where there is room.
    void paintRun(const FoldedRun &run, int y, int height)
    {
        const QRectF rect = box(run.x0, run.x1, y, height);
        if (run.x1 - run.x0 >= kZigzagPixels) {
            m_painter.drawTiledPixmap(
                QRectF(rect.left(), rect.bottom() - kZigzagHeight, rect.width(), kZigzagHeight), m_zigzag,
                QPointF(std::fmod(rect.left(), kHatchTile), 0));
        }
        if (run.x1 - run.x0 >= kRunLabelPixels) {
            const std::string text = labelOfRun(m_scene, run.rows);
            const QFontMetrics metrics(m_small);
            const int width = metrics.horizontalAdvance(toQString(text)) + 8;
            if (width < rect.width()) {
                const QRectF plate(rect.center().x() - width / 2.0,
                    rect.center().y() - metrics.height() / 2.0, width, metrics.height());
                m_painter.fillRect(plate & rect, mixed(m_palette.surface, m_palette.canvas, 0.5));
                m_painter.setPen(faded(m_palette.text));
                m_painter.drawText(plate, Qt::AlignCenter | Qt::TextSingleLine, toQString(text));
            }
        }
    }

    void paintCompute(const DeviceLane &lane, int y, int height)
    {
        m_records.clear();
        foldSpans(m_scene.timeline->spans, m_scene.before, lane.compute, m_picture.axis, m_canvas.width(),
            m_records);
        m_painter.setFont(m_small);
        for (const DrawRecord &record : m_records) {
            if (record.folded) {
                if (m_picture.exposes(record.x0, record.x1)) {
                    const QColor colour =
                        mixed(faded(runColour(m_palette, m_scene, m_picture.colouring, record)),
                            m_palette.surface, kBodyShade);
                    // Paler where part of it is idle: the ink of a stretch is its busy time.
                    fillStretch(record, y, height, mixed(m_palette.surface, colour, record.busy));
                }
                continue;
            }
            m_strip.finish();
            if (!m_picture.exposes(record.x0, record.x1))
                continue;
            const QColor colour =
                mixed(faded(computeColour(m_palette, m_scene, m_picture.colouring, record.row)),
                    m_palette.surface, kBodyShade);
            const double width = record.x1 - record.x0;
            const Instruction *instruction = m_scene.findInstruction(record.row);
            const QRectF rect = separated(box(record.x0, record.x1, y, height), width);
            m_painter.fillRect(rect, colour);
            if (instruction && instruction->recompute)
                m_painter.fillRect(rect, QBrush(mixed(colour, readable(colour), 0.35), Qt::FDiagPattern));
            if (width >= kLabelPixels && !m_picture.behindGhost)
                label(rect, labelOf(m_scene, record.row), readable(colour), kLabelPixels);
        }
        m_strip.finish();
        if (m_picture.behindGhost)
            return;
        for (const FoldedRun &run : foldedRuns(lane, m_records)) {
            if (run.rows.end - run.rows.begin > 1)
                paintRun(run, y, height);
        }
    }

    /// What was predicted, behind what was measured.
    void paintOutlines(LaneRows rows, int y, int height)
    {
        m_records.clear();
        const TimelineScene &scene = *m_picture.outlines;
        foldSpans(scene.timeline->spans, scene.before, rows, m_picture.axis, m_canvas.width(), m_records);
        m_painter.setBrush(Qt::NoBrush);
        const QColor colour = mixed(m_palette.surface, m_palette.text, 0.75);
        for (const DrawRecord &record : m_records) {
            if (!m_picture.exposes(record.x0, record.x1))
                continue;
            const QRectF rect = box(record.x0, record.x1, y, height);
            if (record.folded) {
                // Too small for outlines of their own: two edges.
                m_painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), 1), colour);
                m_painter.fillRect(QRectF(rect.left(), rect.bottom() - 1, rect.width(), 1), colour);
                continue;
            }
            m_painter.setPen(colour);
            m_painter.drawRect(rect.adjusted(0, 0, -1, -1));
        }
    }

    void paintCommunication(LaneRows rows, int y, int height)
    {
        m_records.clear();
        foldSpans(m_scene.timeline->spans, m_scene.before, rows, m_picture.axis, m_canvas.width(), m_records);
        m_painter.setFont(m_small);
        const QColor idle = mixed(m_palette.surface, m_palette.canvas, 0.5);
        for (const DrawRecord &record : m_records) {
            if (!m_picture.exposes(record.x0, record.x1))
                continue;
            const std::size_t middle = record.row + static_cast<std::size_t>(record.count) / 2;
            const Instruction *instruction = m_scene.findInstruction(middle);
            const QColor colour =
                faded(instruction ? communicationColour(m_palette, instruction->kind) : m_palette.neutral);
            const QRectF rect = box(record.x0, record.x1, y, height);
            if (record.folded) {
                fillStretch(record, y, height, mixed(idle, colour, record.busy));
                continue;
            }
            m_strip.finish();
            const QRectF single = separated(rect, record.x1 - record.x0);
            m_painter.fillRect(single, colour);
            if (record.x1 - record.x0 >= 2 * kLabelPixels && fitsLabel(height)) {
                label(single, labelOf(m_scene, record.row) + "  " + formatBytes(bytesOf(m_scene, record.row)),
                    readable(colour), kLabelPixels);
            }
        }
        m_strip.finish();
    }

    /// Bytes at the upper edge of a memory strip: of the largest peak, or of the device's memory once that is
    /// near.
    double memoryScale() const
    {
        const std::int64_t largest =
            std::max(m_scene.largestPeak, m_picture.would ? m_picture.would->largestPeak : std::int64_t{0});
        const double peak = std::max(static_cast<double>(largest), 1.0) * 1.08;
        const double cap = leastMemory(m_scene.cluster);
        return peak > 0.6 * cap ? std::max(peak, cap * 1.05) : peak;
    }

    /// One kind's part of a memory strip over several columns in which it looks the same.
    struct MemoryRun {
        int begin = 0; ///< Columns.
        double top = 0; ///< Pixels above the strip's lower edge.
        double bottom = 0;
    };

    /// The memory of `lane`, one of `holder`: of the plan that is shown, or of the one a ghost would make.
    void paintMemory(const TimelineScene &holder, const DeviceLane &lane, int y, double height)
    {
        const auto device = static_cast<std::size_t>(lane.device.index);
        if (device >= holder.timeline->memory.size())
            return;
        const MemoryCurve &curve = holder.timeline->memory[device];
        const double scale = memoryScale();
        const double cap = holder.deviceModel(lane.device).memory.value;
        const double step = static_cast<double>(holder.timeline->step.count());
        const int from = std::max(0, static_cast<int>(std::floor(m_picture.axis.xOf(0))));
        const int to = std::min(m_canvas.width(), static_cast<int>(std::ceil(m_picture.axis.xOf(step))));
        // Heights in whole pixels of the device: neighbours that look alike are one rectangle, which is far
        // fewer.
        const double ratio = m_painter.device()->devicePixelRatioF();
        const auto pixels = [&](double bytes) {
            return std::round(std::min(bytes / scale, 1.0) * height * ratio) / ratio;
        };
        std::array<QColor, kMemoryKindCount + 1> colours;
        for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind) {
            const QColor colour = memoryColour(m_palette, static_cast<MemoryKind>(kind));
            colours[kind] = mixed(m_palette.surface, m_picture.would ? colour : faded(colour), 0.78);
        }
        colours[kMemoryKindCount] = m_palette.error;
        m_strip.begin(QRect(m_canvas.left(), y, m_canvas.width(), static_cast<int>(std::ceil(height))));
        std::array<MemoryRun, kMemoryKindCount + 1> runs;
        const auto change = [&](std::size_t kind, int column, double bottom, double top) {
            MemoryRun &run = runs[kind];
            if (run.top == top && run.bottom == bottom)
                return;
            if (run.top > run.bottom && m_picture.exposes(run.begin, column)) {
                m_strip.fill(QRectF(m_canvas.left() + run.begin, y + height - run.top, column - run.begin,
                                 run.top - run.bottom),
                    colours[kind]);
            }
            run = {column, top, bottom};
        };
        // Which entries first, their bytes then: these lie far from each other, and the wait for one is used
        // for the next.
        m_entries.clear();
        std::size_t place = 0;
        for (int column = from; column < to; ++column) {
            const std::int64_t entry = lane.memory.largestIn(
                curve, m_picture.axis.timeAt(column), m_picture.axis.timeAt(column + 1), place);
            if (entry >= 0)
                __builtin_prefetch(&curve.bytes[static_cast<std::size_t>(entry)]);
            m_entries.push_back(entry);
        }
        std::int64_t shown = -2;
        for (int column = from; column <= to; ++column) {
            const std::int64_t entry = column < to ? m_entries[static_cast<std::size_t>(column - from)] : -3;
            if (entry == shown)
                continue;
            shown = entry;
            double sum = 0;
            double bottom = 0;
            for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind) {
                sum +=
                    entry < 0 ? 0 : static_cast<double>(curve.bytes[static_cast<std::size_t>(entry)][kind]);
                const double top = pixels(std::min(sum, cap)); // what is above is red, whatever it is
                change(kind, column, bottom, top);
                bottom = top;
            }
            change(kMemoryKindCount, column, sum > cap ? pixels(cap) : 0, sum > cap ? pixels(sum) : 0);
        }
        m_strip.finish();
        m_painter.fillRect(QRectF(m_canvas.left() + from, y + height, to - from, 1), m_palette.grid);
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
        paintMarks(lane.compute, m_picture.top(row, row.operatorsTop()), row.operators);
        for (const LaneTrack &track : lane.tracks) {
            if (const auto place = trackOf(row, track.queue))
                paintMarks(track.rows, place->top, place->height);
        }
    }

    void paintMarks(LaneRows rows, int y, int height)
    {
        const SpanColumns &spans = m_scene.timeline->spans;
        const std::vector<std::size_t> &all = *m_picture.selected;
        // Within a queue rows are in order of time: only those in sight are looked at, and one for each
        // pixel.
        const LaneRows inSight =
            rowsIn(spans, rows, m_picture.axis.timeAt(0), m_picture.axis.timeAt(m_canvas.width()));
        auto at = std::lower_bound(all.begin(), all.end(), inSight.begin);
        while (at != all.end() && *at < inSight.end) {
            const double start = static_cast<double>(spans.start[*at]);
            const double x0 = m_picture.axis.xOf(start);
            const double x1 =
                std::max(m_picture.axis.xOf(start + static_cast<double>(spans.duration[*at])), x0 + 2);
            const QRectF rect = box(x0, x1, y, height);
            if (rect.width() < 5) {
                // Above and below: a whole block of them is framed, and what it says can still be read.
                m_painter.fillRect(QRectF(rect.left(), rect.top() - 3, rect.width(), 5), m_palette.accent);
                m_painter.fillRect(QRectF(rect.left(), rect.bottom() - 2, rect.width(), 5), m_palette.accent);
            } else {
                outline(rect, m_palette.accent);
            }
            const LaneRows behind =
                rowsIn(spans, inSight, m_picture.axis.timeAt(x1 + 1), m_picture.axis.timeAt(x1 + 2));
            at = std::lower_bound(at + 1, all.end(), behind.begin);
        }
    }

    void paintFocus(const DeviceLane &lane, const TimelineRow &row)
    {
        const TimelineFocus &focus = m_picture.focus;
        if (!m_picture.focused || focus.lane != row.lane)
            return;
        const SpanColumns &spans = m_scene.timeline->spans;
        QRectF rect;
        const auto block = static_cast<std::size_t>(std::max(focus.block, 0));
        switch (focus.part) {
        case LanePart::Bracket:
            rect = boxOfTimes(static_cast<double>(lane.warmUp.begin), static_cast<double>(lane.warmUp.end),
                m_picture.top(row, row.bracketTop()), row.bracket);
            break;
        case LanePart::Block:
            if (block >= lane.blocks.size())
                return;
            rect = boxOfTimes(static_cast<double>(lane.blocks[block].begin),
                static_cast<double>(lane.blocks[block].end), m_picture.top(row, row.computeTop()),
                row.blocks);
            break;
        case LanePart::Idle: {
            const auto begin = static_cast<double>(lane.endBefore(block));
            const double end = block < lane.blocks.size()
                ? static_cast<double>(lane.blocks[block].begin)
                : static_cast<double>(m_scene.timeline->step.count());
            rect = boxOfTimes(begin, end, m_picture.top(row, row.computeTop()), row.blocks + row.operators);
            break;
        }
        case LanePart::Span:
        case LanePart::Communication: {
            if (focus.span < 0 || static_cast<std::size_t>(focus.span) >= spans.size())
                return;
            const auto at = static_cast<std::size_t>(focus.span);
            const auto place = placeOf(row, spans.queue[at]);
            if (!place)
                return;
            const double start = static_cast<double>(spans.start[at]);
            rect =
                boxOfTimes(start, start + static_cast<double>(spans.duration[at]), place->top, place->height);
            break;
        }
        }
        // Outside of the thing, so that it is told apart from the outline of what is selected.
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(QPen(m_palette.text, 1, Qt::DotLine));
        m_painter.drawRect(rect.adjusted(-3, -3, 2, 2));
    }

    std::vector<DrawRecord> m_records;
    std::vector<std::int64_t> m_entries; ///< Of a memory curve, by column.
    QPixmap m_hatch;
    QPixmap m_zigzag;
    QPixmap m_heldPin;
    QPixmap m_impliedPin;
};

} // namespace

void paintLanes(QPainter &painter, const Palette &palette, const TimelinePicture &picture)
{
    LanePainter(painter, palette, picture).paint();
}

void paintTimeline(QPainter &painter, const Palette &palette, const TimelinePicture &picture)
{
    paintLanes(painter, palette, picture);
    paintFrame(painter, palette, picture);
}

} // namespace planloom
