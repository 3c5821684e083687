#include "engine/lowering/program/instruction_cost.h"

#include "engine/graph/operators/gradient_flow.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

const BufferInfo &bufferAt(const DeviceProgram &program, std::int32_t index)
{
    return program.buffers[static_cast<std::size_t>(index)];
}

Nanoseconds toNanoseconds(double seconds)
{
    return Nanoseconds{std::llround(seconds * 1e9)};
}

bool dies(const Instruction &instruction, std::int32_t buffer)
{
    return std::find(instruction.deaths.begin(), instruction.deaths.end(), buffer)
        != instruction.deaths.end();
}

/// Local type of slot `slot`: its buffer's, or what the partition and the operator's precision give it where
/// no buffer is kept.
TensorType slotType(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction,
    const std::vector<TensorId> &tensors, const BufferList &buffers, std::size_t slot, bool output)
{
    const Graph &graph = *plan.graph;
    const TensorId tensor = tensors[slot];
    if (!tensor.valid())
        return {};
    if (slot < buffers.size() && buffers[slot] >= 0) {
        const BufferInfo &buffer = bufferAt(program, buffers[slot]);
        return {buffer.dataType, shapeOf(buffer.index)};
    }
    const auto op = static_cast<std::size_t>(instruction.op.index);
    if (!output || op >= plan.partitions.size())
        return {};
    const auto outer = microBatchRanges(plan.batch, graph, instruction.op, 0, batchCuts(plan));
    const TensorView view = outputView(graph, graph.at(instruction.op), plan.partitions[op],
        instruction.part * unitParts(plan.partitions[op]), slot, outer);
    DataType type = graph.at(tensor).type.dataType;
    if (type == DataType::Float32)
        type = precisionOf(plan, instruction.op).storage;
    return {type, shapeOf(view.index)};
}

double kernelSeconds(const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction,
    const CostModel &costs, Bytes spared, std::int32_t deviceClass)
{
    const Operator &whole = plan.graph->at(instruction.op);
    if (isView(whole))
        return 0;
    // Half of a backward operator does, reads and writes less.
    std::optional<Operator> half;
    if (whole.direction == Direction::Backward && whole.mirror) {
        std::vector<bool> made(whole.outputs.size());
        bool all = true;
        for (std::size_t slot = 0; slot < made.size(); ++slot) {
            made[slot] = slot < instruction.outputs.size() && instruction.outputs[slot] >= 0;
            all = all && (made[slot] || !whole.outputs[slot]);
        }
        if (!all)
            half = partOfBackward(*plan.graph, whole, made);
    }
    const Operator &made = half ? *half : whole;
    const auto o = static_cast<std::size_t>(instruction.op.index);
    const auto sliced = o < plan.partitions.size() // else, as elsewhere, it is in one part
        ? operatorOfSlice(made, plan.partitions[o], instruction.part)
        : std::nullopt;
    const Operator &op = sliced ? *sliced : made;
    std::vector<TensorType> inputs(op.inputs.size()), outputs(op.outputs.size());
    for (std::size_t slot = 0; slot < inputs.size(); ++slot)
        inputs[slot] = slotType(plan, program, instruction, op.inputs, instruction.inputs, slot, false);
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        outputs[slot] = slotType(plan, program, instruction, op.outputs, instruction.outputs, slot, true);
    return costs.kernel({op, inputs, outputs,
        arithmeticOf(*plan.graph, op, precisionOf(plan, instruction.op)), instruction.joined, spared,
        attentionOf(plan, instruction.op), deviceClass, seenKeysOf(plan, instruction)});
}

} // namespace

std::optional<CollectiveKind> collectiveOf(InstructionKind kind)
{
    switch (kind) {
    case InstructionKind::AllReduce:
        return CollectiveKind::AllReduce;
    case InstructionKind::AllGather:
        return CollectiveKind::AllGather;
    case InstructionKind::ReduceScatter:
        return CollectiveKind::ReduceScatter;
    case InstructionKind::AllToAll:
        return CollectiveKind::AllToAll;
    case InstructionKind::Broadcast:
        return CollectiveKind::Broadcast;
    case InstructionKind::Shift:
        return CollectiveKind::Shift;
    case InstructionKind::Send:
    case InstructionKind::Recv:
        return CollectiveKind::SendRecv;
    default:
        return std::nullopt;
    }
}

