#include "engine/design/schedules/simulated_blocks.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

// Queues of a placement, as devices have them.
constexpr std::int32_t kTransfers = 1; ///< Sends and receives (QueueKind::Pipeline).
constexpr std::int32_t kTransfersBack = 2; ///< Of gradients (QueueKind::PipelineBack).
constexpr std::int32_t kReductions = 3; ///< Of gradients (QueueKind::Data).
static_assert(kPlacementCopies > kReductions); // QueueKind::Copy

std::int64_t nanosecondsOf(double seconds)
{
    return std::max<std::int64_t>(std::llround(seconds * 1e9), 1);
}

/// By block: of one that runs once per update the blocks of passes that it waits for, the backward passes of
/// its stage; of others nothing.
std::vector<std::vector<std::int32_t>> passesBefore(const std::vector<BlockInfo> &blocks)
{
    std::vector<std::vector<std::int32_t>> before(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b)
        for (std::size_t pass = 0; pass < blocks.size() && isOfUpdate(blocks[b].kind); ++pass)
            if (isBackward(blocks[pass].kind) && blocks[pass].stage == blocks[b].stage)
                before[b].push_back(static_cast<std::int32_t>(pass));
    return before;
}

/// Adds the blocks that run once a step.
void addUpdates(const std::vector<BlockInfo> &blocks, const std::map<DeviceId, std::int32_t> &groups,
    const std::vector<std::int32_t> &indexOf, StagePlacement &built)
{
    const auto before = passesBefore(blocks);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        std::set<std::int32_t> devices;
        for (const DeviceId device : blocks[b].devices)
            if (const auto found = groups.find(device); found != groups.end())
                devices.insert(found->second);
        if (!isOfUpdate(blocks[b].kind) || devices.empty() || blocks[b].seconds <= 0)
            continue;
        const auto index = static_cast<std::int32_t>(built.placement.blocks.size());
        built.placement.blocks.push_back({.id = index,
            .kind = nameOf(blocks[b].kind),
            .devices = {devices.begin(), devices.end()},
            .queue = blocks[b].kind == SegmentKind::Reduce ? kReductions : 0,
            .time = nanosecondsOf(blocks[b].seconds),
            .once = true});
        built.keys.emplace_back();
        for (const std::int32_t pass : before[b])
            if (indexOf[at(pass)] >= 0)
                built.placement.edges.push_back({indexOf[at(pass)], index, 0});
    }
}

} // namespace

std::map<DeviceId, std::int32_t> placementDevicesOf(const std::vector<BlockInfo> &blocks)
{
    std::map<DeviceId, std::vector<std::size_t>> signatures;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (isPass(blocks[b].kind))
            for (const DeviceId device : blocks[b].devices)
                signatures[device].push_back(b);
    std::map<std::vector<std::size_t>, std::int32_t> numbers;
    std::map<DeviceId, std::int32_t> groups;
    for (const auto &[device, signature] : signatures)
        groups[device] =
            numbers.try_emplace(signature, static_cast<std::int32_t>(numbers.size())).first->second;
    return groups;
}

