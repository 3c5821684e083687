#include "widgets/scene/timeline_scene.h"

#include "engine/analyse/block_label.h"
#include "engine/analyse/statistics.h"
#include "engine/base/background_disposal.h"
#include "engine/base/in_parallel.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
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

/// Cuts the compute spans of a lane where they change from one block to another, and puts the pieces of each
/// block together: a step runs a segment once for each micro-batch, so they are one run of it.
///
///     spans    b b b r b b r b o o
///     pieces   [B3 ] R [B3] R B3 [O ]
///     blocks   [B3           ...] [O ]     and each R, within the time of B3
void cutIntoBlocks(const TimelineScene &scene, const StagesInParts &stages, DeviceLane &lane)
{
    LeastDecided least(scene.decidedBy);
    const SpanColumns &spans = scene.timeline->spans;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known; // segment, micro-batch
    for (std::size_t row = lane.compute.begin; row < lane.compute.end; ++row) {
        const std::int64_t end = spans.start[row] + spans.duration[row];
        if (lane.pieces.empty()
            || !scene.isIn(lane.blocks[static_cast<std::size_t>(lane.pieces.back().block)], row)) {
            const auto [place, isNew] =
                known.try_emplace(std::pair(spans.segment[row], spans.microBatch[row]),
                    static_cast<std::int32_t>(lane.blocks.size()));
            lane.pieces.push_back({spans.start[row], end, {row, row + 1}, place->second});
            if (isNew) {
                const Segment *found = scene.findSegment(row);
                TimelineBlock block{spans.start[row], end, found ? found->kind : SegmentKind::Forward,
                    found ? found->stage : StageId{}, spans.microBatch[row], {row, row + 1}};
                block.segment = spans.segment[row];
                if (found) {
                    block.part = stages.partOf(*found);
                    block.wide = stages.wideOf(block.stage);
                    block.decidedBy = least.of(block.segment, *found);
                }
                lane.blocks.push_back(block);
            } else {
                lane.blocks[static_cast<std::size_t>(place->second)].interrupted = true;
            }
        }
        BlockPiece &piece = lane.pieces.back();
        TimelineBlock &block = lane.blocks[static_cast<std::size_t>(piece.block)];
        piece.end = block.end = end;
        piece.rows.end = block.rows.end = row + 1;
    }
    for (const TimelineBlock &block : lane.blocks)
        lane.latestEnd.push_back(
            lane.latestEnd.empty() ? block.end : std::max(lane.latestEnd.back(), block.end));
}

/// One for each queue beside compute that the device's program uses or that has spans: so a track does not
/// come and go while a step is measured.
std::vector<LaneTrack> tracksOf(const TimelineScene &scene, std::size_t device)
{
    QueueSet used;
    for (const Segment &segment : scene.plan->devices[device].segments) {
        for (const Instruction &instruction : segment.instructions)
            used.add(queueOf(instruction));
    }
    std::vector<LaneTrack> tracks;
    for (int q = 0; q < kQueueCount; ++q) {
        const auto queue = static_cast<QueueKind>(q);
        LaneTrack track{queue, {}};
        if (device + 1 < scene.timeline->deviceBegin.size()) {
            const auto [begin, end] = rowsOf(*scene.timeline, device, queue);
            track.rows = {begin, end};
        }
        if (queue != QueueKind::Compute && (used.has(queue) || track.rows.begin < track.rows.end))
            tracks.push_back(track);
    }
    return tracks;
}