Bytes collectiveBytes(const DeviceProgram &program, const Instruction &instruction)
{
    const auto bytesOf = [&](const BufferList &buffers) {
        if (buffers.empty() || buffers.front() < 0)
            return Bytes{};
        return sizeOf(bufferAt(program, buffers.front()));
    };
    switch (instruction.kind) {
    case InstructionKind::AllGather:
    case InstructionKind::Recv:
        return bytesOf(instruction.outputs);
    case InstructionKind::Broadcast:
        return std::max(bytesOf(instruction.inputs), bytesOf(instruction.outputs));
    default:
        return bytesOf(instruction.inputs);
    }
}

bool needsLargestFirst(const Instruction &instruction)
{
    return instruction.combination == Combination::LogSumExp && isCommunication(instruction.kind);
}

std::int32_t timesSent(const Instruction &instruction)
{
    if (!needsLargestFirst(instruction))
        return 1;
    return instruction.kind == InstructionKind::ReduceScatter ? 3 : 2;
}

Bytes ringBytesSent(CollectiveKind kind, Bytes bytes, std::int32_t ranks, std::int32_t position)
{
    if (ranks < 2)
        return {};
    switch (kind) {
    case CollectiveKind::AllReduce:
        return {bytes.count / ranks * (ranks - 1) * 2 + bytes.count % ranks * (ranks - 1) * 2 / ranks};
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
        return {bytes.count / ranks * (ranks - 1) + bytes.count % ranks * (ranks - 1) / ranks};
    case CollectiveKind::Broadcast: // The last of the chain passes nothing on.
        return position == ranks - 1 ? Bytes{} : bytes;
    case CollectiveKind::Shift:
    case CollectiveKind::SendRecv:
        return bytes;
    }
    return bytes;
}

namespace {

/// Which instructions do something with a buffer.
class BufferTimes
{
public:
    void add(std::int32_t buffer, std::size_t instruction) { m_times.emplace_back(buffer, instruction); }
    void sort()
    {
        std::sort(m_times.begin(), m_times.end());
        m_times.erase(std::unique(m_times.begin(), m_times.end()), m_times.end());
    }
    /// How many of them from `begin` up to, but not with `end`.
    std::int64_t count(std::int32_t buffer, std::size_t begin, std::size_t end) const
    {
        return std::lower_bound(m_times.begin(), m_times.end(), std::pair(buffer, end))
            - std::lower_bound(m_times.begin(), m_times.end(), std::pair(buffer, begin));
    }

private:
    std::vector<std::pair<std::int32_t, std::size_t>> m_times{};
};

} // namespace

std::vector<Bytes> sparedBytes(const DeviceProgram &program, const std::vector<Instruction> &instructions)
{
    std::vector<Bytes> spared(instructions.size());
    for (std::size_t begin = 0, end = 0; begin < instructions.size(); begin = end) {
        end = begin + 1;
        while (end < instructions.size() && instructions[end].joined)
            ++end;
        if (end - begin < 2)
            continue;
        BufferTimes made;
        BufferTimes died;
        for (std::size_t i = begin; i < end; ++i) {
            for (const std::int32_t output : instructions[i].outputs)
                made.add(output, i);
            for (const std::int32_t buffer : instructions[i].deaths)
                died.add(buffer, i);
        }
        made.sort();
        died.sort();
        for (std::size_t i = begin; i < end; ++i) {
            if (instructions[i].kind != InstructionKind::Kernel)
                continue;
            const auto spare = [&](std::int32_t buffer, std::int64_t times) {
                if (times > 0)
                    spared[i] += Bytes{times * sizeOf(bufferAt(program, buffer)).count};
            };
            for (const std::int32_t input : instructions[i].inputs)
                if (input >= 0)
                    spare(input, made.count(input, begin, i));
            for (const std::int32_t output : instructions[i].outputs)
                if (output >= 0)
                    spare(output, died.count(output, i + 1, end));
        }
    }
    return spared;
}

double seenKeysOf(const ExecutionPlan &plan, const Instruction &instruction)
{
    if (instruction.kind != InstructionKind::Kernel)
        return -1;
    const Operator &op = plan.graph->at(instruction.op);
    const auto o = static_cast<std::size_t>(instruction.op.index);
    if (op.kind != OperatorKind::Attention || o >= plan.partitions.size() || instruction.part < 0
        || instruction.part >= partCount(plan.partitions[o]) / unitParts(plan.partitions[o]))
        return -1;
    return seenKeysOf(*plan.graph, instruction.op, plan.partitions[o],
        instruction.part * unitParts(plan.partitions[o]),
        microBatchRanges(plan.batch, *plan.graph, instruction.op, 0, batchCuts(plan)));
}

