#pragma once

#include "engine/gesture/piece_gesture.h"
#include "widgets/scene/timeline_scene.h"
#include "widgets/timeline/timeline_hit.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// Two blocks of a lane that run side by side, piece by piece.
struct SideBySide {
    std::size_t own = 0; ///< Indices into the lane's blocks.
    std::size_t other = 0;
    LaneRows rows{}; ///< From the first span of either to behind the last.
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0;
};
/// What runs beside a forward or backward block; nothing if nothing does. O(blocks around it)
std::optional<SideBySide> sideBySideOf(const DeviceLane &lane, std::size_t block);

/// The operators that run in a block, each once, in the order of their first parts; those that are run again
/// for a backward pass are none of its own. O(spans of the block)
std::vector<OperatorId> sequenceOf(const TimelineScene &scene, const TimelineBlock &block);

/// The spans of the piece of a block that runs at `nanoseconds`; none where another one does.
LaneRows pieceAt(const DeviceLane &lane, std::size_t block, double nanoseconds);

/// The border between two pieces nearest to `time`, among the rows of a pair; `before` is a row.
Caret pieceCaretAt(const DeviceLane &lane, const SideBySide &pair, double time);

/// The move of spans of the pair's own block to a caret among the rows of both: before the other block's
/// operator that stands behind the caret if they go to the left, behind the one before it if to the right.
/// @param held  rows; spans of the other block among them do not count
/// @param passesOwn  the own block's spans at the caret are passed over; else a caret beside them is none of
///   this function's business
/// @return nothing where nothing would change
std::optional<PieceMove> pieceMoveTo(const TimelineScene &scene, const DeviceLane &lane,
    const SideBySide &pair, LaneRows held, std::size_t caret, bool passesOwn);

/// Rows, ascending, of the own block's spans that go along with `held` when it goes to the caret: those and
/// all that stand between.
std::vector<std::size_t> movedAlong(const TimelineScene &scene, const DeviceLane &lane,
    const SideBySide &pair, LaneRows held, std::size_t caret);

/// What a span passes by steps to the left (below 0) or right: an operator of its own block a step, or a
/// whole piece of the block beside it.
struct PassedBySpan {
    OperatorId own{}; ///< Invalid where it is a piece.
    LaneRows piece{};
    std::size_t row = 0; ///< Of the one that is passed; of a piece its far end.
};
/// The last of `steps`; nothing if there are not so many. O(spans of both blocks)
std::optional<PassedBySpan> passedBySpan(const TimelineScene &scene, const DeviceLane &lane,
    std::size_t block, std::size_t span, std::int32_t steps);

/// A span of the pair's own block goes to the far side of a piece of the other, to its left or right; nothing
/// if either only serves operators.
std::optional<PieceMove> pieceMoveAround(const TimelineScene &scene, const DeviceLane &lane,
    const SideBySide &pair, std::size_t span, LaneRows piece, bool earlier);

} // namespace planloom
