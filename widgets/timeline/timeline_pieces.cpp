#include "widgets/timeline/timeline_pieces.h"

#include "widgets/timeline/timeline_gestures.h"

#include <algorithm>
#include <cstdlib>

namespace planloom {

namespace {

/// The operator of a block's own sequence that a span runs; invalid where it only serves one.
OperatorId kernelOf(const TimelineScene &scene, const TimelineBlock &block, std::size_t row)
{
    const Direction direction = isBackward(block.kind) ? Direction::Backward : Direction::Forward;
    const Instruction *instruction = scene.findInstruction(row);
    if (!instruction || instruction->kind != InstructionKind::Kernel || !instruction->op.valid()
        || instruction->recompute || !scene.isIn(block, row)
        || scene.graph().at(instruction->op).direction != direction)
        return {};
    return instruction->op;
}

std::size_t placeIn(const std::vector<OperatorId> &sequence, OperatorId op)
{
    return static_cast<std::size_t>(std::find(sequence.begin(), sequence.end(), op) - sequence.begin());
}

} // namespace

std::optional<SideBySide> sideBySideOf(const DeviceLane &lane, std::size_t block)
{
    constexpr std::size_t kReach = 8; // reductions of gradients may begin between the two
    if (block >= lane.blocks.size() || !lane.blocks[block].isOrdered())
        return std::nullopt;
    const TimelineBlock &own = lane.blocks[block];
    const std::size_t first = block - std::min(block, kReach);
    const std::size_t end = std::min(block + kReach + 1, lane.blocks.size());
    for (std::size_t i = first; i < end; ++i) {
        const TimelineBlock &other = lane.blocks[i];
        if (i == block || !other.isOrdered() || other.rows.begin >= own.rows.end
            || own.rows.begin >= other.rows.end)
            continue;
        return SideBySide{block, i,
            {std::min(own.rows.begin, other.rows.begin), std::max(own.rows.end, other.rows.end)},
            std::min(own.begin, other.begin), std::max(own.end, other.end)};
    }
    return std::nullopt;
}

std::vector<OperatorId> sequenceOf(const TimelineScene &scene, const TimelineBlock &block)
{
    std::vector<OperatorId> sequence;
    std::vector<bool> seen(scene.graph().operators.size(), false);
    for (std::size_t row = block.rows.begin; row < block.rows.end; ++row) {
        const OperatorId op = kernelOf(scene, block, row);
        if (!op.valid() || seen[static_cast<std::size_t>(op.index)])
            continue;
        seen[static_cast<std::size_t>(op.index)] = true;
        sequence.push_back(op);
    }
    return sequence;
}

LaneRows pieceAt(const DeviceLane &lane, std::size_t block, double nanoseconds)
{
    const std::size_t at = lane.firstPieceEndingAfter(nanoseconds);
    if (at < lane.pieces.size() && lane.pieces[at].block == static_cast<std::int32_t>(block)
        && static_cast<double>(lane.pieces[at].begin) <= nanoseconds)
        return lane.pieces[at].rows;
    return {};
}

Caret pieceCaretAt(const DeviceLane &lane, const SideBySide &pair, double time)
{
    Caret caret{pair.rows.end, static_cast<double>(pair.end)};
    for (std::size_t i = lane.firstPieceEndingAfter(static_cast<double>(pair.begin)); i < lane.pieces.size();
         ++i) {
        const BlockPiece &piece = lane.pieces[i];
        if (piece.rows.begin >= pair.rows.end)
            break;
        if ((static_cast<double>(piece.begin) + static_cast<double>(piece.end)) / 2 > time)
            return {piece.rows.begin, static_cast<double>(piece.begin)};
    }
    return caret;
}

std::optional<PieceMove> pieceMoveTo(const TimelineScene &scene, const DeviceLane &lane,
    const SideBySide &pair, LaneRows held, std::size_t caret, bool passesOwn)
{
    const TimelineBlock &own = lane.blocks[pair.own];
    const TimelineBlock &other = lane.blocks[pair.other];
    PieceMove move{.block = refOf(own), .beside = refOf(other), .earlier = caret <= held.begin};
    if (!move.earlier && caret < held.end)
        return std::nullopt;
    // From the caret towards what is held, what it would pass.
    OperatorId passed;
    const auto looksAt = [&](std::size_t row) { // true to look on
        passed = kernelOf(scene, other, row);
        return !passed.valid() && (passesOwn || !scene.isIn(own, row));
    };
    if (move.earlier)
        for (std::size_t row = caret; row < held.begin && looksAt(row); ++row)
            ;
    else
        for (std::size_t row = std::min(caret, pair.rows.end); row-- > held.end && looksAt(row);)
            ;
    if (!passed.valid())
        return std::nullopt;
    move.own = sequenceOf(scene, own);
    move.other = sequenceOf(scene, other);
    move.begin = move.own.size();
    for (std::size_t row = held.begin; row < held.end; ++row)
        if (const OperatorId op = kernelOf(scene, own, row); op.valid()) {
            move.begin = std::min(move.begin, placeIn(move.own, op));
            move.end = std::max(move.end, placeIn(move.own, op) + 1);
        }
    if (move.begin >= move.end) // it only serves an operator
        return std::nullopt;
    move.caret = placeIn(move.other, passed) + (move.earlier ? 0 : 1);
    return move;
}

std::vector<std::size_t> movedAlong(const TimelineScene &scene, const DeviceLane &lane,
    const SideBySide &pair, LaneRows held, std::size_t caret)
{
    std::vector<std::size_t> rows;
    const std::size_t end = std::min(std::max(held.end, caret), pair.rows.end);
    for (std::size_t row = std::min(held.begin, caret); row < end; ++row)
        if (scene.isIn(lane.blocks[pair.own], row))
            rows.push_back(row);
    return rows;
}

std::optional<PassedBySpan> passedBySpan(const TimelineScene &scene, const DeviceLane &lane,
    std::size_t block, std::size_t span, std::int32_t steps)
{
    const auto pair = sideBySideOf(lane, block);
    const TimelineBlock &own = lane.blocks[block];
    const LaneRows rows = pair ? pair->rows : own.rows;
    const OperatorId moved = scene.operatorOf(span);
    const std::int64_t way = steps < 0 ? -1 : 1;
    PassedBySpan passed{.row = span};
    auto at = static_cast<std::int64_t>(span);
    for (std::int32_t left = std::abs(steps); left > 0;) {
        at += way;
        if (at < static_cast<std::int64_t>(rows.begin) || at >= static_cast<std::int64_t>(rows.end))
            return std::nullopt;
        const auto row = static_cast<std::size_t>(at);
        const OperatorId next = scene.operatorOf(row);
        if (next.valid() && next != moved && scene.isIn(own, row)) {
            passed = {next, {}, row};
            --left;
        } else if (pair && scene.isIn(lane.blocks[pair->other], row)) {
            const LaneRows piece =
                pieceAt(lane, pair->other, static_cast<double>(scene.timeline->spans.start[row]));
            if (piece.begin == piece.end)
                continue;
            at = static_cast<std::int64_t>(way < 0 ? piece.begin : piece.end - 1);
            passed = {{}, piece, static_cast<std::size_t>(at)};
            --left;
        }
    }
    return passed;
}

std::optional<PieceMove> pieceMoveAround(const TimelineScene &scene, const DeviceLane &lane,
    const SideBySide &pair, std::size_t span, LaneRows piece, bool earlier)
{
    const TimelineBlock &own = lane.blocks[pair.own];
    const TimelineBlock &other = lane.blocks[pair.other];
    const OperatorId moved = kernelOf(scene, own, span);
    OperatorId first;
    OperatorId last;
    for (std::size_t row = piece.begin; row < piece.end; ++row)
        if (const OperatorId op = kernelOf(scene, other, row); op.valid()) {
            first = first.valid() ? first : op;
            last = op;
        }
    if (!moved.valid() || !first.valid())
        return std::nullopt;
    PieceMove move{.block = refOf(own),
        .beside = refOf(other),
        .own = sequenceOf(scene, own),
        .other = sequenceOf(scene, other),
        .earlier = earlier};
    move.begin = placeIn(move.own, moved);
    move.end = move.begin + 1;
    move.caret = earlier ? placeIn(move.other, first) : placeIn(move.other, last) + 1;
    return move;
}

} // namespace planloom
