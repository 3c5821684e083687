#include "widgets/timeline/timeline_followers.h"

#include "widgets/timeline/timeline_gestures.h"
#include "widgets/timeline/timeline_pieces.h"
#include "widgets/timeline/timeline_proposals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace planloom {

namespace {

constexpr int kMostTries = 6; ///< Rows that are tried at once: each may take a millisecond.

auto keyOf(const BlockRef &block)
{
    return std::tuple(block.stage.index, block.direction, block.microBatch, block.part);
}

bool sameKind(const BlockRef &a, const BlockRef &b)
{
    return a.stage == b.stage && a.direction == b.direction && a.part == b.part;
}

const TimelineBlock *findBlock(const TimelineScene &scene, std::int32_t lane, const BlockRef &wanted)
{
    if (lane < 0 || static_cast<std::size_t>(lane) >= scene.lanes.size())
        return nullptr;
    const auto &blocks = scene.lanes[static_cast<std::size_t>(lane)].blocks;
    const auto found = std::find_if(blocks.begin(), blocks.end(),
        [&](const TimelineBlock &block) { return block.isOrdered() && refOf(block) == wanted; });
    return found == blocks.end() ? nullptr : &*found;
}

/// One that runs after others which it should precede.
struct Overtaken {
    std::size_t at = 0; ///< Index into the followers.
    std::vector<std::size_t> by{}; ///< Later ones of them that run before it.
};

/// By follower, in their order: those that others overtake. `place` is where each runs in the would-be
/// timeline, -1 if it does not. O(followers), and the number of pairs that is found.
std::vector<Overtaken> overtaken(const std::vector<std::int64_t> &place)
{
    constexpr std::size_t kMostPairs = 200'000; // of a whole that is turned around, the first say enough
    std::vector<Overtaken> found;
    std::vector<std::int64_t> least(place.size() + 1, INT64_MAX); // of those from here on
    for (std::size_t i = place.size(); i-- > 0;)
        least[i] = std::min(least[i + 1], place[i] < 0 ? INT64_MAX : place[i]);
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < place.size() && pairs < kMostPairs; ++i) {
        if (place[i] < 0 || least[i + 1] > place[i])
            continue;
        Overtaken one{i, {}};
        for (std::size_t j = i + 1; j < place.size() && least[j] < place[i]; ++j, ++pairs) {
            if (place[j] >= 0 && place[j] < place[i])
                one.by.push_back(j);
        }
        found.push_back(std::move(one));
    }
    return found;
}

/// True if `x` comes before `y` for every micro-batch, as far apart as these, and none of them is the moved
/// one.
bool holdsForAll(const Followers &followers, const BlockRef &x, const BlockRef &y)
{
    const std::vector<BlockRef> &all = followers.all;
    if (followers.onlyThis
        && std::any_of(followers.moved.begin(), followers.moved.end(),
            [&](const BlockRef &moved) { return sameKind(x, moved) || sameKind(y, moved); }))
        return false;
    std::map<std::int32_t, std::size_t> placeOfX;
    std::map<std::int32_t, std::size_t> placeOfY;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (sameKind(all[i], x))
            placeOfX.emplace(all[i].microBatch, i);
        if (sameKind(all[i], y))
            placeOfY.emplace(all[i].microBatch, i);
    }
    for (const auto &[microBatch, place] : placeOfX) {
        const auto other = placeOfY.find(microBatch + y.microBatch - x.microBatch);
        if (other != placeOfY.end() && other->second < place)
            return false;
    }
    return true;
}

KeptOrder keepingBlocks(const GestureContext &context, const Proposal &base, const Followers &followers,
    const TimelineScene &would)
{
    KeptOrder kept{base, 0, 0};
    std::map<decltype(keyOf(BlockRef{})), std::int64_t> placeOf;
    for (const TimelineBlock &block : would.lanes[static_cast<std::size_t>(followers.lane)].blocks) {
        if (block.isOrdered())
            placeOf.emplace(keyOf(refOf(block)), static_cast<std::int64_t>(placeOf.size()));
    }
    std::vector<std::int64_t> place;
    for (const BlockRef &block : followers.blocks) {
        const auto found = placeOf.find(keyOf(block));
        place.push_back(found == placeOf.end() ? -1 : found->second);
    }
    int tries = 0;
    for (const Overtaken &one : overtaken(place)) {
        const BlockRef &x = followers.blocks[one.at];
        // Of each kind the first: mostly its later micro-batches run behind it anyway.
        std::vector<BlockRef> kinds;
        for (const std::size_t other : one.by) {
            const BlockRef &y = followers.blocks[other];
            if (std::none_of(
                    kinds.begin(), kinds.end(), [&](const BlockRef &known) { return sameKind(known, y); }))
                kinds.push_back(y);
        }
        for (const BlockRef &y : kinds) {
            if (++tries > kMostTries)
                break;
            const bool onlyThis = !holdsForAll(followers, x, y);
            Proposal next = joinedProposal(context, kept.proposal,
                [&](const GestureContext &after) { return blockBefore(after, x, y, onlyThis); });
            if (next.refusal || next.edit == kept.proposal.edit) {
                ++kept.lost;
                continue;
            }
            kept.proposal = std::move(next);
            ++kept.rows;
        }
        if (kept.rows > 0)
            break; // the others may be too early only because this one is
    }
    return kept;
}

