#include "engine/verify/structure_rules.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "engine/graph/operators/gradient_flow.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/verify/type_rules.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

namespace {

bool isWithin(std::int32_t index, std::size_t count)
{
    return index >= 0 && at(index) < count;
}

/// What a tensor's memory counts as; pieces on their way from layout to layout may count as activations or
/// communication.
MemoryKind memoryOf(const Graph &graph, const Tensor &tensor)
{
    switch (tensor.role) {
    case TensorRole::Input:
        return MemoryKind::Input;
    case TensorRole::Weight:
    case TensorRole::Buffer:
        return MemoryKind::Weight;
    case TensorRole::OptimizerState:
        return MemoryKind::OptimizerState;
    case TensorRole::Gradient:
        return graph.at(tensor.of).role == TensorRole::Weight ? MemoryKind::Gradient : MemoryKind::Activation;
    case TensorRole::Activation:
        break;
    }
    return MemoryKind::Activation;
}

bool isMessage(InstructionKind kind)
{
    return kind == InstructionKind::Send || kind == InstructionKind::Recv;
}

class StructureCheck
{
public:
    explicit StructureCheck(const ExecutionPlan &plan)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_types(*plan.graph, plan.precisions)
        , m_ofWeights(gradientsOfWeights(*plan.graph))
        , m_trained(trainedWeights(*plan.graph))
    {
    }

    std::optional<VerifyFailure> run()
    {
        if (checkUnits() && checkDecisions() && checkGroups() && checkExtent())
            for (std::size_t d = 0; d < m_plan.devices.size(); ++d)
                if (!checkDevice(static_cast<std::int32_t>(d)))
                    break;
        return std::move(m_failure);
    }

private:
    bool fail(std::int32_t device, std::string reason)
    {
        VerifyFailure failure;
        failure.device = DeviceId{device};
        failure.reason = std::move(reason);
        m_failure = std::move(failure);
        return false;
    }

    bool checkDecisions()
    {
        for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
            // The partition applies to what a micro-batch leaves of the operator.
            Operator local;
            local.name = m_graph.operators[o].name;
            local.annotation = m_graph.operators[o].annotation;
            local.annotationProblem = m_graph.operators[o].annotationProblem;
            if (const std::int32_t d = m_plan.batch.operatorDimension[o]; d >= 0)
                local.annotation.dimensions[at(d)].size /= batchCuts(m_plan);
            if (const auto legal = checkPartition(local, m_plan.partitions[o]); !legal)
                return fail(-1, legal.error().message);
            const Partition &partition = m_plan.partitions[o];
            for (std::size_t s = 0; s < partition.splits.size(); ++s) {
                const Split &split = partition.splits[s];
                if (split.over == SplitOver::Units
                    && (s + 1 != partition.splits.size() || split.parts != m_plan.units.count
                        || m_graph.operators[o].direction != Direction::Optimizer
                        || split.kind != SplitKind::Dimension))
                    return fail(-1, local.name + " is shared out over units that the plan does not have");
                const bool runsOnce =
                    m_graph.operators[o].direction == Direction::Optimizer || m_plan.batch.oncePerStep[o];
                if (split.over == SplitOver::Slices
                    && (runsOnce || split.dimension == m_plan.batch.operatorDimension[o]))
                    return fail(-1, local.name + " is cut into slices of what has none");
                if (split.over == SplitOver::Lanes
                    && (runsOnce
                        || (split.kind == SplitKind::Dimension
                            && split.dimension != m_plan.batch.operatorDimension[o])))
                    return fail(-1, local.name + " has lanes, which are of the batch of what runs in passes");
            }
            if (at(partCount(partition) / unitParts(partition)) != m_plan.placement[o].size())
                return fail(-1, local.name + " does not have one device per part");
            for (const DeviceId device : m_plan.placement[o])
                if (!isWithin(device.index, m_plan.devices.size()))
                    return fail(
                        -1, "a part of " + local.name + " is on a device that the plan does not have");
            if (std::string reason = checkAttention(o); !reason.empty())
                return fail(-1, std::move(reason));
            if (std::string reason = checkWeightVersions(o); !reason.empty())
                return fail(-1, std::move(reason));
        }
        return true;
    }

