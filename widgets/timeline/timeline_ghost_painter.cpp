#include "widgets/timeline/timeline_ghost_painter.h"

#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"
#include "widgets/timeline/timeline_canvas_painter.h"
#include "widgets/timeline/timeline_text.h"

#include <QtGui/QFontMetrics>
#include <QtGui/QPainterPath>

#include <algorithm>
#include <array>
#include <map>

namespace planloom {

namespace {

constexpr double kWouldOpacity = 0.82;
constexpr double kTakenOpacity = 0.6;
constexpr double kLeastCandidate = 4; ///< Pixels of a pause that lights up.
constexpr int kLit = 40; ///< Alpha of a lane that light up, of 255.

class GhostPainter : public TimelineCanvasPainter
{
public:
    GhostPainter(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
        const TimelineGhost &ghost, const TimelineScene *would, const std::string &refusal,
        bool blocked = false)
        : TimelineCanvasPainter(painter, palette, picture)
        , m_ghost(ghost)
        , m_would(would)
        , m_refusal(refusal)
        , m_blocked(blocked)
    {
    }

    void paint()
    {
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        paintTargets();
        paintCandidates();
        if (!m_would && m_ghost.drag == TimelineDrag::Place && !m_ghost.atHome && m_ghost.target.valid())
            paintTaken();
        eachLane([this](const TimelineRow &row) { paintOldPlaces(row); });
        paintIllegal();
        paintCaret();
        paintBracket();
        m_painter.restore();
    }

    void paintWouldLanes()
    {
        m_painter.save();
        m_painter.setClipRect(m_canvas);
        eachLane([this](const TimelineRow &row) { paintWould(row); });
        m_painter.restore();
    }

    /// Where the step would end, with its flag on the ruler.
    void paintEnd()
    {
        if (m_would)
            paintEnd(static_cast<double>(m_would->timeline->step.count()));
    }

    void paintEnd(double step)
    {
        const double at = x(step);
        if (at < m_canvas.left())
            return;
        const QColor colour = step <= static_cast<double>(m_scene.timeline->step.count()) ? m_palette.success
                                                                                          : m_palette.warning;
        if (at <= m_canvas.right()) {
            m_painter.setPen(QPen(colour, 2));
            m_painter.drawLine(QPointF(at, m_canvas.top()), QPointF(at, m_canvas.bottom()));
        }
        QString text = translated("would be %1").arg(toQString(formatSeconds(step * 1e-9)));
        if (at > m_canvas.right())
            text += QStringLiteral(" →");
        flag(std::min(at, static_cast<double>(m_canvas.right())), text, colour, true);
    }

private:
    template<typename Visit> void eachLane(const Visit &visit)
    {
        const auto devices = [&visit](const TimelineRow &row) {
            if (row.kind == TimelineRow::Kind::Device)
                visit(row);
        };
        m_painter.setClipRect(scrolledArea());
        eachVisible(devices);
        m_painter.setClipRect(m_canvas);
        eachSticky(devices);
    }

    /// What letting go here would come to; the tag says it in words.
    QColor mood() const
    {
        return !m_refusal.empty() ? m_palette.error : m_blocked ? m_palette.warning : m_palette.accent;
    }

    void light(int top, int bottom, bool chosen)
    {
        QColor tint = chosen ? mood() : m_palette.accent;
        const QColor line = tint;
        tint.setAlpha(chosen ? kLit : kLit / 4);
        const QRect strip(m_canvas.left(), top, m_canvas.width(), bottom - top);
        m_painter.fillRect(strip, tint);
        if (!chosen)
            return;
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(QPen(line, 2));
        m_painter.drawRect(strip.adjusted(1, 1, -2, -2));
    }