StagePlacement placementOfBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dataFlow, const std::vector<std::int64_t> &held,
    const std::vector<std::int64_t> &limit)
{
    const auto groups = placementDevicesOf(blocks);
    StagePlacement built;
    Placement &placement = built.placement;
    placement.devices = 1;
    for (const auto &[device, group] : groups)
        placement.devices = std::max(placement.devices, group + 1);
    // By group: what its stages hold; the least room of its devices.
    std::vector<std::int64_t> most(at(placement.devices), 0);
    std::vector<std::set<std::pair<StageId, std::int32_t>>> stagesOf(at(placement.devices));
    if (!held.empty())
        placement.memoryLimit.assign(at(placement.devices), kMostPlacementTime);
    for (const auto &[device, group] : groups)
        if (at(device) < held.size()) {
            most[at(group)] = std::max(most[at(group)], held[at(device)]);
            placement.memoryLimit[at(group)] =
                std::clamp<std::int64_t>(limit[at(device)], 0, placement.memoryLimit[at(group)]);
        }
    std::map<std::tuple<StageId, std::int32_t, std::int32_t>, bool> splits; // by stage, lane, slice
    for (const BlockInfo &block : blocks) {
        splits[{block.stage, block.lane, block.slice}] |= block.kind == SegmentKind::WeightGradient;
        if (block.kind == SegmentKind::Forward)
            for (const DeviceId device : block.devices)
                stagesOf[at(groups.at(device))].insert({block.stage, block.lane});
    }
    std::vector<std::int32_t> indexOf(blocks.size(), -1);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const BlockInfo &block = blocks[b];
        const bool transfer = block.kind == SegmentKind::Transfer;
        std::set<std::int32_t> devices;
        for (const DeviceId device : block.devices)
            if (const auto found = groups.find(device); found != groups.end())
                devices.insert(found->second);
        if ((!isPass(block.kind) && !transfer) || devices.empty() || (transfer && block.seconds <= 0))
            continue;
        indexOf[b] = static_cast<std::int32_t>(placement.blocks.size());
        PlacementBlock own{.id = indexOf[b],
            .kind = nameOf(block.kind),
            .devices = {devices.begin(), devices.end()},
            .time = nanosecondsOf(block.seconds)};
        if (transfer) {
            own.queue = goesBack(block, blocks) ? kTransfersBack : kTransfers;
            placement.blocks.push_back(std::move(own));
            built.keys.emplace_back();
            continue;
        }
        const std::int32_t group = *devices.begin();
        const auto share = static_cast<std::int64_t>(
            std::max<std::size_t>(stagesOf[at(group)].size(), 1) * static_cast<std::size_t>(block.slices));
        const bool last = splits[{block.stage, block.lane, block.slice}]
            ? block.kind == SegmentKind::WeightGradient
            : block.kind != SegmentKind::Forward;
        own.memory = most[at(group)] / share * (block.kind == SegmentKind::Forward ? 1 : last ? -1 : 0);
        placement.blocks.push_back(std::move(own));
        built.keys.push_back(keyOf(block));
    }
    std::set<PlacementEdge> edges;
    const auto link = [&](std::int32_t earlier, std::int32_t later, std::int32_t distance) {
        // What comes without time is there with its source.
        while (earlier >= 0 && indexOf[at(earlier)] < 0)
            earlier = blocks[at(earlier)].kind == SegmentKind::Transfer ? blocks[at(earlier)].source : -1;
        if (earlier < 0 || later < 0 || indexOf[at(later)] < 0 || distance < 0
            || (earlier == later && distance == 0))
            return;
        edges.insert({indexOf[at(earlier)], indexOf[at(later)], distance});
    };
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].kind == SegmentKind::Transfer) {
            link(blocks[b].source, static_cast<std::int32_t>(b), 0);
            link(static_cast<std::int32_t>(b), blocks[b].target, 0);
        }
    for (const BlockDependency &dependency : dataFlow)
        if (dependency.groupSize == 0 && dependency.microBatch < 0)
            link(dependency.earlier, dependency.later, dependency.offset);
    placement.edges.assign(edges.begin(), edges.end());
    addUpdates(blocks, groups, indexOf, built);
    return built;
}

namespace {

/// When a block of one micro-batch ran on a device.
struct BlockExtent {
    std::vector<std::pair<std::int64_t, std::int64_t>> runs{}; ///< Of what it computes, and waits for inside.
    std::int64_t computed = 0; ///< End of its last computation.
    std::int64_t last = 0; ///< End of all that it does.

    /// What it takes up to its last computation. What needs nothing of other blocks may have run long before
    /// the rest: the time between is none of the block's.
    std::int64_t busy()
    {
        std::sort(runs.begin(), runs.end());
        std::int64_t sum = 0;
        std::int64_t until = 0;
        for (const auto &[begin, end] : runs) {
            const std::int64_t to = std::min(end, computed);
            sum += std::max<std::int64_t>(to - std::max(begin, until), 0);
            until = std::max(until, to);
        }
        return sum;
    }
};

/// By segment of a device: the block of the plan that it is; -1 for none.
std::vector<std::int32_t> blocksOfSegments(const PlanAnswer &answer, std::size_t device)
{
    const auto &segmentOf = answer.materialized->segmentOf[device];
    std::vector<std::int32_t> blockOf(answer.execution->devices[device].segments.size(), -1);
    for (std::size_t b = 0; b < segmentOf.size(); ++b)
        if (segmentOf[b] >= 0)
            blockOf[at(segmentOf[b])] = static_cast<std::int32_t>(b);
    return blockOf;
}

/// The extents of all blocks on one device, by block and micro-batch; none for blocks that it does not run.
std::vector<std::vector<BlockExtent>> extentsOn(
    std::size_t device, const PlanAnswer &answer, const Timeline &timeline)
{
    const auto blockOf = blocksOfSegments(answer, device);
    std::vector<std::vector<BlockExtent>> extents(answer.materialized->blocks.size());
    const SpanColumns &spans = timeline.spans;
    for (std::size_t row = timeline.deviceBegin[device]; row < timeline.deviceBegin[device + 1]; ++row) {
        const std::int32_t block = blockOf[at(spans.segment[row])];
        const std::int32_t microBatch = spans.microBatch[row];
        if (block < 0 || microBatch < 0 || microBatch >= answer.execution->microBatches)
            continue;
        const bool transfer = answer.materialized->blocks[at(block)].kind == SegmentKind::Transfer;
        auto &own = extents[at(block)];
        own.resize(at(answer.execution->microBatches));
        BlockExtent &extent = own[at(microBatch)];
        const std::int64_t end = spans.start[row] + spans.duration[row];
        extent.last = std::max(extent.last, end);
        const QueueKind queue = spans.queue[row];
        if (transfer || queue == QueueKind::Compute || queue == QueueKind::Tensor)
            extent.runs.emplace_back(spans.start[row], end);
        if (transfer || queue == QueueKind::Compute)
            extent.computed = std::max(extent.computed, end);
    }
    return extents;
}

/// Calls `visit` with one device of each class of those that do the same.
template<typename Visit> void forEachClass(const Timeline &timeline, const Visit &visit)
{
    std::set<std::int32_t> seen;
    for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d)
        if (d >= timeline.symmetryClass.size() || seen.insert(timeline.symmetryClass[d]).second)
            visit(d);
}

