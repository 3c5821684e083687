#include "widgets/scene/timeline_scene.h"

#include "engine/analyse/statistics.h"
#include "engine/base/background_disposal.h"
#include "engine/base/in_parallel.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kFewRows = 10'000; ///< Not worth other threads.

/// What decides a segment: the least of what decides its operators. Looked at once, however many
/// micro-batches run it.
class LeastDecided
{
public:
    explicit LeastDecided(const std::vector<DecidedBy> &decidedBy)
        : m_decidedBy(decidedBy)
    {
    }

    DecidedBy of(std::int32_t number, const Segment &segment)
    {
        const auto [known, isNew] = m_known.try_emplace(number, DecidedBy::Row);
        if (!isNew)
            return known->second;
        bool any = false;
        for (const Instruction &instruction : segment.instructions) {
            if (instruction.kind != InstructionKind::Kernel || !instruction.op.valid()
                || static_cast<std::size_t>(instruction.op.index) >= m_decidedBy.size())
                continue;
            any = true;
            known->second =
                std::min(known->second, m_decidedBy[static_cast<std::size_t>(instruction.op.index)]);
        }
        if (!any)
            known->second = DecidedBy::Default;
        return known->second;
    }

private:
    const std::vector<DecidedBy> &m_decidedBy;
    std::map<std::int32_t, DecidedBy> m_known; ///< By segment.
};

std::vector<TimelineBlock> blocksOf(const TimelineScene &scene, LaneRows rows)
{
    LeastDecided least(scene.decidedBy);
    const SpanColumns &spans = scene.timeline->spans;
    std::vector<TimelineBlock> blocks;
    std::int32_t segment = -1;
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
        const std::int64_t end = spans.start[row] + spans.duration[row];
        if (!blocks.empty() && spans.segment[row] == segment
            && spans.microBatch[row] == blocks.back().microBatch) {
            blocks.back().end = end;
            blocks.back().rows.end = row + 1;
            continue;
        }
        segment = spans.segment[row];
        const Segment *found = scene.findSegment(row);
        blocks.push_back({spans.start[row], end, found ? found->kind : SegmentKind::Forward,
            found ? found->stage : StageId{}, spans.microBatch[row], {row, row + 1}});
        if (found)
            blocks.back().decidedBy = least.of(segment, *found);
    }
    return blocks;
}

WarmUp warmUpOf(const DeviceLane &lane)
{
    WarmUp warmUp;
    for (const TimelineBlock &block : lane.blocks) {
        if (!block.isOrdered() || block.stage.index != lane.stage)
            continue;
        if (block.kind == SegmentKind::Backward)
            break;
        if (warmUp.count == 0) {
            warmUp.stage = block.stage;
            warmUp.begin = block.begin;
            warmUp.each = block.end - block.begin;
        }
        ++warmUp.count;
        warmUp.end = block.end;
    }
    return warmUp;
}

/// Rows of the spans of a device: none if the timeline does not reach it.
LaneRows rowsOfDevice(const Timeline &timeline, std::size_t device)
{
    if (device + 1 >= timeline.deviceBegin.size())
        return {};
    return {timeline.deviceBegin[device], timeline.deviceBegin[device + 1]};
}

/// Which sum of `BusyBefore` the spans of a segment count in, besides `busy`.
enum class BusyShare : std::uint8_t { None, Backward, Optimizer };

BusyShare shareOf(SegmentKind kind)
{
    switch (directionOf(kind)) {
    case Direction::Backward:
        return BusyShare::Backward;
    case Direction::Optimizer:
        return BusyShare::Optimizer;
    case Direction::Forward:
        break;
    }
    return BusyShare::None;
}