    void paintTargets()
    {
        const bool lanes = m_ghost.drag == TimelineDrag::Place || m_ghost.drag == TimelineDrag::Axis;
        if (lanes) {
            eachLane([this](const TimelineRow &row) {
                light(m_picture.top(row, row.y), m_picture.top(row, row.y + row.height), false);
            });
            if (m_ghost.target.valid() && !m_ghost.atHome) {
                const TimelineRow &row = (*m_picture.rows)[static_cast<std::size_t>(m_ghost.target.row)];
                light(
                    m_picture.top(row, m_ghost.target.top), m_picture.top(row, m_ghost.target.bottom), true);
            }
        }
        if (m_ghost.drag == TimelineDrag::Spread) {
            for (const std::int32_t index : m_ghost.targetRows) {
                const TimelineRow &row = (*m_picture.rows)[static_cast<std::size_t>(index)];
                light(m_picture.top(row, row.y), m_picture.top(row, row.y + row.height), true);
            }
        }
    }

    /// The would-be lane: blocks, operators and communication at their would-be times.
    void paintWould(const TimelineRow &row)
    {
        if (static_cast<std::size_t>(row.lane) >= m_would->lanes.size())
            return;
        const DeviceLane &lane = m_would->lanes[static_cast<std::size_t>(row.lane)];
        m_painter.setFont(m_small);
        const int y = m_picture.top(row, row.computeTop());
        std::map<std::int32_t, QRectF> headers; // by block: its widest piece, as others lie between them
        eachPiece(lane, [&](const BlockPiece &piece, double x0, double x1) {
            const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(piece.block)];
            const bool goesOn = piece.rows.end < block.rows.end;
            const QRectF whole = box(x0, x1, y, row.blocks);
            const QRectF rect = goesOn ? whole : separated(whole, x1 - x0);
            const QColor colour = blockColour(m_palette, lane, m_picture.colouring, block);
            m_painter.fillRect(rect, colour);
            if (block.interrupted) {
                QRectF &widest = headers[piece.block];
                widest = rect.width() > widest.width() ? rect : widest;
            } else {
                label(rect, labelOf(block), readable(colour), 10);
            }
        });
        for (const auto &[index, rect] : headers) {
            const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(index)];
            label(
                rect, labelOf(block), readable(blockColour(m_palette, lane, m_picture.colouring, block)), 10);
        }
        paintQueue(lane.compute, m_picture.top(row, row.operatorsTop()), row.operators, false);
        for (const LaneTrack &track : lane.tracks) {
            if (const auto place = trackOf(row, track.queue))
                paintQueue(track.rows, place->top, place->height, true);
        }
    }

    /// Paler than what is there: mixed rather than blended, which costs less.
    QColor ghostly(const QColor &colour) const { return mixed(m_palette.surface, colour, kWouldOpacity); }

    void paintQueue(LaneRows rows, int y, int height, bool communication)
    {
        m_records.clear();
        const TimelineScene &would = *m_would;
        foldSpans(would.timeline->spans, would.before, rows, m_picture.axis, m_canvas.width(), m_records);
        for (const DrawRecord &record : m_records) {
            const Instruction *instruction = would.findInstruction(record.row);
            QColor colour = communication
                ? (instruction ? communicationColour(m_palette, instruction->kind) : m_palette.neutral)
                : record.folded ? runColour(m_palette, would, m_picture.colouring, record)
                                : computeColour(m_palette, would, m_picture.colouring, record.row);
            colour = ghostly(colour);
            if (record.folded) {
                fillStretch(record, y, height, mixed(m_palette.surface, colour, record.busy));
                continue;
            }
            m_strip.finish();
            const QRectF rect = separated(box(record.x0, record.x1, y, height), record.x1 - record.x0);
            m_painter.fillRect(rect, colour);
            if (!communication || fitsLabel(height))
                label(rect, labelOf(would, record.row), readable(colour), kLabelPixels);
            if (isTaken(instruction))
                outline(rect, m_palette.accent);
        }
        m_strip.finish();
    }

    bool isTaken(const Instruction *instruction) const
    {
        if (!instruction || !instruction->op.valid() || m_ghost.operators.empty() || m_ghost.stage.valid())
            return false;
        OperatorId op = instruction->op;
        const Direction direction = m_would->graph().at(op).direction;
        if (m_ghost.amongPieces && direction != m_ghost.pieceDirection)
            return false;
        if (direction == Direction::Backward)
            op = m_would->graph().at(op).mirror;
        return std::binary_search(m_ghost.operators.begin(), m_ghost.operators.end(), op);
    }