/// What reductions and updates of the only update take on a device; see `simulatedBlocks`.
void addUpdateSeconds(std::size_t device, const PlanAnswer &answer, const Timeline &timeline,
    const std::vector<std::vector<BlockExtent>> &extents,
    const std::vector<std::vector<std::int32_t>> &before, std::vector<BlockInfo> &blocks)
{
    std::vector<std::int64_t> ready(blocks.size(), 0); // when the last block that it waits for has computed
    for (std::size_t b = 0; b < blocks.size(); ++b)
        for (const std::int32_t pass : before[b])
            for (const BlockExtent &extent : extents[at(pass)])
                ready[b] = std::max(ready[b], extent.computed);
    const auto blockOf = blocksOfSegments(answer, device);
    std::vector<std::int64_t> sums(blocks.size(), 0);
    const SpanColumns &spans = timeline.spans;
    for (std::size_t row = timeline.deviceBegin[device]; row < timeline.deviceBegin[device + 1]; ++row) {
        const std::int32_t block = blockOf[at(spans.segment[row])];
        if (block < 0 || !isOfUpdate(blocks[at(block)].kind))
            continue;
        const std::int64_t end = spans.start[row] + spans.duration[row];
        if (blocks[at(block)].kind == SegmentKind::Optimizer && spans.queue[row] == QueueKind::Compute)
            sums[at(block)] += spans.duration[row];
        if (blocks[at(block)].kind == SegmentKind::Reduce && spans.queue[row] == QueueKind::Data)
            sums[at(block)] += std::max<std::int64_t>(end - std::max(spans.start[row], ready[at(block)]), 0);
    }
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (isOfUpdate(blocks[b].kind))
            blocks[b].seconds = std::max(blocks[b].seconds, static_cast<double>(sums[b]) / 1e9);
}

} // namespace

std::vector<BlockInfo> simulatedBlocks(const PlanAnswer &answer, const Timeline &timeline)
{
    std::vector<BlockInfo> blocks = answer.materialized->blocks;
    std::vector<double> late(blocks.size(), 0);
    for (BlockInfo &block : blocks)
        block.seconds = 0;
    const auto before = passesBefore(blocks);
    forEachClass(timeline, [&](std::size_t d) {
        auto extents = extentsOn(d, answer, timeline);
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            std::vector<std::pair<std::int64_t, std::int64_t>> durations; // and how late what is sent is
            for (BlockExtent &extent : extents[b])
                if (extent.computed > 0)
                    durations.emplace_back(extent.busy(), extent.last - extent.computed);
            if (durations.empty())
                continue;
            std::sort(durations.begin(), durations.end());
            const auto [nanoseconds, behind] =
                durations[blocks[b].kind == SegmentKind::Transfer ? 0 : durations.size() / 2];
            blocks[b].seconds = std::max(blocks[b].seconds, static_cast<double>(nanoseconds) / 1e9);
            late[b] = std::max(late[b], static_cast<double>(behind) / 1e9);
        }
        if (answer.execution->updates == 1)
            addUpdateSeconds(d, answer, timeline, extents, before, blocks);
    });
    for (BlockInfo &block : blocks)
        if (block.kind == SegmentKind::Transfer && block.seconds > 0)
            block.seconds += late[at(block.source)];
    return blocks;
}

std::vector<double> simulatedCopies(const PlanAnswer &answer, const Timeline &timeline)
{
    std::vector<double> copies(answer.materialized->blocks.size(), 0);
    forEachClass(timeline, [&](std::size_t d) {
        const auto blockOf = blocksOfSegments(answer, d);
        std::map<std::int32_t, std::vector<std::int64_t>> sums; // by block: those of its micro-batches
        const SpanColumns &spans = timeline.spans;
        for (std::size_t row = timeline.deviceBegin[d]; row < timeline.deviceBegin[d + 1]; ++row) {
            const std::int32_t block = blockOf[at(spans.segment[row])];
            const std::int32_t microBatch = spans.microBatch[row];
            if (block < 0 || spans.queue[row] != QueueKind::Copy || microBatch < 0
                || microBatch >= answer.execution->microBatches)
                continue;
            auto &own = sums[block];
            own.resize(at(answer.execution->microBatches), 0);
            own[at(microBatch)] += spans.duration[row];
        }
        for (auto &[block, own] : sums) {
            const auto middle = own.begin() + static_cast<std::ptrdiff_t>(own.size() / 2);
            std::nth_element(own.begin(), middle, own.end());
            copies[at(block)] = std::max(copies[at(block)], static_cast<double>(*middle) / 1e9);
        }
    });
    return copies;
}

} // namespace planloom