/// Sums up durations over all rows. Device by device, since what a row belongs to is looked up in small
/// tables then.
void sumUpBusyTime(TimelineScene &scene)
{
    const SpanColumns &spans = scene.timeline->spans;
    scene.before.reserve(spans.size() + 1);
    BusyBefore sum;
    std::vector<BusyShare> shares;
    for (std::size_t device = 0; device < scene.plan->devices.size(); ++device) {
        shares.clear();
        for (const Segment &segment : scene.plan->devices[device].segments)
            shares.push_back(shareOf(segment.kind));
        const LaneRows rows = rowsOfDevice(*scene.timeline, device);
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            scene.before.push_back(sum);
            const std::int64_t duration = spans.duration[row];
            sum.busy += duration;
            const auto segment = static_cast<std::size_t>(spans.segment[row]);
            const BusyShare share = segment < shares.size() ? shares[segment] : BusyShare::None;
            if (share == BusyShare::Backward)
                sum.backward += duration;
            else if (share == BusyShare::Optimizer)
                sum.optimizer += duration;
            if (spans.queue[row] == QueueKind::Compute)
                scene.longestSpan = std::max(scene.longestSpan, duration);
        }
    }
    scene.before.push_back(sum);
}

/// The operator of every row, -1 for none, by small tables as above.
std::vector<std::int32_t> operatorOfRows(const TimelineScene &scene)
{
    const SpanColumns &spans = scene.timeline->spans;
    std::vector<std::int32_t> result(spans.size(), -1);
    std::vector<std::size_t> segmentBegin;
    std::vector<std::int32_t> operators;
    for (std::size_t device = 0; device < scene.plan->devices.size(); ++device) {
        segmentBegin.assign(1, 0);
        operators.clear();
        for (const Segment &segment : scene.plan->devices[device].segments) {
            for (const Instruction &instruction : segment.instructions)
                operators.push_back(instruction.op.index);
            segmentBegin.push_back(operators.size());
        }
        const LaneRows rows = rowsOfDevice(*scene.timeline, device);
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            const auto segment = static_cast<std::size_t>(spans.segment[row]);
            const auto instruction = static_cast<std::size_t>(spans.instruction[row]);
            if (segment + 1 < segmentBegin.size()
                && instruction < segmentBegin[segment + 1] - segmentBegin[segment])
                result[row] = operators[segmentBegin[segment] + instruction];
        }
    }
    return result;
}

void indexOperators(TimelineScene &scene)
{
    const std::vector<std::int32_t> operators = operatorOfRows(scene);
    scene.operatorBegin.assign(scene.graph().operators.size() + 1, 0);
    for (const std::int32_t op : operators) {
        if (op >= 0)
            ++scene.operatorBegin[static_cast<std::size_t>(op) + 1];
    }
    for (std::size_t op = 1; op < scene.operatorBegin.size(); ++op)
        scene.operatorBegin[op] += scene.operatorBegin[op - 1];
    scene.operatorRows.resize(scene.operatorBegin.back());
    std::vector<std::uint32_t> next = scene.operatorBegin;
    for (std::size_t row = 0; row < operators.size(); ++row) {
        if (operators[row] >= 0)
            scene.operatorRows[next[static_cast<std::size_t>(operators[row])]++] =
                static_cast<std::uint32_t>(row);
    }
}