    /// Before the engine has said when: what is taken along, on the lane it would go to, at its present
    /// times.
    void paintTaken()
    {
        const TimelineRow &row = (*m_picture.rows)[static_cast<std::size_t>(m_ghost.target.row)];
        if (row.kind != TimelineRow::Kind::Device)
            return;
        m_painter.setOpacity(kTakenOpacity);
        if (m_ghost.stage.valid()) {
            const TimelineRow &source = (*m_picture.rows)[static_cast<std::size_t>(m_ghost.sourceRow)];
            const DeviceLane &lane = m_scene.lanes[static_cast<std::size_t>(source.lane)];
            double drawn = -1e9;
            for (std::size_t i = lane.firstBlockEndingAfter(m_picture.axis.timeAt(0)); i < lane.blocks.size();
                 ++i) {
                const TimelineBlock &block = lane.blocks[i];
                const double x1 = m_picture.axis.xOf(static_cast<double>(block.end));
                if (m_picture.axis.xOf(static_cast<double>(block.begin)) > m_canvas.width())
                    break;
                if (block.stage != m_ghost.stage || x1 < drawn + 1)
                    continue;
                drawn = x1;
                m_painter.fillRect(
                    boxOfTimes(static_cast<double>(block.begin), static_cast<double>(block.end),
                        m_picture.top(row, row.computeTop()), row.blocks + row.operators),
                    blockColour(m_palette, lane, m_picture.colouring, block));
            }
        } else {
            for (const DeviceLane &lane : m_scene.lanes)
                paintTakenOf(lane, row);
        }
        m_painter.setOpacity(1);
    }

    /// Spans taken along from `lane` at their times on `row`: those in sight, one a pixel.
    void paintTakenOf(const DeviceLane &lane, const TimelineRow &row)
    {
        const SpanColumns &spans = m_scene.timeline->spans;
        const LaneRows inSight =
            rowsIn(spans, lane.compute, m_picture.axis.timeAt(0), m_picture.axis.timeAt(m_canvas.width()));
        auto at = std::lower_bound(m_ghost.spans.begin(), m_ghost.spans.end(), inSight.begin);
        while (at != m_ghost.spans.end() && *at < inSight.end) {
            const double begin = static_cast<double>(spans.start[*at]);
            const double end = begin + static_cast<double>(spans.duration[*at]);
            m_painter.fillRect(boxOfTimes(begin, end, m_picture.top(row, row.operatorsTop()), row.operators),
                computeColour(m_palette, m_scene, m_picture.colouring, *at));
            const double next = std::max(m_picture.axis.xOf(end), m_picture.axis.xOf(begin) + 1);
            const LaneRows behind =
                rowsIn(spans, inSight, m_picture.axis.timeAt(next), m_picture.axis.timeAt(next + 1));
            at = std::lower_bound(at + 1, m_ghost.spans.end(), behind.begin);
        }
    }

    void dotted(double begin, double end, int y, int height)
    {
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(QPen(m_palette.text, 1, Qt::DotLine));
        m_painter.drawRect(boxOfTimes(begin, end, y, height).adjusted(0, 0, -1, -1));
    }

