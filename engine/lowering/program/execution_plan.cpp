#include "engine/lowering/program/execution_plan.h"

#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <array>

namespace planloom {

bool sendsToStage(const Instruction &instruction)
{
    return isBetweenStages(queueOf(instruction)) && !instruction.inputs.empty();
}

QueueKind queueOf(const Instruction &instruction)
{
    if (instruction.queue)
        return *instruction.queue;
    if (isHostCopy(instruction.kind))
        return QueueKind::Copy;
    if (!isCommunication(instruction.kind))
        return QueueKind::Compute;
    const bool message =
        instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
    return message ? QueueKind::Pipeline : QueueKind::Tensor;
}

const char *nameOf(QueueKind queue)
{
    static constexpr std::array<const char *, kQueueCount> kNames{
        "compute", "tensor", "data", "pipeline", "pipeline-back", "copy"};
    return kNames[static_cast<std::size_t>(queue)];
}

std::pair<std::size_t, std::size_t> indicesOf(const DeviceProgram &program, const ScheduleEntry &entry)
{
    const std::size_t all = program.segments[static_cast<std::size_t>(entry.segment)].instructions.size();
    return {static_cast<std::size_t>(entry.begin), entry.end < 0 ? all : static_cast<std::size_t>(entry.end)};
}

std::span<const Instruction> instructionsOf(const DeviceProgram &program, const ScheduleEntry &entry)
{
    const auto &all = program.segments[static_cast<std::size_t>(entry.segment)].instructions;
    const auto [begin, end] = indicesOf(program, entry);
    return std::span(all).subspan(begin, end - begin);
}

bool isCommunication(InstructionKind kind)
{
    switch (kind) {
    case InstructionKind::AllReduce:
    case InstructionKind::AllGather:
    case InstructionKind::ReduceScatter:
    case InstructionKind::AllToAll:
    case InstructionKind::Broadcast:
    case InstructionKind::Shift:
    case InstructionKind::Send:
    case InstructionKind::Recv:
        return true;
    default:
        return false;
    }
}

bool combinesSummands(InstructionKind kind)
{
    return kind == InstructionKind::Sum || kind == InstructionKind::AllReduce
        || kind == InstructionKind::ReduceScatter;
}

std::string textOf(const Instruction &instruction)
{
    const std::string name = nameOf(instruction.kind);
    return instruction.combination == Combination::Sum ? name
                                                       : name + " (" + nameOf(instruction.combination) + ")";
}

const char *nameOf(InstructionKind kind)
{
    static constexpr std::array<const char *, kInstructionKindCount> kNames{"load", "kernel", "accumulate",
        "select", "concat", "sum", "value-select", "all-reduce", "all-gather", "reduce-scatter", "all-to-all",
        "broadcast", "send", "recv", "store", "update", "cast", "weigh", "offload", "fetch", "shift",
        "merge"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char *nameOf(MemoryKind kind)
{
    static constexpr std::array<const char *, kMemoryKindCount> kNames{
        "weight", "gradient", "optimizer-state", "activation", "input", "communication"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char *nameOf(MemoryPlace place)
{
    return place == MemoryPlace::Host ? "host" : "device";
}

const char *nameOf(UnitShare share)
{
    static constexpr std::array<const char *, 3> kNames{"same", "partial", "shard"};
    return kNames[static_cast<std::size_t>(share)];
}

bool updatesInPlace(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction,
    std::int32_t output)
{
    return instruction.kind == InstructionKind::Kernel
        && plan.graph->at(instruction.op).direction == Direction::Optimizer
        && !program.buffers[static_cast<std::size_t>(output)].persistent
        && std::find(instruction.inputs.begin(), instruction.inputs.end(), output)
        != instruction.inputs.end();
}

std::int32_t weightVersionsOf(const ExecutionPlan &plan, OperatorId op)
{
    const auto index = static_cast<std::size_t>(op.index);
    return index < plan.weightVersions.size() ? plan.weightVersions[index] : 1;
}

std::int32_t stalenessOf(
    const Operator &op, std::size_t slot, std::int32_t weightVersions, const std::vector<bool> &trained)
{
    return op.direction != Direction::Optimizer && op.inputs[slot]
            && trained[static_cast<std::size_t>(op.inputs[slot].index)]
        ? weightVersions - 1
        : 0;
}

std::vector<bool> trainedWeights(const Graph &graph)
{
    std::vector<bool> trained(graph.tensors.size(), false);
    for (const Operator &op : graph.operators)
        if (updatesWeight(op) && !op.inputs.empty() && op.inputs.front())
            trained[static_cast<std::size_t>(op.inputs.front().index)] = true;
    return trained;
}

AttentionMode attentionOf(const ExecutionPlan &plan, OperatorId op)
{
    const auto index = static_cast<std::size_t>(op.index);
    return index < plan.attention.size() ? plan.attention[index] : AttentionMode::Fused;
}

IndexMask boxOf(
    const ExecutionPlan &plan, const BufferInfo &buffer, std::int32_t microBatch, std::int32_t unit)
{
    IndexMask box = buffer.index;
    const auto shift = [&box](std::int32_t dimension, std::int64_t by) {
        Range &range = box.ranges[static_cast<std::size_t>(dimension)];
        range = {range.begin + by, range.end + by};
    };
    if (buffer.share == UnitShare::Shard && unit > 0) {
        Range &range = box.ranges[static_cast<std::size_t>(buffer.shardDimension)];
        const std::int64_t begin = range.begin + unit * range.size();
        range = {std::min(begin, buffer.shardEnd), std::min(begin + range.size(), buffer.shardEnd)};
    }
    if (!buffer.perMicroBatch || (microBatch == 0 && unit == 0))
        return box;
    const auto tensor = static_cast<std::size_t>(buffer.tensor.index);
    const std::int32_t dimension = plan.batch.tensorDimension[tensor];
    if (dimension < 0)
        return box;
    const std::int64_t extent = plan.graph->at(buffer.tensor).type.shape[static_cast<std::size_t>(dimension)];
    shift(dimension, extent / batchCuts(plan) * (std::int64_t{microBatch} * plan.units.count + unit));
    return box;
}

Precision precisionOf(const ExecutionPlan &plan, OperatorId op)
{
    return plan.precisions.empty() ? Precision{} : plan.precisions[at(op)];
}

Bytes sizeOf(const BufferInfo &buffer)
{
    std::int64_t elements = 1;
    for (const Range &range : buffer.index.ranges)
        elements *= range.size();
    return {elements * sizeOf(buffer.dataType)};
}

std::int64_t instructionCount(const ExecutionPlan &plan)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const ScheduleEntry &entry : device.schedule)
            count += static_cast<std::int64_t>(instructionsOf(device, entry).size());
    return count;
}

} // namespace planloom
