// Pieces of blocks that run side by side: moved among each other by hand and by key.

#include "widgets/timeline/timeline_gestures.h"
#include "widgets/timeline/timeline_pieces.h"
#include "widgets/timeline/timeline_proposals.h"

#include <algorithm>

namespace planloom {

/// What the pointer holds of a block that runs beside another: the span, or the piece, that was pressed.
void TimelineGestures::holdPiece(const TimelineCanvas &canvas)
{
    m_pair.reset();
    m_held = {};
    if (m_hit.row < 0 || m_hit.block < 0)
        return;
    const DeviceLane &lane = canvas.laneOf((*canvas.rows)[static_cast<std::size_t>(m_hit.row)]);
    m_pair = sideBySideOf(lane, static_cast<std::size_t>(m_hit.block));
    if (!m_pair)
        return;
    if (m_hit.part == HitPart::Span || m_hit.part == HitPart::SpanEdge)
        m_held = {static_cast<std::size_t>(m_hit.span), static_cast<std::size_t>(m_hit.span) + 1};
    else
        m_held = pieceAt(lane, m_pair->own, m_hit.time);
    if (m_held.begin == m_held.end)
        m_pair.reset();
}

bool TimelineGestures::isAmongPieces(double time, double margin, GestureModifiers modifiers) const
{
    return m_pair && !modifiers.shift && time >= static_cast<double>(m_pair->begin) - margin
        && time <= static_cast<double>(m_pair->end) + margin;
}

/// A single span stops at those of its own block: there it is ordered among them.
std::optional<PieceMove> TimelineGestures::pieceMove(
    const TimelineCanvas &canvas, std::size_t caret, GestureModifiers modifiers) const
{
    if (!m_pair)
        return std::nullopt;
    const DeviceLane &lane = canvas.laneOf((*canvas.rows)[static_cast<std::size_t>(m_hit.row)]);
    const bool single = m_hit.part == HitPart::Span || m_hit.part == HitPart::SpanEdge;
    auto move = pieceMoveTo(*canvas.scene, lane, *m_pair, m_held, caret, !single);
    if (move) {
        move->onlyThis = modifiers.alt;
        move->held = modifiers.control;
    }
    return move;
}

/// What the ghost takes along: the piece that is held, and what comes with it.
void TimelineGestures::takePiece(const TimelineCanvas &canvas, bool moves)
{
    const DeviceLane &lane = canvas.laneOf((*canvas.rows)[static_cast<std::size_t>(m_hit.row)]);
    m_ghost.spans =
        movedAlong(*canvas.scene, lane, *m_pair, m_held, moves ? m_ghost.caret->before : m_held.begin);
    std::vector<OperatorId> operators;
    for (std::size_t row = m_held.begin; row < m_held.end; ++row)
        if (canvas.scene->isIn(lane.blocks[m_pair->own], row))
            operators.push_back(canvas.scene->operatorOf(row));
    m_ghost.operators = forwardOperators(m_context->graph(), operators);
    m_ghost.pieceDirection = refOf(lane.blocks[m_pair->own]).direction;
    ++m_takes;
}

bool TimelineGestures::moveAround(const GestureContext &context, const TimelineScene &scene, std::size_t span,
    LaneRows piece, bool earlier, bool onlyThis, bool held)
{
    const DeviceLane &lane = scene.lanes[static_cast<std::size_t>(scene.timeline->spans.device[span])];
    const auto pair = sideBySideOf(lane, static_cast<std::size_t>(lane.blockOf(span)));
    auto move = pair ? pieceMoveAround(scene, lane, *pair, span, piece, earlier) : std::nullopt;
    if (!move) {
        m_refusal = "this only serves an operator: move the operator";
        return false;
    }
    move->onlyThis = onlyThis;
    move->held = held;
    return commit(proposePieceMove(context, *move),
        QStringLiteral("timeline.piece:%1").arg(static_cast<qulonglong>(span)));
}

bool TimelineGestures::pairBlock(const TimelineCanvas &canvas, std::int32_t lane, std::size_t block)
{
    m_refusal.clear();
    const GestureContextSnapshot context = m_host ? m_host->gestureContext() : nullptr;
    if (!context || lane < 0 || static_cast<std::size_t>(lane) >= canvas.scene->lanes.size())
        return false;
    const DeviceLane &of = canvas.scene->lanes[static_cast<std::size_t>(lane)];
    if (block >= of.blocks.size() || !of.blocks[block].isOrdered()) {
        m_refusal = "choose a forward or backward block to run beside another";
        return false;
    }
    std::size_t other = block + 1;
    if (const auto pair = sideBySideOf(of, block))
        other = pair->other;
    while (other < of.blocks.size() && !of.blocks[other].isOrdered())
        ++other;
    if (other >= of.blocks.size()) {
        m_refusal = "it is the last block of its device";
        return false;
    }
    return commit(proposeSideBySide(*context, refOf(of.blocks[block]), refOf(of.blocks[other])));
}

} // namespace planloom