double seenKeysOf(const Graph &graph, OperatorId id, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer)
{
    const Operator &op = graph.at(id);
    if (op.kind != OperatorKind::Attention)
        return -1;
    const AttentionReach reach = attentionReach(op.attributes);
    const AttentionSequences sequences = attentionSequences(op);
    const bool cut = std::any_of(partition.splits.begin(), partition.splits.end(), [&](const Split &split) {
        return split.kind == SplitKind::Dimension && split.dimension >= 0
            && (split.dimension == sequences.queries || split.dimension == sequences.keys);
    });
    if (!cut || sequences.queries < 0 || (!reach.causal && reach.window == 0))
        return -1;
    const auto ranges = partBox(op, partition, part, outer).ranges;
    Range keys;
    if (sequences.keys >= 0) {
        keys = ranges[static_cast<std::size_t>(sequences.keys)];
    } else { // cannot be cut: all of them
        const Operator &forward = op.direction == Direction::Backward ? graph.at(op.mirror) : op;
        const Shape &shape = graph.at(forward.inputs[1]).type.shape;
        keys.end = shape[shape.size() - 2];
    }
    return reach.meanKeys(ranges[static_cast<std::size_t>(sequences.queries)], keys);
}

LocalDuration localDuration(const ExecutionPlan &plan, const DeviceProgram &program,
    const Instruction &instruction, const CostModel &costs, Bytes spared, std::int32_t deviceClass)
{
    const auto bytesAt = [&](const BufferList &buffers, std::size_t slot) {
        const bool there = slot < buffers.size() && buffers[slot] >= 0;
        return there ? sizeOf(bufferAt(program, buffers[slot])) : Bytes{};
    };
    // `moved` counts reads and writes; a copy does one of each.
    const auto moving = [&](std::int64_t moved) {
        return toNanoseconds(costs.copy(Bytes{moved / 2}, deviceClass));
    };
    // The same inside a launch that is there anyway.
    const auto within = [&](std::int64_t moved) {
        return toNanoseconds(std::max(0.0,
            costs.copy(Bytes{std::max<std::int64_t>(moved, 0) / 2}, deviceClass)
                - costs.copy(Bytes{}, deviceClass)));
    };
    const auto both = [](Nanoseconds duration) { return LocalDuration{duration, duration}; };

    const std::int64_t in = bytesAt(instruction.inputs, 0).count;
    const std::int64_t out = bytesAt(instruction.outputs, 0).count;
    const bool renames = !instruction.inputs.empty() && dies(instruction, instruction.inputs.front());
    switch (instruction.kind) {
    case InstructionKind::Kernel:
        return both(toNanoseconds(kernelSeconds(plan, program, instruction, costs, spared, deviceClass)));
    case InstructionKind::Accumulate:
        // A product that adds to what is there reads it, and writes as wide as that is.
        return instruction.joined ? LocalDuration{within(2 * out - in), within(out - in)}
                                  : LocalDuration{moving(in + 2 * out), moving(in + out)};
    case InstructionKind::Select:
        return both(out == in ? Nanoseconds{} : moving(2 * out));
    case InstructionKind::Concat:
        return both(instruction.inputs.size() < 2 ? Nanoseconds{} : moving(2 * out));
    case InstructionKind::Sum: {
        const auto terms = static_cast<std::int64_t>(instruction.inputs.size());
        return both(terms < 2 ? Nanoseconds{} : moving((terms + 1) * out));
    }
    case InstructionKind::ValueSelect: {
        const bool carries = !instruction.outputs.empty() && instruction.outputs.front() >= 0
            && bufferAt(program, instruction.outputs.front()).valuePart.index == 0;
        return both(!carries ? moving(out) : renames ? Nanoseconds{} : moving(2 * out));
    }
    case InstructionKind::Cast:
        return both(instruction.joined ? within(in + out) : moving(in + out));
    case InstructionKind::Weigh: // the rows' weights are small beside them
        return both(moving(in + out));
    case InstructionKind::Merge:
        return both(moving(2 * in + out));
    case InstructionKind::Update: // The new value takes the old one's place where nobody else needs it.
        return both(renames ? Nanoseconds{} : moving(2 * out));
    case InstructionKind::Offload:
    case InstructionKind::Fetch:
        // What is joined to another copy is on its way already.
        return both(toNanoseconds(std::max(0.0,
            hostCopySeconds(costs, Bytes{in}, deviceClass)
                - (instruction.joined ? hostCopySeconds(costs, Bytes{}, deviceClass) : 0.0))));
    default:
        return {};
    }
}

} // namespace planloom