WarmUp warmUpOf(const DeviceLane &lane)
{
    WarmUp warmUp;
    for (const TimelineBlock &block : lane.blocks) {
        if (!block.isOrdered() || block.stage.index != lane.stage)
            continue;
        if (isBackward(block.kind))
            break;
        if (warmUp.count == 0) {
            warmUp.stage = block.stage;
            warmUp.begin = block.begin;
        }
        if (block.part.slice <= 0) // micro-batches count, not their slices
            ++warmUp.count;
        if (warmUp.count == 1)
            warmUp.each += block.end - block.begin;
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
            if (share == BusyShare::Optimizer)
                scene.gradientsBegin =
                    std::min(scene.gradientsBegin.value_or(spans.start[row]), spans.start[row]);
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

DeviceLane laneOf(const TimelineScene &scene, const StagesInParts &stages, std::int32_t device)
{
    const Timeline &timeline = *scene.timeline;
    const std::size_t d = static_cast<std::size_t>(device);
    DeviceLane lane;
    lane.device = DeviceId{device};
    if (d + 1 < timeline.deviceBegin.size()) {
        const auto [begin, end] = rowsOf(timeline, d, QueueKind::Compute);
        lane.compute = {begin, end};
    }
    lane.tracks = tracksOf(scene, d);
    cutIntoBlocks(scene, stages, lane);
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
        if (segment.stage.valid() && !segment.instructions.empty() && isPass(segment.kind)) {
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
    const StagesInParts stages = stagesInParts(*scene.plan);
    scene.lanes.reserve(scene.plan->devices.size());
    for (std::size_t device = 0; device < scene.plan->devices.size(); ++device)
        scene.lanes.push_back(laneOf(scene, stages, static_cast<std::int32_t>(device)));
}

} // namespace

QueueSet DeviceLane::queues() const
{
    QueueSet queues;
    for (const LaneTrack &track : tracks)
        queues.add(track.queue);
    return queues;
}

LaneRows DeviceLane::rowsOf(QueueKind queue) const
{
    if (queue == QueueKind::Compute)
        return compute;
    const auto found = std::find_if(
        tracks.begin(), tracks.end(), [queue](const LaneTrack &track) { return track.queue == queue; });
    return found == tracks.end() ? LaneRows{} : found->rows;
}

namespace {

/// The piece that holds compute row `row`; none if there is no such row.
const BlockPiece *pieceOf(const DeviceLane &lane, std::size_t row)
{
    const auto found = std::partition_point(lane.pieces.begin(), lane.pieces.end(),
        [row](const BlockPiece &piece) { return piece.rows.end <= row; });
    return found == lane.pieces.end() || row < found->rows.begin ? nullptr : &*found;
}

} // namespace

std::int32_t DeviceLane::blockOf(std::size_t row) const
{
    const BlockPiece *piece = pieceOf(*this, row);
    return piece ? piece->block : -1;
}

std::vector<FoldedRun> foldedRuns(const DeviceLane &lane, const std::vector<DrawRecord> &records)
{
    std::vector<FoldedRun> runs;
    const BlockPiece *piece = nullptr; // of the last run
    const DrawRecord *last = nullptr; // the stretch before, if it is one
    for (const DrawRecord &record : records) {
        const DrawRecord *before = std::exchange(last, record.folded ? &record : nullptr);
        if (!record.folded)
            continue;
        LaneRows rows{record.row, record.row + static_cast<std::size_t>(record.count)};
        const BlockPiece *of = pieceOf(lane, record.row);
        if (of) {
            const LaneRows &own = of->rows;
            rows.end = std::min(rows.end, own.end);
            // Its first spans may lie in the pixel that the piece before it ends in.
            if (before && before->row < own.begin
                && before->row + static_cast<std::size_t>(before->count) > own.begin)
                rows.begin = own.begin;
        }
        if (!before || of != piece || record.x0 > runs.back().x1 + 1)
            runs.push_back({record.x0, record.x0, rows});
        piece = of;
        runs.back().x1 = record.x1;
        runs.back().rows.end = rows.end;
    }
    return runs;
}

std::size_t DeviceLane::firstBlockEndingAfter(double nanoseconds) const
{
    // Where the latest end so far first comes after it, it is that block's own.
    const auto found = std::partition_point(latestEnd.begin(), latestEnd.end(),
        [nanoseconds](std::int64_t end) { return static_cast<double>(end) <= nanoseconds; });
    return static_cast<std::size_t>(found - latestEnd.begin());
}

std::size_t DeviceLane::firstPieceEndingAfter(double nanoseconds) const
{
    const auto found = std::partition_point(pieces.begin(), pieces.end(),
        [nanoseconds](const BlockPiece &piece) { return static_cast<double>(piece.end) <= nanoseconds; });
    return static_cast<std::size_t>(found - pieces.begin());
}

std::int32_t DeviceLane::blockAt(double nanoseconds) const
{
    const std::size_t piece = firstPieceEndingAfter(nanoseconds);
    if (piece < pieces.size() && static_cast<double>(pieces[piece].begin) <= nanoseconds)
        return pieces[piece].block;
    const std::size_t block = firstBlockEndingAfter(nanoseconds);
    return block < blocks.size() && static_cast<double>(blocks[block].begin) <= nanoseconds
        ? static_cast<std::int32_t>(block)
        : -1;
}

std::int64_t DeviceLane::endBefore(std::size_t block) const
{
    return block == 0 || latestEnd.empty() ? 0 : latestEnd[std::min(block, latestEnd.size()) - 1];
}

std::vector<LaneRows> DeviceLane::piecesOf(std::size_t block) const
{
    const TimelineBlock &of = blocks[block];
    if (!of.interrupted)
        return {of.rows};
    std::vector<LaneRows> own;
    const auto first = std::partition_point(pieces.begin(), pieces.end(),
        [&of](const BlockPiece &piece) { return piece.rows.end <= of.rows.begin; });
    for (auto piece = first; piece != pieces.end() && piece->rows.begin < of.rows.end; ++piece) {
        if (static_cast<std::size_t>(piece->block) == block)
            own.push_back(piece->rows);
    }
    return own;
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

bool TimelineScene::isIn(const TimelineBlock &block, std::size_t row) const
{
    return timeline->spans.segment[row] == block.segment
        && timeline->spans.microBatch[row] == block.microBatch;
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
    const std::array<std::function<void()>, 4> parts{
        [&scene] { sumUpBusyTime(scene); },
        [&scene] { makeLanes(scene); },
        [&scene] { indexOperators(scene); },
        [&scene] {
            scene.communication = communicationOnEdges(*scene.plan);
            std::set<InstructionKind> kinds;
            for (const EdgeCommunication &edge : scene.communication)
                kinds.insert(edge.kind);
            scene.communicationKinds.assign(kinds.begin(), kinds.end());
        },
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

std::vector<OperatorId> servedBy(const std::vector<EdgeCommunication> &edges)
{
    std::vector<OperatorId> operators;
    for (const EdgeCommunication &edge : edges)
        operators.push_back(edge.op);
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    return operators;
}

std::vector<std::size_t> communicationRows(
    const TimelineScene &scene, const std::vector<EdgeCommunication> &edges)
{
    std::set<std::pair<OperatorId, TensorId>> wanted;
    for (const EdgeCommunication &edge : edges)
        wanted.emplace(edge.op, edge.tensor);
    std::vector<std::size_t> rows = rowsOf(scene, servedBy(edges));
    std::erase_if(rows, [&](std::size_t row) {
        const Instruction *instruction = scene.findInstruction(row);
        const auto device = static_cast<std::size_t>(scene.timeline->spans.device[row]);
        return !instruction || !isCommunication(instruction->kind) || isHostCopy(instruction->kind)
            || !wanted.contains({instruction->op, tensorOf(scene.plan->devices[device], *instruction)});
    });
    return rows;
}

std::vector<OperatorId> operatorsOf(const TimelineScene &scene, const TimelineBlock &block)
{
    std::vector<OperatorId> operators;
    for (std::size_t row = block.rows.begin; row < block.rows.end; ++row) {
        if (const OperatorId op = scene.operatorOf(row); op.valid() && scene.isIn(block, row))
            operators.push_back(op);
    }
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    return operators;
}

} // namespace planloom