/// The place of a device among those with which most of its gradients are summed; -1 without any.
std::int32_t replicaOf(const ExecutionPlan &plan, std::size_t device)
{
    std::map<std::int32_t, std::int32_t> uses; // by group
    for (const Segment &segment : plan.devices[device].segments) {
        if (segment.kind != SegmentKind::Reduce)
            continue;
        for (const Instruction &instruction : segment.instructions) {
            const bool sums = instruction.kind == InstructionKind::AllReduce
                || instruction.kind == InstructionKind::ReduceScatter;
            if (sums && instruction.group >= 0
                && static_cast<std::size_t>(instruction.group) < plan.groups.size())
                ++uses[instruction.group];
        }
    }
    const auto most = std::max_element(
        uses.begin(), uses.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    if (most == uses.end())
        return -1;
    const auto &group = plan.groups[static_cast<std::size_t>(most->first)];
    const auto found = std::find(group.begin(), group.end(), DeviceId{static_cast<std::int32_t>(device)});
    return found == group.end() ? -1 : static_cast<std::int32_t>(found - group.begin());
}

DeviceLane laneOf(const TimelineScene &scene, std::int32_t device)
{
    const Timeline &timeline = *scene.timeline;
    const std::size_t d = static_cast<std::size_t>(device);
    DeviceLane lane;
    lane.device = DeviceId{device};
    const auto [begin, end] = rowsOfDevice(timeline, d);
    const auto streams = timeline.spans.queue.begin();
    const auto middle = std::partition_point(streams + static_cast<std::ptrdiff_t>(begin),
        streams + static_cast<std::ptrdiff_t>(end),
        [](QueueKind kind) { return kind == QueueKind::Compute; });
    lane.compute = {begin, static_cast<std::size_t>(middle - streams)};
    lane.communication = {lane.compute.end, end};
    lane.blocks = blocksOf(scene, lane.compute);
    if (d < timeline.memory.size()) {
        // Devices of one class share their curve.
        const auto same = std::find_if(scene.lanes.begin(), scene.lanes.end(),
            [&](const DeviceLane &other) { return other.memory.isOf(timeline.memory[d]); });
        lane.memory = same == scene.lanes.end() ? PeakIndex(timeline.memory[d]) : same->memory;
    }
    lane.symmetryClass = d < timeline.symmetryClass.size() ? timeline.symmetryClass[d] : -1;
    lane.host = scene.cluster.nodeOf(lane.device);
    lane.replica = replicaOf(*scene.plan, d);
    for (const Segment &segment : scene.plan->devices[d].segments) {
        if (segment.stage.valid() && !segment.instructions.empty()
            && (segment.kind == SegmentKind::Forward || segment.kind == SegmentKind::Backward)) {
            lane.stage = segment.stage.index;
            break;
        }
    }
    if (scene.plan->stageCount > 1 && scene.plan->microBatches > 1)
        lane.warmUp = warmUpOf(lane);
    return lane;
}

void makeLanes(TimelineScene &scene)
{
    scene.lanes.reserve(scene.plan->devices.size());
    for (std::size_t device = 0; device < scene.plan->devices.size(); ++device)
        scene.lanes.push_back(laneOf(scene, static_cast<std::int32_t>(device)));
}

} // namespace

std::int32_t DeviceLane::blockOf(std::size_t row) const
{
    const auto found = std::partition_point(
        blocks.begin(), blocks.end(), [row](const TimelineBlock &block) { return block.rows.end <= row; });
    if (found == blocks.end() || row < found->rows.begin)
        return -1;
    return static_cast<std::int32_t>(found - blocks.begin());
}

std::vector<FoldedRun> foldedRuns(const DeviceLane &lane, const std::vector<DrawRecord> &records)
{
    std::vector<FoldedRun> runs;
    std::int32_t block = -1; // of the last run
    const DrawRecord *last = nullptr; // the stretch before, if it is one
    for (const DrawRecord &record : records) {
        const DrawRecord *before = std::exchange(last, record.folded ? &record : nullptr);
        if (!record.folded)
            continue;
        LaneRows rows{record.row, record.row + static_cast<std::size_t>(record.count)};
        const std::int32_t of = lane.blockOf(record.row);
        if (of >= 0) {
            const LaneRows &own = lane.blocks[static_cast<std::size_t>(of)].rows;
            rows.end = std::min(rows.end, own.end);
            // Its first spans may lie in the pixel that the block before it ends in.
            if (before && before->row < own.begin
                && before->row + static_cast<std::size_t>(before->count) > own.begin)
                rows.begin = own.begin;
        }
        if (!before || of != block || record.x0 > runs.back().x1 + 1)
            runs.push_back({record.x0, record.x0, rows});
        block = of;
        runs.back().x1 = record.x1;
        runs.back().rows.end = rows.end;
    }
    return runs;
}

std::size_t DeviceLane::firstBlockEndingAfter(double nanoseconds) const
{
    const auto found = std::partition_point(blocks.begin(), blocks.end(),
        [nanoseconds](const TimelineBlock &block) { return static_cast<double>(block.end) <= nanoseconds; });
    return static_cast<std::size_t>(found - blocks.begin());
}

