// What other queues than compute do.

#include "engine/interop/torch/program_writer.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"

namespace planloom {

namespace {

const char *queueName(QueueKind queue)
{
    return queue == QueueKind::PipelineBack ? "pipeline_back" : nameOf(queue);
}

} // namespace

std::string ProgramWriter::queueOf(const Instruction &instruction) const
{
    return std::string("run.") + queueName(planloom::queueOf(instruction)) + ".";
}

std::string ProgramWriter::groupOf(const Instruction &instruction) const
{
    if (instruction.acrossUnits)
        return "\"units\"";
    return rankName(std::string(queueName(planloom::queueOf(instruction))) + "_group", instruction.group);
}

std::string ProgramWriter::into(std::int32_t out)
{
    return out >= 0 && info(out).persistent ? ", into=" + read(out) : std::string{};
}

Result<void> ProgramWriter::collective(const Instruction &instruction)
{
    const std::int32_t in = instruction.inputs.empty() ? -1 : instruction.inputs[0];
    const std::int32_t out = instruction.outputs.empty() ? -1 : instruction.outputs[0];
    const std::string value = in < 0 ? "None" : m_names.expressionOf(in);
    const std::string group = ", " + groupOf(instruction);
    const std::string start = queueOf(instruction);
    std::string text;
    if (out >= 0)
        memory(out).own = true;
    switch (instruction.kind) {
    case InstructionKind::AllReduce:
        text = start + (isLeft(instruction, in) && !info(out).persistent ? "all_reduce_(" : "all_reduce(")
            + value + group + combinationOption(instruction.combination) + into(out) + ")";
        break;
    case InstructionKind::AllGather:
        text = start + "all_gather(" + value + group + ", " + std::to_string(instruction.dimension)
            + sizes(instruction) + into(out) + ")";
        break;
    case InstructionKind::ReduceScatter:
        text = start + "reduce_scatter(" + value + group + ", " + std::to_string(instruction.dimension)
            + sizes(instruction) + combinationOption(instruction.combination) + into(out) + ")";
        break;
    case InstructionKind::AllToAll:
        text = start + "all_to_all(" + value + group + ", " + std::to_string(instruction.dimension) + ", "
            + std::to_string(instruction.gatherDimension) + sizes(instruction) + into(out) + ")";
        break;
    case InstructionKind::Broadcast:
        text = start + "broadcast(" + value + group
            + (in >= 0 ? ""
                       : ", " + pythonTuple(shapeOf(info(out).index)) + ", " + pythonType(info(out).dataType))
            + into(out) + ")";
        break;
    default:
        text = start + "shift(" + value + group + into(out) + ")";
    }
    assign(instruction, text, out < 0 ? BufferList{} : instruction.outputs);
    return {};
}

std::string ProgramWriter::sizes(const Instruction &instruction) const
{
    if (instruction.acrossUnits) {
        const std::int32_t part =
            instruction.kind == InstructionKind::AllGather ? instruction.inputs[0] : instruction.outputs[0];
        const BufferInfo &shard = info(part);
        if (shard.share != UnitShare::Shard)
            return {};
        const auto d = static_cast<std::size_t>(shard.shardDimension);
        const Range &range = shard.index.ranges[d];
        if (range.begin + range.size() * m_plan.units.count == shard.shardEnd)
            return {};
        return ", sizes=run.shard_sizes(" + std::to_string(range.size()) + ", "
            + std::to_string(shard.shardEnd - range.begin) + ")";
    }
    const auto found = m_context.uneven.find({m_device, m_segment, m_index});
    if (found == m_context.uneven.end())
        return {};
    const CollectiveSizes &of = found->second;
    if (instruction.kind == InstructionKind::AllToAll)
        return ", sizes=(" + pythonTuple(of.ofOutputs) + ", " + pythonTuple(of.ofInputs) + ")";
    return ", sizes="
        + pythonTuple(instruction.kind == InstructionKind::AllGather ? of.ofInputs : of.ofOutputs);
}

void ProgramWriter::message(const Instruction &instruction)
{
    const std::string peer =
        rankNumber("peer", instruction.peer.index) + ", " + rankNumber("tag", instruction.tag) + ", m)";
    if (instruction.kind == InstructionKind::Send)
        return assign(instruction,
            queueOf(instruction) + "send(" + m_names.expressionOf(instruction.inputs[0]) + ", " + peer, {});
    const std::int32_t out = instruction.outputs[0];
    memory(out).own = true;
    assign(instruction,
        queueOf(instruction) + "recv(" + pythonTuple(shapeOf(info(out).index)) + ", "
            + pythonType(info(out).dataType) + ", " + peer,
        instruction.outputs);
}

void ProgramWriter::hostCopy(const Instruction &instruction)
{
    const bool down = instruction.kind == InstructionKind::Offload;
    const std::int32_t out = instruction.outputs[0];
    memory(out).own = true;
    assign(instruction,
        queueOf(instruction) + (down ? "to_host(" : "to_device(")
            + m_names.expressionOf(instruction.inputs[0]) + into(out) + ")",
        instruction.outputs);
}

} // namespace planloom
