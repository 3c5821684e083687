#pragma once

#include "engine/gesture/gesture.h"
#include "widgets/scene/timeline_scene.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// What happens to those that follow when a block or an operator is moved to another place in time.
///
/// A row says only what comes before what. The engine starts each block as soon as it can, and takes
/// operators in the order of the model: those that need not wait fill the gap that the moved one makes for
/// others, and so change places with them.
enum class FollowersPolicy : std::uint8_t {
    CloseGaps, ///< They may: the gesture writes its own row alone.
    KeepOrder, ///< They may not: rows are added for those that would, and only for those.
};

/// Those behind a place of a device, in their order, which is to be kept while something is moved there.
struct Followers {
    std::int32_t lane = -1; ///< Index into `TimelineScene::lanes`.
    /// Blocks that follow, without the moved ones (of all micro-batches, if all are moved).
    std::vector<BlockRef> blocks{};
    std::vector<BlockRef>
        all{}; ///< All blocks of the lane but the moved ones: whether something holds for every micro-batch.
    std::vector<BlockRef> moved{}; ///< One, or the two that change places.
    bool onlyThis = false; ///< Only this micro-batch of them.
    /// Or, where an operator was moved in its block, those of that block.
    BlockRef within{};
    std::vector<OperatorId> operators{};
    /// What the gesture itself puts in this order: `blockFirst` before `blockSecond`, or these operators.
    BlockRef blockFirst{};
    BlockRef blockSecond{};
    OperatorId first{};
    OperatorId second{};
    bool amongSpans = false;

    bool empty() const { return blocks.size() < 2 && operators.size() < 2; }
};

/// Those that follow when block `own` of a lane goes to the caret before `caret`; `first` and `second`
/// (indices too) are what the gesture orders. With `swaps` the two change places.
Followers followersOfBlock(const DeviceLane &lane, std::size_t own, std::size_t caret, std::size_t first,
    std::size_t second, bool onlyThis, bool swaps);
/// Those that follow when span `own` goes to the caret before span `caret`, both of block `block`. O(spans of
/// the block)
Followers followersOfSpan(const TimelineScene &scene, const DeviceLane &lane, std::size_t block,
    std::size_t own, std::size_t caret, OperatorId first, OperatorId second);

/// `x` before `y`, by a row of its own; the same kind of block of two micro-batches too.
Proposal blockBefore(const GestureContext &context, const BlockRef &x, const BlockRef &y, bool onlyThis);

/// A timeline that shows what the gesture wrote. O(blocks, or spans of the block)
bool showsMove(const TimelineScene &scene, const Followers &followers);

/// A gesture that keeps its followers in order, as far as is known.
struct KeptOrder {
    Proposal proposal{};
    std::int32_t rows = 0; ///< Written for it, by this step.
    std::int32_t lost = 0; ///< Followers that change places all the same: what they need runs the other way.
};

/// `base` (which may be empty), and one more row for each kind of follower that came before its turn in the
/// timeline `would`, to which `base` leads: a row for all micro-batches where the order holds for all of them
/// now, else for this one.
///
/// Rows lead to another timeline, in which others may be too early: to be asked again with it, until no row
/// is added. O(blocks, or spans of the block)
KeptOrder keepingOrder(const GestureContext &context, const Proposal &base, const Followers &followers,
    const TimelineScene &would);

} // namespace planloom