const Segment *TimelineScene::findSegment(std::size_t row) const
{
    const SpanColumns &spans = timeline->spans;
    const auto device = static_cast<std::size_t>(spans.device[row]);
    const auto segment = static_cast<std::size_t>(spans.segment[row]);
    if (device >= plan->devices.size() || segment >= plan->devices[device].segments.size())
        return nullptr;
    return &plan->devices[device].segments[segment];
}

const Instruction *TimelineScene::findInstruction(std::size_t row) const
{
    const Segment *segment = findSegment(row);
    const auto instruction = static_cast<std::size_t>(timeline->spans.instruction[row]);
    if (!segment || instruction >= segment->instructions.size())
        return nullptr;
    return &segment->instructions[instruction];
}

OperatorId TimelineScene::operatorOf(std::size_t row) const
{
    const Instruction *instruction = findInstruction(row);
    return instruction ? instruction->op : OperatorId{};
}

DecidedBy TimelineScene::decidedByOf(std::size_t row) const
{
    const OperatorId op = operatorOf(row);
    return op.valid() && static_cast<std::size_t>(op.index) < decidedBy.size()
        ? decidedBy[static_cast<std::size_t>(op.index)]
        : DecidedBy::Default;
}

TimelineSceneSnapshot makeTimelineScene(TimelineSnapshot timeline, std::shared_ptr<const ExecutionPlan> plan,
    Cluster cluster, std::vector<DecidedBy> decidedBy)
{
    TimelineScene scene;
    scene.timeline = std::move(timeline);
    scene.plan = std::move(plan);
    scene.cluster = std::move(cluster);
    scene.decidedBy = std::move(decidedBy);
    // Each writes members of its own.
    const std::array<std::function<void()>, 3> parts{
        [&scene] { sumUpBusyTime(scene); },
        [&scene] { makeLanes(scene); },
        [&scene] { indexOperators(scene); },
    };
    const std::size_t least = scene.timeline->spans.size() < kFewRows ? parts.size() : 1;
    inParallel(parts.size(), least, [&parts](std::size_t begin, std::size_t end) {
        for (std::size_t part = begin; part < end; ++part)
            parts[part]();
    });
    for (const MemoryCurve &curve : scene.timeline->memory) {
        scene.largestPeak = std::max(scene.largestPeak, curve.peak.count);
        for (std::size_t kind = 0; kind < kMemoryKindCount; ++kind)
            scene.memoryKinds[kind] = scene.memoryKinds[kind] || curve.atPeak[kind] > 0;
    }
    return sharedInBackground(std::move(scene));
}

std::size_t rowCountOf(const TimelineScene &scene, const std::vector<OperatorId> &operators)
{
    std::size_t count = 0;
    for (const OperatorId op : operators) {
        const auto index = static_cast<std::size_t>(op.index);
        if (op.valid() && index + 1 < scene.operatorBegin.size())
            count += scene.operatorBegin[index + 1] - scene.operatorBegin[index];
    }
    return count;
}

std::vector<std::size_t> rowsOf(const TimelineScene &scene, const std::vector<OperatorId> &operators)
{
    std::vector<std::size_t> rows;
    rows.reserve(rowCountOf(scene, operators));
    for (const OperatorId op : operators) {
        const auto index = static_cast<std::size_t>(op.index);
        if (!op.valid() || index + 1 >= scene.operatorBegin.size())
            continue;
        const auto begin = scene.operatorRows.begin();
        rows.insert(rows.end(), begin + scene.operatorBegin[index], begin + scene.operatorBegin[index + 1]);
    }
    if (operators.size() > 1)
        std::sort(rows.begin(), rows.end());
    return rows;
}

std::vector<OperatorId> operatorsOf(const TimelineScene &scene, const TimelineBlock &block)
{
    std::vector<OperatorId> operators;
    for (std::size_t row = block.rows.begin; row < block.rows.end; ++row) {
        if (const OperatorId op = scene.operatorOf(row); op.valid())
            operators.push_back(op);
    }
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    return operators;
}

} // namespace planloom