    void paintOldPlaces(const TimelineRow &row)
    {
        const DeviceLane &lane = m_scene.lanes[static_cast<std::size_t>(row.lane)];
        const SpanColumns &spans = m_scene.timeline->spans;
        const double first = m_picture.axis.timeAt(0);
        const double last = m_picture.axis.timeAt(m_canvas.width());
        if (m_ghost.stage.valid() && m_ghost.drag == TimelineDrag::Place) {
            double drawn = -1e9;
            for (std::size_t i = lane.firstBlockEndingAfter(first);
                 i < lane.blocks.size() && static_cast<double>(lane.blocks[i].begin) < last; ++i) {
                const TimelineBlock &block = lane.blocks[i];
                const double end = static_cast<double>(block.end);
                if (block.stage != m_ghost.stage || !block.isOrdered() || m_picture.axis.xOf(end) < drawn + 2)
                    continue;
                drawn = m_picture.axis.xOf(end);
                dotted(static_cast<double>(block.begin), end, m_picture.top(row, row.computeTop()),
                    row.blocks + row.operators);
            }
            return;
        }
        const LaneRows inSight = rowsIn(spans, lane.compute, first, last);
        if (m_ghost.drag == TimelineDrag::Order && !isAmongSpans()) {
            if (!m_ghost.spans.empty() && m_ghost.spans.front() >= lane.compute.begin
                && m_ghost.spans.front() < lane.compute.end) {
                const std::size_t back = m_ghost.spans.back();
                dotted(static_cast<double>(spans.start[m_ghost.spans.front()]),
                    static_cast<double>(spans.start[back] + spans.duration[back]),
                    m_picture.top(row, row.computeTop()), row.blocks + row.operators);
            }
            return;
        }
        double drawn = -1e9;
        for (auto at = std::lower_bound(m_ghost.spans.begin(), m_ghost.spans.end(), inSight.begin);
             at != m_ghost.spans.end() && *at < inSight.end; ++at) {
            const double begin = static_cast<double>(spans.start[*at]);
            const double end = begin + static_cast<double>(spans.duration[*at]);
            if (m_picture.axis.xOf(end) < drawn + 2)
                continue;
            drawn = m_picture.axis.xOf(end);
            dotted(begin, end, m_picture.top(row, row.operatorsTop()), row.operators);
        }
    }

    /// Pauses into which the block may go; the one at the caret more than the others.
    void paintCandidates()
    {
        const TimelineRow *row = sourceRow();
        if (!row || m_ghost.drag != TimelineDrag::Order)
            return;
        const DeviceLane &lane = m_scene.lanes[static_cast<std::size_t>(row->lane)];
        const double last = m_picture.axis.timeAt(m_canvas.width());
        const auto begin = std::lower_bound(m_ghost.candidates.begin(), m_ghost.candidates.end(),
            lane.firstBlockEndingAfter(m_picture.axis.timeAt(0)));
        for (auto at = begin; at != m_ghost.candidates.end(); ++at) {
            const std::size_t caret = *at;
            if (caret >= lane.blocks.size())
                break;
            const auto from = static_cast<double>(lane.endBefore(caret));
            const double to = static_cast<double>(lane.blocks[caret].begin);
            if (from > last)
                break;
            if ((to - from) / m_picture.axis.nanosecondsPerPixel < kLeastCandidate)
                continue;
            const bool chosen = m_ghost.caret && m_ghost.caret->before == caret && !m_ghost.atHome;
            const QRectF rect =
                boxOfTimes(from, to, m_picture.top(*row, row->computeTop()), row->blocks + row->operators);
            QColor wash = chosen ? mood() : m_palette.accent;
            wash.setAlpha(chosen ? 2 * kLit : kLit);
            if (!m_would) // else their frames alone, over what would be there
                m_painter.fillRect(rect, wash);
            m_painter.setBrush(Qt::NoBrush);
            m_painter.setPen(QPen(
                chosen ? mood() : m_palette.accent, chosen ? 2 : 1, chosen ? Qt::SolidLine : Qt::DashLine));
            m_painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
        }
    }

    const TimelineRow *sourceRow() const
    {
        const auto row = static_cast<std::size_t>(m_ghost.sourceRow);
        return m_ghost.sourceRow >= 0 && row < m_picture.rows->size() ? &(*m_picture.rows)[row] : nullptr;
    }