/// Operators of a block (those with a place) from which data flows to `op`, or to which it flows from there;
/// `op` among them. O(edges of the block)
std::vector<bool> reached(
    const GestureContext &context, OperatorId op, const std::vector<std::int64_t> &placeOf, bool forwards)
{
    const Graph &graph = context.graph();
    const auto &uses = context.index().uses();
    std::vector<bool> found(graph.operators.size(), false);
    std::vector<OperatorId> open{op};
    found[static_cast<std::size_t>(op.index)] = true;
    while (!open.empty()) {
        const Operator &at = graph.at(open.back());
        open.pop_back();
        for (const TensorId tensor : forwards ? at.outputs : at.inputs) {
            if (!tensor.valid())
                continue;
            const auto index = static_cast<std::size_t>(tensor.index);
            for (const OperatorId next : forwards ? uses.consumers[index] : uses.producers[index]) {
                const auto n = static_cast<std::size_t>(next.index);
                if (found[n] || placeOf[n] < 0)
                    continue;
                found[n] = true;
                open.push_back(next);
            }
        }
    }
    return found;
}

KeptOrder keepingOperators(const GestureContext &context, const Proposal &base, const Followers &followers,
    const TimelineScene &would)
{
    KeptOrder kept{base, 0, 0};
    const TimelineBlock *block = findBlock(would, followers.lane, followers.within);
    if (!block || !followers.first.valid() || !followers.second.valid())
        return kept;
    const std::vector<OperatorId> sequence = sequenceOf(would, *block);
    std::vector<std::int64_t> placeOf(would.graph().operators.size(), -1);
    for (std::size_t i = 0; i < sequence.size(); ++i)
        placeOf[static_cast<std::size_t>(sequence[i].index)] = static_cast<std::int64_t>(i);
    std::vector<std::int64_t> place;
    for (const OperatorId op : followers.operators)
        place.push_back(placeOf[static_cast<std::size_t>(op.index)]);
    // What `first` needs runs before it, and so before all that needs `second`.
    const std::vector<bool> needed = reached(context, followers.first, placeOf, false);
    const std::vector<bool> needing = reached(context, followers.second, placeOf, true);
    const auto isOf = [](const std::vector<bool> &set, OperatorId op) {
        return set[static_cast<std::size_t>(op.index)];
    };
    int tries = 0;
    for (const Overtaken &one : overtaken(place)) {
        const OperatorId x = followers.operators[one.at];
        std::vector<OperatorId> others;
        for (const std::size_t other : one.by) {
            if (isOf(needing, x) && isOf(needed, followers.operators[other]))
                ++kept.lost;
            else
                others.push_back(followers.operators[other]);
        }
        if (others.empty() || kept.rows > 0 || tries == kMostTries)
            continue;
        std::sort(others.begin(), others.end());
        ++tries;
        Proposal next = joinedProposal(context, kept.proposal, [&](const GestureContext &after) {
            return proposeOrder(after, {.first = {x}, .second = others});
        });
        if (next.refusal || next.edit == kept.proposal.edit) {
            kept.lost += static_cast<std::int32_t>(others.size());
            continue;
        }
        kept.proposal = std::move(next);
        ++kept.rows; // the others may be too early only because this one is
    }
    return kept;
}

} // namespace

namespace {

/// The operators of a block, in the direction it runs.
std::vector<OperatorId> operatorsOf(const GestureContext &context, const BlockRef &block)
{
    std::vector<OperatorId> operators = operatorsOfStage(context, block.stage);
    if (block.direction == Direction::Backward) {
        std::vector<OperatorId> mirrors;
        for (const OperatorId op : operators) {
            if (context.graph().at(op).mirror.valid())
                mirrors.push_back(context.graph().at(op).mirror);
        }
        std::sort(mirrors.begin(), mirrors.end());
        return mirrors;
    }
    return operators;
}

} // namespace

