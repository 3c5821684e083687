#include "engine/verify/structure_rules.h"

#include "engine/base/ids.h"
#include "engine/graph/storage_types.h"
#include "engine/verify/type_rules.h"

#include <algorithm>
#include <functional>
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
    {
    }

    std::optional<VerifyFailure> run()
    {
        if (checkDecisions() && checkGroups() && checkExtent())
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
                local.annotation.dimensions[at(d)].size /= m_plan.microBatches;
            if (const auto legal = checkPartition(local, m_plan.partitions[o]); !legal)
                return fail(-1, legal.error().message);
            if (at(partCount(m_plan.partitions[o])) != m_plan.placement[o].size())
                return fail(-1, local.name + " does not have one device per part");
            for (const DeviceId device : m_plan.placement[o])
                if (!isWithin(device.index, m_plan.devices.size()))
                    return fail(
                        -1, "a part of " + local.name + " is on a device that the plan does not have");
        }
        return true;
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

    /// A plan with more micro-batches than schedule entries leaves some out; the memory of what follows is
    /// theirs.
    bool checkExtent()
    {
        std::size_t entries = 0;
        for (const DeviceProgram &device : m_plan.devices)
            entries += device.schedule.size();
        if (m_plan.stageCount < 1)
            return fail(-1, "the plan has no stages");
        return m_plan.microBatches == 1 || entries >= at(m_plan.microBatches)
            || fail(-1,
                "the schedules are too short for " + std::to_string(m_plan.microBatches) + " micro-batches");
    }

    bool checkDevice(std::int32_t device)
    {
        const DeviceProgram &own = m_plan.devices[at(device)];
        std::set<std::int32_t>
            tags; // what matches a send with its receive, so one instruction of a device each
        for (const BufferInfo &buffer : own.buffers)
            if (std::string reason = checkBuffer(buffer); !reason.empty())
                return fail(device, std::move(reason));
        for (const Instruction &instruction : own.setup)
            if (std::string reason = checkInstruction(device, instruction); !reason.empty())
                return fail(device, std::move(reason));
        for (const Segment &segment : own.segments) {
            if (!isWithin(segment.stage.index, at(m_plan.stageCount)))
                return fail(
                    device, std::string("a ") + nameOf(segment.kind) + " segment has no stage of the plan");
            for (const Instruction &instruction : segment.instructions) {
                std::string reason = checkInstruction(device, instruction);
                if (reason.empty() && instruction.kind == InstructionKind::Kernel)
                    reason = checkSegment(segment.kind, instruction);
                if (reason.empty() && isMessage(instruction.kind) && !tags.insert(instruction.tag).second)
                    reason = "the tag " + std::to_string(instruction.tag) + " is used twice on one device";
                if (!reason.empty())
                    return fail(device, std::move(reason));
            }
        }
        for (const ScheduleEntry &entry : own.schedule) {
            if (!isWithin(entry.segment, own.segments.size())
                || !isWithin(entry.microBatch, at(m_plan.microBatches)))
                return fail(device, "the schedule names a segment or micro-batch that does not exist");
            if (entry.microBatch != 0 && isOncePerStep(own.segments[at(entry.segment)].kind))
                return fail(device,
                    std::string("a ") + nameOf(own.segments[at(entry.segment)].kind)
                        + " segment runs in micro-batch " + std::to_string(entry.microBatch));
        }
        return true;
    }

    static bool isOncePerStep(SegmentKind kind)
    {
        return kind == SegmentKind::Prologue || kind == SegmentKind::Reduce || kind == SegmentKind::Optimizer;
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
        if (buffer.perMicroBatch) { // nor may it leave the tensor in a later micro-batch
            const IndexMask last = boxOf(m_plan, buffer, m_plan.microBatches - 1);
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
        if (buffer.persistent && tensor.role == TensorRole::Weight)
            return checkMemoryKind(m_plan, m_types, buffer);
        const bool passing = buffer.memory == MemoryKind::Activation
            || buffer.memory == MemoryKind::Communication
            || (buffer.memory == MemoryKind::Input && tensor.role == TensorRole::Buffer); // fed in slices
        if (buffer.memory != memoryOf(m_graph, tensor) && (buffer.persistent || !passing))
            return "a buffer of " + name + " counts as " + nameOf(buffer.memory);
        return {};
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
        if (isCommunication(instruction.kind) && !message
            && !isWithin(instruction.group, m_plan.groups.size()))
            return "a collective names no group";
        if (message && instruction.tag < 0)
            return "a send or receive has no tag";
        if (message
            && (!isWithin(instruction.peer.index, m_plan.devices.size()) || instruction.peer.index == device))
            return "a send or receive names no other device";
        return {};
    }

    /// Views and statistics tell forward from backward by the segment.
    std::string checkSegment(SegmentKind kind, const Instruction &instruction) const
    {
        const Operator &op = m_graph.at(instruction.op);
        const bool once = m_plan.batch.oncePerStep[at(instruction.op.index)];
        SegmentKind expected = SegmentKind::Optimizer;
        if (op.direction == Direction::Backward
            || (op.direction == Direction::Forward && instruction.recompute))
            expected = SegmentKind::Backward;
        else if (op.direction == Direction::Forward)
            expected = once ? SegmentKind::Prologue : SegmentKind::Forward;
        if (kind == expected)
            return {};
        return op.name + (instruction.recompute ? " runs again" : " runs") + " in a " + nameOf(kind)
            + " segment, not in a " + nameOf(expected) + " segment";
    }

    const ExecutionPlan &m_plan;
    const Graph &m_graph;
    StorageTypes m_types;
    std::optional<VerifyFailure> m_failure{};
};

} // namespace

std::optional<VerifyFailure> checkStructure(const ExecutionPlan &plan)
{
    return StructureCheck(plan).run();
}

} // namespace planloom