    /// Both passes of an Attention hold to one mode; nothing else has one.
    std::string checkAttention(std::size_t o) const
    {
        const Operator &op = m_graph.operators[o];
        const AttentionMode mode = attentionOf(m_plan, OperatorId{static_cast<std::int32_t>(o)});
        if (op.kind != OperatorKind::Attention)
            return mode == AttentionMode::Fused ? "" : op.name + " has no probabilities to keep";
        if (op.direction == Direction::Backward && mode != attentionOf(m_plan, op.mirror))
            return op.name + " would not read the probabilities as its forward operator keeps them";
        return {};
    }

    bool checkGroups()
    {
        for (const auto &group : m_plan.groups) {
            std::vector<DeviceId> sorted = group;
            std::sort(sorted.begin(), sorted.end());
            if (sorted.empty() || sorted.front().index < 0
                || !isWithin(sorted.back().index, m_plan.devices.size())
                || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
                return fail(-1, "a group repeats a device, or names one that does not exist");
        }
        return true;
    }

    /// First of all: what the batch is cut into is counted by them.
    bool checkUnits()
    {
        constexpr std::int64_t kMostCuts = 1 << 20;
        const ScaleUnits &units = m_plan.units;
        return (units.count >= 1 && units.inner >= 1 && m_plan.devices.size() % at(units.inner) == 0
                   && (units.isOne() || !m_plan.batch.wholeBatches)
                   && std::int64_t{units.count} * m_plan.microBatches <= kMostCuts)
            || fail(-1, "the plan has no such scale units");
    }

    /// A plan with more micro-batches than schedule entries leaves some out; the memory of what follows is
    /// theirs.
    bool checkExtent()
    {
        std::size_t entries = 0;
        for (const DeviceProgram &device : m_plan.devices)
            entries += device.schedule.size();
        if (m_plan.stageCount < 1)
            return fail(-1, "the plan has no stages");
        if (m_plan.updates < 1 || m_plan.microBatches % m_plan.updates != 0)
            return fail(-1, "the micro-batches do not divide into the step's updates");
        return m_plan.microBatches == 1 || entries >= at(m_plan.microBatches)
            || fail(-1,
                "the schedules are too short for " + std::to_string(m_plan.microBatches) + " micro-batches");
    }

    bool checkDevice(std::int32_t device)
    {
        const DeviceProgram &own = m_plan.devices[at(device)];
        std::set<std::int32_t>
            tags; // what matches a send with its receive, so one instruction of a device each
        for (std::size_t b = 0; b < own.buffers.size(); ++b) {
            std::string reason = checkBuffer(own.buffers[b]);
            if (reason.empty())
                reason = checkVersions(own, b);
            if (!reason.empty())
                return fail(device, std::move(reason));
        }
        for (const Instruction &instruction : own.setup)
            if (std::string reason = checkInstruction(device, instruction); !reason.empty())
                return fail(device, std::move(reason));
        for (const Segment &segment : own.segments) {
            if (!isWithin(segment.stage.index, at(m_plan.stageCount)))
                return fail(
                    device, std::string("a ") + nameOf(segment.kind) + " segment has no stage of the plan");
            if (segment.slice < 0 || (segment.slice > 0 && !isPass(segment.kind)))
                return fail(device, std::string("a ") + nameOf(segment.kind) + " segment has no slices");
            if (segment.lane < 0 || (segment.lane > 0 && !isPass(segment.kind)))
                return fail(device, std::string("a ") + nameOf(segment.kind) + " segment has no lanes");
            std::array<const Instruction *, kQueueCount> before{}; // by queue
            std::array<OpenLaunch, kQueueCount> launches{}; // by queue
            for (const Instruction &instruction : segment.instructions) {
                std::string reason = checkInstruction(device, instruction);
                if (reason.empty())
                    reason = checkPlaces(own, instruction);
                if (reason.empty())
                    reason = checkQueue(instruction);
                if (reason.empty() && instruction.joined)
                    reason = checkLaunch(segment.kind, instruction,
                        before[static_cast<std::size_t>(queueOf(instruction))],
                        launches[static_cast<std::size_t>(queueOf(instruction))]);
                goOn(launches[static_cast<std::size_t>(queueOf(instruction))], instruction);
                // New weights take the places of old ones between the casts of a launch.
                if (instruction.kind != InstructionKind::Update || segment.kind != SegmentKind::Optimizer)
                    before[static_cast<std::size_t>(queueOf(instruction))] = &instruction;
                if (reason.empty() && instruction.kind == InstructionKind::Kernel)
                    reason = checkSegment(segment.kind, instruction);
                if (reason.empty() && instruction.kind == InstructionKind::Kernel)
                    reason = checkLane(segment, instruction);
                if (reason.empty() && instruction.kind == InstructionKind::Kernel && !instruction.recompute)
                    reason = checkSlice(segment, instruction);
                if (reason.empty() && isMessage(instruction.kind) && !tags.insert(instruction.tag).second)
                    reason = "the tag " + std::to_string(instruction.tag) + " is used twice on one device";
                if (!reason.empty())
                    return fail(device, std::move(reason));
            }
        }
        std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> runs; // where a run's next slice begins
        bool begun = false; // something else than the prologue has
        for (const ScheduleEntry &entry : own.schedule) {
            if (!isWithin(entry.segment, own.segments.size())
                || !isWithin(entry.microBatch, at(m_plan.microBatches)))
                return fail(device, "the schedule names a segment or micro-batch that does not exist");
            const SegmentKind kind = own.segments[at(entry.segment)].kind;
            if ((kind == SegmentKind::Prologue && entry.microBatch != 0)
                || (isOfUpdate(kind) && entry.microBatch % microBatchesPerUpdate(m_plan) != 0))
                return fail(device,
                    std::string("a ") + nameOf(kind) + " segment runs in micro-batch "
                        + std::to_string(entry.microBatch));
            if (kind == SegmentKind::Prologue && begun)
                return fail(device, "a prologue runs behind what it is the prologue of");
            begun = begun || kind != SegmentKind::Prologue;
            const auto &instructions = own.segments[at(entry.segment)].instructions;
            const auto all = static_cast<std::int32_t>(instructions.size());
            const std::int32_t end = entry.end < 0 ? all : entry.end;
            std::int32_t &next = runs[{entry.segment, entry.microBatch}];
            if (entry.end < -1 || entry.begin != next || end < entry.begin || end > all)
                return fail(device,
                    std::string("the slices of a ") + nameOf(own.segments[at(entry.segment)].kind)
                        + " segment in micro-batch " + std::to_string(entry.microBatch)
                        + " do not follow one another");
            next = end;
            if (entry.begin < end && instructions[at(entry.begin)].joined)
                return fail(device, "a slice begins with an instruction that is joined to the one before it");
        }
        for (const auto &[run, end] : runs)
            if (at(end) != own.segments[at(run.first)].instructions.size())
                return fail(device,
                    std::string("a ") + nameOf(own.segments[at(run.first)].kind)
                        + " segment is left unfinished in micro-batch " + std::to_string(run.second));
        return true;
    }

    /// Memory of the host is touched by copies alone, and each of them has one side there.
    std::string checkPlaces(const DeviceProgram &own, const Instruction &instruction) const
    {
        const auto check = [&](const BufferList &list, bool onHost) {
            for (const std::int32_t index : list)
                if (index >= 0 && (own.buffers[at(index)].place == MemoryPlace::Host) != onHost)
                    return std::string("a ") + nameOf(instruction.kind) + " touches '"
                        + m_graph.at(own.buffers[at(index)].tensor).name + "' "
                        + (onHost ? "on the device" : "in host memory");
            return std::string{};
        };
        std::string reason = check(instruction.inputs, instruction.kind == InstructionKind::Fetch);
        if (reason.empty())
            reason = check(instruction.outputs, instruction.kind == InstructionKind::Offload);
        return reason;
    }

    static std::string checkQueue(const Instruction &instruction)
    {
        const QueueKind queue = queueOf(instruction);
        const bool communicates = queue != QueueKind::Compute && queue != QueueKind::Copy;
        // What came by the data queue may be brought into shape there.
        const bool shapes = queue == QueueKind::Data && !isCommunication(instruction.kind)
            && instruction.kind != InstructionKind::Kernel && !isHostCopy(instruction.kind);
        if ((!shapes && communicates != isCommunication(instruction.kind))
            || (queue == QueueKind::Copy) != isHostCopy(instruction.kind))
            return std::string("a ") + nameOf(instruction.kind) + " waits in the " + nameOf(queue) + " queue";
        if (instruction.overlaps
            && (!isCommunication(instruction.kind) || isMessage(instruction.kind)
                || queue != QueueKind::Tensor))
            return std::string("a ") + nameOf(instruction.kind) + " cannot run beside a product";
        if (instruction.waits && queue == QueueKind::Compute)
            return std::string("a ") + nameOf(instruction.kind) + " of the compute queue waits for itself";
        return {};
    }

    /// The last launch of collectives in a queue of a segment, and what was made in the queue since it began:
    /// in segments that run once, what came of it may be brought into shape before others of it.
    struct OpenLaunch {
        const Instruction *collective = nullptr;
        std::set<std::int32_t> made{};
    };

    static void goOn(OpenLaunch &launch, const Instruction &instruction)
    {
        if (isMessage(instruction.kind))
            launch = {};
        else if (isCommunication(instruction.kind)) {
            if (!instruction.joined)
                launch.made.clear();
            launch.collective = &instruction;
        }
        launch.made.insert(instruction.outputs.begin(), instruction.outputs.end());
    }

    /// Joined instructions are one launch: of one kind, in one queue, and collectives among the same devices.
    /// @param before  in its queue; null: none
    static std::string checkLaunch(SegmentKind segment, const Instruction &instruction,
        const Instruction *before, const OpenLaunch &launch)
    {
        const bool adds =
            instruction.kind == InstructionKind::Accumulate || instruction.kind == InstructionKind::Sum;
        const bool inProduct = before && adds && before->kind == InstructionKind::Kernel;
        const bool follows = before && (before->kind == instruction.kind || inProduct);
        const bool holds = isMessage(instruction.kind) ? false
            : isCommunication(instruction.kind)
            ? launch.collective && launch.collective->kind == instruction.kind
                && launch.collective->group == instruction.group
                && launch.collective->acrossUnits == instruction.acrossUnits
                && launch.collective->combination == instruction.combination
                && std::none_of(instruction.inputs.begin(), instruction.inputs.end(),
                    [&](std::int32_t input) { return launch.made.contains(input); })
                && (follows || !isPass(segment))
            : follows && before->combination == instruction.combination;
        return holds ? std::string{}
                     : std::string("a ") + nameOf(instruction.kind)
                + " is joined to what it cannot be launched together with";
    }

    std::string checkBuffer(const BufferInfo &buffer) const
    {
        if (!isWithin(buffer.tensor.index, m_graph.tensors.size()))
            return "a buffer names no tensor of the graph";
        const Tensor &tensor = m_graph.at(buffer.tensor);
        const std::string name = "'" + tensor.name + "'";
        if (buffer.index.ranges.size() != tensor.type.shape.size())
            return "a buffer's box does not lie in " + name;
        for (std::size_t d = 0; d < buffer.index.ranges.size(); ++d) {
            const Range &range = buffer.index.ranges[d];
            if (range.begin < 0 || range.begin > range.end || range.end > tensor.type.shape[d])
                return "a buffer's box does not lie in " + name;
        }
        if (std::string reason = checkShare(buffer, tensor); !reason.empty())
            return reason;
        if (buffer.perMicroBatch) { // nor may it leave the tensor in a later micro-batch
            const IndexMask last = boxOf(m_plan, buffer, m_plan.microBatches - 1, m_plan.units.count - 1);
            for (std::size_t d = 0; d < last.ranges.size(); ++d)
                if (last.ranges[d].end > tensor.type.shape[d])
                    return "a buffer's box leaves " + name + " in the last micro-batch";
        }
        if (std::adjacent_find(buffer.summands.begin(), buffer.summands.end(), std::greater_equal<>())
                != buffer.summands.end()
            || (!buffer.summands.empty() && buffer.summands.front() < 0))
            return "the summands of a buffer of " + name + " do not ascend";
        if (buffer.valuePart.count < 1 || !isWithin(buffer.valuePart.index, at(buffer.valuePart.count)))
            return "a buffer of " + name + " has a part of its value that does not exist";
        if (buffer.persistent && tensor.role != TensorRole::Weight && tensor.role != TensorRole::Buffer
            && tensor.role != TensorRole::OptimizerState)
            return name + " does not live across steps, but its buffer does";
        if (tensor.role == TensorRole::Weight
            && (buffer.persistent || buffer.memory == MemoryKind::OptimizerState))
            return checkMemoryKind(m_plan, m_types, buffer);
        const bool passing = buffer.memory == MemoryKind::Activation
            || buffer.memory == MemoryKind::Communication
            || (buffer.memory == MemoryKind::Input && tensor.role == TensorRole::Buffer); // fed in slices
        if (buffer.memory != memoryOf(m_graph, tensor) && (buffer.persistent || !passing))
            return "a buffer of " + name + " counts as " + nameOf(buffer.memory);
        return {};
    }

    /// An operator and its mirror read the same versions: those that are kept.
    std::string checkWeightVersions(std::size_t o) const
    {
        const Operator &op = m_graph.operators[o];
        if (!m_plan.weightVersions.empty() && m_plan.weightVersions.size() != m_graph.operators.size())
            return "the plan says of " + std::to_string(m_plan.weightVersions.size()) + " of "
                + std::to_string(m_graph.operators.size()) + " operators how many weight versions they keep";
        const std::int32_t versions = weightVersionsOf(m_plan, {static_cast<std::int32_t>(o)});
        if (versions < 1 || versions > kMostWeightVersions
            || (versions > 1 && op.direction == Direction::Optimizer))
            return op.name + " cannot keep " + counted(versions, "version") + " of its weights";
        if (op.direction == Direction::Backward && versions != weightVersionsOf(m_plan, op.mirror))
            return op.name + " reads other versions of its weights than its forward operator";
        return {};
    }

    /// The versions of a persistent weight stand side by side, from the newest to the oldest, and differ in
    /// nothing else.
    std::string checkVersions(const DeviceProgram &own, std::size_t b) const
    {
        const BufferInfo &buffer = own.buffers[b];
        const std::string name = "'" + m_graph.at(buffer.tensor).name + "'";
        if (buffer.versions < 1 || buffer.staleness < 0
            || ((buffer.versions > 1 || buffer.staleness > 0) && !m_trained[at(buffer.tensor.index)]))
            return name + " has no such version";
        if (!buffer.persistent)
            return buffer.versions == 1 ? std::string{} : name + " keeps versions in a buffer of one step";
        const std::string broken = "the versions of " + name + " do not stand side by side";
        if (buffer.staleness >= buffer.versions || b < static_cast<std::size_t>(buffer.staleness))
            return broken;
        const std::size_t first = b - static_cast<std::size_t>(buffer.staleness);
        if (first + static_cast<std::size_t>(buffer.versions) > own.buffers.size())
            return broken;
        BufferInfo expected = buffer;
        for (std::int16_t version = 0; version < buffer.versions; ++version) {
            expected.staleness = version;
            if (own.buffers[first + static_cast<std::size_t>(version)] != expected)
                return broken;
        }
        return {};
    }

    /// What scale units have of a buffer.
    std::string checkShare(const BufferInfo &buffer, const Tensor &tensor) const
    {
        const std::string name = "'" + tensor.name + "'";
        if (buffer.share == UnitShare::Same)
            return buffer.shardDimension == -1 && buffer.shardEnd == 0
                ? std::string{}
                : "a buffer of " + name + " is shared out and is not";
        if (m_plan.units.isOne() || (buffer.perMicroBatch && buffer.share == UnitShare::Partial))
            return "a buffer of " + name + " is shared by units, but there is nothing to share";
        if (buffer.share == UnitShare::Partial)
            return !buffer.persistent && buffer.shardDimension == -1 && buffer.shardEnd == 0
                ? std::string{}
                : "a buffer of " + name + " would keep one unit's share of a sum";
        if (!isWithin(buffer.shardDimension, buffer.index.ranges.size()))
            return "a buffer of " + name + " is shared out along no dimension";
        const auto d = at(buffer.shardDimension);
        const Range &range = buffer.index.ranges[d];
        const std::int64_t shared = buffer.shardEnd - range.begin;
        return range.size() > 0 && buffer.shardEnd <= tensor.type.shape[d]
                && range.size() == (shared + m_plan.units.count - 1) / m_plan.units.count
            ? std::string{}
            : "the units' shares of " + name + " leave it, or leave something";
    }

    std::string checkInstruction(std::int32_t device, const Instruction &instruction) const
    {
        const std::size_t buffers = m_plan.devices[at(device)].buffers.size();
        for (const auto *indices : {&instruction.inputs, &instruction.outputs})
            for (const std::int32_t index : *indices)
                if (index != -1 && !isWithin(index, buffers))
                    return "an instruction names a buffer that does not exist";
        for (const std::int32_t index : instruction.deaths)
            if (!isWithin(index, buffers))
                return "an instruction ends a buffer that does not exist";
        if (instruction.op && !isWithin(instruction.op.index, m_graph.operators.size()))
            return "an instruction names no operator of the graph";
        if (instruction.kind == InstructionKind::Kernel) {
            if (!instruction.op)
                return "a kernel names no operator of the graph";
            if (!isWithin(instruction.part, m_plan.placement[at(instruction.op.index)].size()))
                return m_graph.at(instruction.op).name + " has no part " + std::to_string(instruction.part);
        }
        const bool message = isMessage(instruction.kind);
        if (instruction.acrossUnits
            && (m_plan.units.isOne() || !isCommunication(instruction.kind) || message
                || instruction.group != -1 || instruction.inputs.size() != 1
                || instruction.outputs.size() != 1 || instruction.inputs[0] < 0
                || instruction.outputs[0] < 0))
            return std::string("a ") + nameOf(instruction.kind) + " cannot be across units";
        if (isCommunication(instruction.kind) && !message && !instruction.acrossUnits
            && !isWithin(instruction.group, m_plan.groups.size()))
            return "a collective names no group";
        if (message && instruction.tag < 0)
            return "a send or receive has no tag";
        if (message
            && (!isWithin(instruction.peer.index, m_plan.devices.size()) || instruction.peer.index == device))
            return "a send or receive names no other device";
        return {};
    }

    /// So do they lanes.
    std::string checkLane(const Segment &segment, const Instruction &instruction) const
    {
        const Partition &partition = m_plan.partitions[at(instruction.op.index)];
        if (laneCount(partition) == 1 || laneOf(partition, instruction.part) == segment.lane)
            return {};
        return "lane " + std::to_string(laneOf(partition, instruction.part)) + " of "
            + m_graph.at(instruction.op).name + " runs in a segment of lane " + std::to_string(segment.lane);
    }

    /// Views tell slices apart by the segment.
    std::string checkSlice(const Segment &segment, const Instruction &instruction) const
    {
        const Partition &partition = m_plan.partitions[at(instruction.op.index)];
        if (sliceCount(partition) == 1 || sliceOf(partition, instruction.part) == segment.slice)
            return {};
        return "slice " + std::to_string(sliceOf(partition, instruction.part)) + " of "
            + m_graph.at(instruction.op).name + " runs in a segment of slice "
            + std::to_string(segment.slice);
    }

    /// Views and statistics tell forward from backward by the segment.
    std::string checkSegment(SegmentKind kind, const Instruction &instruction) const
    {
        const Operator &op = m_graph.at(instruction.op);
        const bool once = m_plan.batch.oncePerStep[at(instruction.op.index)];
        SegmentKind expected = SegmentKind::Optimizer;
        if (op.direction == Direction::Backward
            || (op.direction == Direction::Forward && instruction.recompute)) {
            expected = SegmentKind::Backward;
            if (kind == SegmentKind::WeightGradient && op.direction == Direction::Backward)
                for (std::size_t slot = 0; slot < op.outputs.size() && slot < instruction.outputs.size();
                     ++slot)
                    if (op.outputs[slot] && instruction.outputs[slot] >= 0
                        && !m_ofWeights[at(op.outputs[slot].index)])
                        return op.name + " makes the gradient of an input among those of weights";
            if (isBackward(kind))
                return {};
        } else if (op.direction == Direction::Forward)
            expected = once ? SegmentKind::Prologue : SegmentKind::Forward;
        if (kind == expected)
            return {};
        return op.name + (instruction.recompute ? " runs again" : " runs") + " in a " + nameOf(kind)
            + " segment, not in a " + nameOf(expected) + " segment";
    }

    const ExecutionPlan &m_plan;
    const Graph &m_graph;
    StorageTypes m_types;
    std::vector<bool> m_ofWeights; ///< By tensor.
    std::vector<bool> m_trained; ///< By tensor: a weight that is updated.
    std::optional<VerifyFailure> m_failure{};
};

} // namespace

std::optional<VerifyFailure> checkStructure(const ExecutionPlan &plan)
{
    return StructureCheck(plan).run();
}

} // namespace planloom
