#include "engine/lowering/execution_plan.h"

#include <array>

namespace planloom {

StreamKind streamOf(InstructionKind kind)
{
    return isCommunication(kind) ? StreamKind::Communication : StreamKind::Compute;
}

bool isCommunication(InstructionKind kind)
{
    switch (kind) {
    case InstructionKind::AllReduce:
    case InstructionKind::AllGather:
    case InstructionKind::ReduceScatter:
    case InstructionKind::AllToAll:
    case InstructionKind::Broadcast:
    case InstructionKind::Send:
    case InstructionKind::Recv:
        return true;
    default:
        return false;
    }
}

const char *nameOf(InstructionKind kind)
{
    static constexpr std::array<const char *, 17> kNames{"load", "kernel", "accumulate", "select", "concat",
        "sum", "value-select", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast",
        "send", "recv", "store", "update", "cast"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char *nameOf(MemoryKind kind)
{
    static constexpr std::array<const char *, kMemoryKindCount> kNames{
        "weight", "gradient", "optimizer-state", "activation", "input", "communication"};
    return kNames[static_cast<std::size_t>(kind)];
}

const char *nameOf(SegmentKind kind)
{
    static constexpr std::array<const char *, 6> kNames{
        "prologue", "forward", "backward", "transfer", "reduce", "optimizer"};
    return kNames[static_cast<std::size_t>(kind)];
}

IndexMask boxOf(const ExecutionPlan &plan, const BufferInfo &buffer, std::int32_t microBatch)
{
    IndexMask box = buffer.index;
    if (!buffer.perMicroBatch || microBatch == 0)
        return box;
    const auto tensor = static_cast<std::size_t>(buffer.tensor.index);
    const std::int32_t dimension = plan.batch.tensorDimension[tensor];
    if (dimension < 0)
        return box;
    const std::int64_t extent = plan.graph->at(buffer.tensor).type.shape[static_cast<std::size_t>(dimension)];
    const std::int64_t shift = extent / plan.microBatches * microBatch;
    box.ranges[static_cast<std::size_t>(dimension)].begin += shift;
    box.ranges[static_cast<std::size_t>(dimension)].end += shift;
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
            count += static_cast<std::int64_t>(
                device.segments[static_cast<std::size_t>(entry.segment)].instructions.size());
    return count;
}

} // namespace planloom
