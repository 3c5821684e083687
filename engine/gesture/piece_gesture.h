#pragma once

#include "engine/gesture/gesture.h"

#include <cstddef>
#include <vector>

namespace planloom {

/// A piece of a block goes to another place among the pieces of the block that runs beside it
/// (`InterleaveRule`, or a schedule that interleaves): finer than whole blocks, which run in one go of both.
///
///     F2 | B0      f0 b0 f1 b1 f2 b2        f2 goes before b1: f0 b0 f1 f2 b1 b2
///
/// Each block keeps the order of its own: what stands between comes along.
struct PieceMove {
    BlockRef block{}; ///< Whose piece it is.
    BlockRef beside{}; ///< That runs beside it.
    std::vector<OperatorId> own{}; ///< Of `block`, each once, in the order in which they run.
    std::vector<OperatorId> other{}; ///< Of `beside`.
    std::size_t begin = 0; ///< The piece: from here in `own`, up to `end`.
    std::size_t end = 0;
    std::size_t caret =
        0; ///< In `other`: it goes right before this one (earlier), or right behind the one before.
    bool earlier = true;
    bool onlyThis = false; ///< For this micro-batch alone.
    bool held =
        false; ///< It stays between its new neighbours: a second row keeps it behind, or before, the other.
};

/// Writes an `order` row between operators of the two blocks, for all micro-batches that are as far apart, or
/// for this one. Rows of the same piece which the new one contradicts, or which say less, give way.
/// @return refused where another row runs the other way round, which is named, with both of its operators;
/// where
///   there is no plan; or where there is nothing to go before or behind
Proposal proposePieceMove(const GestureContext &context, const PieceMove &move);

/// Runs two blocks side by side, and all that are as far apart: writes an `interleave` row of their stages,
/// in place of one that pairs the same passes of these stages otherwise. Where a row runs just these side by
/// side, they run apart again. Whether they wait for one another is for the plan to say.
/// @return refused where there is no plan, where the schedule pairs blocks itself, or for blocks that cannot
/// run so
Proposal proposeSideBySide(const GestureContext &context, BlockRef first, BlockRef second);

} // namespace planloom