    void paintIllegal()
    {
        const TimelineRow *row = sourceRow();
        if (!row || m_ghost.drag != TimelineDrag::Order || m_refusal.empty()
            || m_ghost.illegalBegin >= m_ghost.illegalEnd)
            return;
        const QRectF rect = boxOfTimes(m_ghost.illegalBegin, m_ghost.illegalEnd,
            m_picture.top(*row, row->computeTop()), row->blocks + row->operators);
        QColor wash = m_palette.error;
        wash.setAlpha(36);
        m_painter.fillRect(rect, wash);
        QColor lines = m_palette.error;
        lines.setAlpha(130);
        m_painter.fillRect(rect, QBrush(lines, Qt::BDiagPattern));
        const QString reason = toQString(m_refusal);
        m_painter.setFont(m_small);
        const QFontMetrics metrics(m_small);
        if (metrics.horizontalAdvance(reason) + 12 > rect.width())
            return; // the tag says it
        const QRectF plate(rect.center().x() - metrics.horizontalAdvance(reason) / 2.0 - 6,
            rect.center().y() - metrics.height() / 2.0, metrics.horizontalAdvance(reason) + 12,
            metrics.height());
        m_painter.fillRect(plate, m_palette.surface);
        m_painter.setPen(m_palette.error);
        m_painter.drawText(plate, Qt::AlignCenter, reason);
    }

    bool isAmongSpans() const { return m_ghost.amongSpans || m_ghost.amongPieces; }

    void paintCaret()
    {
        const TimelineRow *row = sourceRow();
        if (!row || !m_ghost.caret)
            return;
        const QColor colour = mood();
        const double at = x(m_ghost.caret->time);
        const int top = m_picture.top(*row, isAmongSpans() ? row->operatorsTop() : row->computeTop()) - 3;
        const int bottom = m_picture.top(*row, row->operatorsTop() + row->operators) + 3;
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.fillRect(QRectF(at - 1.5, top, 3, bottom - top), colour);
        for (const bool upper : {true, false}) {
            const double y = upper ? top : bottom;
            const double way = upper ? 6 : -6;
            QPainterPath path;
            path.moveTo(at - 6, y);
            path.lineTo(at + 6, y);
            path.lineTo(at, y + way);
            path.closeSubpath();
            m_painter.fillPath(path, colour);
        }
        m_painter.setRenderHint(QPainter::Antialiasing, false);
    }

    void paintBracket()
    {
        const TimelineRow *row = sourceRow();
        if (!row || m_ghost.drag != TimelineDrag::InFlight)
            return;
        const WarmUp &warmUp = m_scene.lanes[static_cast<std::size_t>(row->lane)].warmUp;
        const QColor colour = mood();
        const int y = m_picture.top(*row, row->bracketTop());
        const QRectF rect =
            boxOfTimes(static_cast<double>(warmUp.begin), m_ghost.bracketEnd, y, row->bracket);
        m_painter.fillRect(rect, colour);
        m_painter.setFont(m_small);
        const QString text = translated("%1 in flight").arg(m_ghost.inFlight);
        const int width = QFontMetrics(m_small).horizontalAdvance(text) + 8;
        if (width < rect.width()) {
            m_painter.setPen(readable(colour));
            m_painter.drawText(rect, Qt::AlignCenter, text);
            return;
        }
        const QRectF plate(rect.right() + 2, y, width, row->bracket);
        m_painter.fillRect(plate, m_palette.surface);
        m_painter.setPen(m_palette.text);
        m_painter.drawText(plate, Qt::AlignCenter, text);
    }

    const TimelineGhost &m_ghost;
    const TimelineScene *m_would;
    std::string m_refusal;
    bool m_blocked;
    std::vector<DrawRecord> m_records;
};

} // namespace

void paintGhost(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
    const TimelineGhost &ghost, const std::string &refusal, bool blocked)
{
    GhostPainter(painter, palette, picture, ghost, picture.would, refusal, blocked).paint();
}

void paintWouldLanes(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const TimelineGhost &ghost)
{
    if (picture.would)
        GhostPainter(painter, palette, picture, ghost, picture.would, {}).paintWouldLanes();
}

void paintGhostEnd(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const TimelineGhost &ghost)
{
    GhostPainter(painter, palette, picture, ghost, picture.would, {}).paintEnd();
}

void paintWouldEnd(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, std::int64_t step)
{
    GhostPainter(painter, palette, picture, {}, nullptr, {}).paintEnd(static_cast<double>(step));
}

} // namespace planloom
