#include "widgets/timeline/timeline_holds.h"

#include "widgets/timeline/timeline_followers.h"
#include "widgets/timeline/timeline_gestures.h"
#include "widgets/timeline/timeline_proposals.h"
#include "widgets/timeline/timeline_text.h"

#include <string>

namespace planloom {

namespace {

/// `base` with one row more; what only says what holds anyway adds nothing.
Proposal withOther(const GestureContext &context, const Proposal &base, bool earlier,
    const std::string &neighbour, const std::function<Proposal(const GestureContext &)> &other)
{
    Proposal both = joinedProposal(context, base, other);
    if (!both.refusal && both.edit == base.edit)
        return base;
    both.words = base.words + (earlier ? ", and not before " : ", and not behind ") + neighbour;
    return both;
}

} // namespace

Proposal holdingBlock(const GestureContext &context, const DeviceLane &lane, std::size_t own,
    std::size_t caret, bool onlyThis, const Proposal &base)
{
    if (!base.accepted() || own >= lane.blocks.size())
        return base;
    const bool earlier = caret <= own;
    const TimelineBlock *neighbour = nullptr;
    if (earlier) {
        for (std::size_t i = caret; i-- > 0 && !neighbour;)
            neighbour = lane.blocks[i].isOrdered() ? &lane.blocks[i] : nullptr;
    } else {
        for (std::size_t i = caret; i < lane.blocks.size() && !neighbour; ++i)
            neighbour = lane.blocks[i].isOrdered() ? &lane.blocks[i] : nullptr;
    }
    if (!neighbour)
        return base;
    const BlockRef moved = refOf(lane.blocks[own]);
    const BlockRef other = refOf(*neighbour);
    if (moved.stage == other.stage && moved.direction == other.direction
        && moved.part.lane == other.part.lane)
        return base; // the micro-batches of a block run in their order
    return withOther(context, base, earlier, labelOf(*neighbour), [&](const GestureContext &after) {
        return earlier ? blockBefore(after, other, moved, onlyThis)
                       : blockBefore(after, moved, other, onlyThis);
    });
}

Proposal holdingSpan(const GestureContext &context, const TimelineScene &scene, const TimelineBlock &block,
    std::size_t own, std::size_t caret, bool onlyThis, const Proposal &base)
{
    const LaneRows rows = block.rows;
    if (!base.accepted() || own < rows.begin || own >= rows.end)
        return base;
    const bool earlier = caret <= own;
    const OperatorId moved = scene.operatorOf(own);
    OperatorId other{};
    const auto isOther = [&](std::size_t row) {
        const OperatorId op = scene.operatorOf(row);
        other = op.valid() && op != moved && scene.isIn(block, row) ? op : OperatorId{};
        return other.valid();
    };
    if (earlier) {
        for (std::size_t row = caret; row-- > rows.begin && !isOther(row);)
            ;
    } else {
        for (std::size_t row = caret; row < rows.end && !isOther(row); ++row)
            ;
    }
    if (!other.valid())
        return base;
    return withOther(
        context, base, earlier, context.graph().at(other).name, [&](const GestureContext &after) {
            return proposeOrder(after,
                {.first = {earlier ? other : moved},
                    .second = {earlier ? moved : other},
                    .microBatch = onlyThis ? scene.timeline->spans.microBatch[own] : -1});
        });
}

} // namespace planloom