Proposal blockBefore(const GestureContext &context, const BlockRef &x, const BlockRef &y, bool onlyThis)
{
    Proposal proposal = sameKind(x, y) ? proposeOrder(context,
                            {.first = operatorsOf(context, x),
                                .second = operatorsOf(context, y),
                                .microBatchOffset = y.microBatch - x.microBatch,
                                .microBatch = onlyThis ? x.microBatch : -1,
                                .part = x.part,
                                .secondPart = y.part})
                                       : proposeBlockOrder(context, x, y, onlyThis);
    const bool replaces = std::any_of(proposal.edit.splices.begin(), proposal.edit.splices.end(),
        [](const TableSplice &splice) { return !splice.removed.empty(); });
    if (!proposal.refusal
        && replaces) { // another distance for the same pair is for a person to replace, not for its followers
        std::string text;
        for (const std::string &row : proposal.rows)
            text += row + "\n";
        proposal.edit = appendRows(context.document, TableDocument(text).table().rows);
        proposal.yielding.clear();
        proposal.yieldingWords.clear();
    }
    return proposal;
}

Followers followersOfBlock(const DeviceLane &lane, std::size_t own, std::size_t caret, std::size_t first,
    std::size_t second, bool onlyThis, bool swaps)
{
    Followers followers;
    followers.lane = lane.device.index;
    followers.moved.push_back(refOf(lane.blocks[own]));
    if (swaps && caret < lane.blocks.size())
        followers.moved.push_back(refOf(lane.blocks[caret]));
    followers.onlyThis = onlyThis;
    followers.blockFirst = refOf(lane.blocks[first]);
    followers.blockSecond = refOf(lane.blocks[second]);
    const auto isMoved = [&](std::size_t i) {
        const auto isOf = [&](std::size_t moved) {
            return onlyThis ? i == moved : sameKind(refOf(lane.blocks[i]), refOf(lane.blocks[moved]));
        };
        return isOf(own) || (swaps && caret < lane.blocks.size() && isOf(caret));
    };
    for (std::size_t i = 0; i < lane.blocks.size(); ++i) {
        if (!lane.blocks[i].isOrdered() || isMoved(i))
            continue;
        followers.all.push_back(refOf(lane.blocks[i]));
        if (i >= std::min(own, caret))
            followers.blocks.push_back(refOf(lane.blocks[i]));
    }
    return followers;
}

Followers followersOfSpan(const TimelineScene &scene, const DeviceLane &lane, std::size_t block,
    std::size_t own, std::size_t caret, OperatorId first, OperatorId second)
{
    Followers followers;
    followers.lane = lane.device.index;
    followers.amongSpans = true;
    followers.within = refOf(lane.blocks[block]);
    followers.first = first;
    followers.second = second;
    TimelineBlock behind = lane.blocks[block];
    behind.rows.begin = std::clamp(std::min(own, caret), behind.rows.begin, behind.rows.end);
    const OperatorId moved = scene.operatorOf(own);
    followers.operators = sequenceOf(scene, behind);
    std::erase(followers.operators, moved);
    return followers;
}

bool showsMove(const TimelineScene &scene, const Followers &followers)
{
    if (!followers.amongSpans) {
        const TimelineBlock *first = findBlock(scene, followers.lane, followers.blockFirst);
        const TimelineBlock *second = findBlock(scene, followers.lane, followers.blockSecond);
        return first && second && first->begin < second->begin;
    }
    const TimelineBlock *block = findBlock(scene, followers.lane, followers.within);
    if (!block)
        return false;
    const std::vector<OperatorId> sequence = sequenceOf(scene, *block);
    const auto first = std::find(sequence.begin(), sequence.end(), followers.first);
    const auto second = std::find(sequence.begin(), sequence.end(), followers.second);
    return first != sequence.end() && second != sequence.end() && first < second;
}

KeptOrder keepingOrder(const GestureContext &context, const Proposal &base, const Followers &followers,
    const TimelineScene &would)
{
    if (followers.empty() || base.refusal || followers.lane < 0
        || static_cast<std::size_t>(followers.lane) >= would.lanes.size()
        || would.graph().operators.size() != context.graph().operators.size())
        return {base, 0, 0};
    KeptOrder kept = followers.amongSpans ? keepingOperators(context, base, followers, would)
                                          : keepingBlocks(context, base, followers, would);
    kept.proposal.words = base.words; // the gesture is the same, its followers are only held
    return kept;
}

} // namespace planloom
