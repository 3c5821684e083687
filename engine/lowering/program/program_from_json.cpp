#include "engine/lowering/program/program_from_json.h"

#include "engine/lowering/program/execution_plan_words.h"
#include "engine/table/kinds/order/lanes.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace planloom {

namespace {

constexpr std::array kInstructionKinds{InstructionKind::Load, InstructionKind::Kernel,
    InstructionKind::Accumulate, InstructionKind::Select, InstructionKind::Concat, InstructionKind::Sum,
    InstructionKind::ValueSelect, InstructionKind::AllReduce, InstructionKind::AllGather,
    InstructionKind::ReduceScatter, InstructionKind::AllToAll, InstructionKind::Broadcast,
    InstructionKind::Send, InstructionKind::Recv, InstructionKind::Store, InstructionKind::Update,
    InstructionKind::Cast, InstructionKind::Weigh, InstructionKind::Offload, InstructionKind::Fetch,
    InstructionKind::Shift, InstructionKind::Merge};
constexpr std::array kBufferTypes{
    DataType::Float32, DataType::Float16, DataType::BFloat16, DataType::Float8E4M3, DataType::Float8E5M2};
constexpr std::array kSegmentKinds{SegmentKind::Prologue, SegmentKind::Forward, SegmentKind::Backward,
    SegmentKind::InputGradient, SegmentKind::WeightGradient, SegmentKind::Transfer, SegmentKind::Reduce,
    SegmentKind::Optimizer};
constexpr std::array kMemoryPlaces{MemoryPlace::Device, MemoryPlace::Host};
constexpr std::array kMemoryKinds{MemoryKind::Weight, MemoryKind::Gradient, MemoryKind::OptimizerState,
    MemoryKind::Activation, MemoryKind::Input, MemoryKind::Communication};

constexpr std::array kCombinations{Combination::Sum, Combination::Max, Combination::LogSumExp};
constexpr std::array kUnitShares{UnitShare::Same, UnitShare::Partial, UnitShare::Shard};
constexpr std::array kQueueKinds{QueueKind::Compute, QueueKind::Tensor, QueueKind::Data, QueueKind::Pipeline,
    QueueKind::PipelineBack, QueueKind::Copy};

} // namespace

DeviceProgram ProgramFromJson::device(const PlanValue &value) const
{
    DeviceProgram program;
    for (const PlanValue &own : value.at("buffers").numbered()) {
        const TensorId tensor{own.at("tensor").index(m_plan.graph->tensors.size())};
        program.buffers.push_back(buffer(own, tensor));
    }
    for (const PlanValue &own : value.at("setup").numbered())
        program.setup.push_back(writtenOut(own, program));
    for (const PlanValue &own : value.at("segments").numbered()) {
        Segment segment = this->segment(own);
        for (const PlanValue &instruction : own.at("instructions").numbered())
            segment.instructions.push_back(writtenOut(instruction, program));
        program.segments.push_back(std::move(segment));
    }
    program.schedule = schedule(value.at("schedule"), program);
    return program;
}

Segment ProgramFromJson::segment(const PlanValue &value) const
{
    Segment segment;
    segment.kind = value.at("kind").named(kSegmentKinds);
    segment.stage.index = value.at("stage").integer(0, m_plan.stageCount - 1);
    if (const auto slice = value.find("slice"))
        segment.slice = slice->integer(0, 1 << 20);
    if (const auto lane = value.find("lane"))
        segment.lane = lane->integer(0, kMostBlockLanes - 1);
    return segment;
}

std::vector<ScheduleEntry> ProgramFromJson::schedule(
    const PlanValue &value, const DeviceProgram &program) const
{
    std::vector<ScheduleEntry> schedule;
    for (const PlanValue &entry : value.items()) {
        const auto pair = entry.integers(0, 1 << 24);
        const bool sliced = pair.size() == 4;
        if ((pair.size() != 2 && !sliced) || pair[0] >= static_cast<std::int32_t>(program.segments.size())
            || pair[1] >= m_plan.microBatches)
            entry.fail("expected [segment, micro-batch] or [segment, micro-batch, begin, end]");
        const auto count = static_cast<std::int32_t>(program.segments[at(pair[0])].instructions.size());
        if (sliced && (pair[2] > pair[3] || pair[3] > count))
            entry.fail("expected a slice of " + std::to_string(count) + " instructions, found ["
                + std::to_string(pair[2]) + ", " + std::to_string(pair[3]) + ")");
        schedule.push_back(
            {pair[0], pair[1], sliced ? pair[2] : 0, sliced && pair[3] < count ? pair[3] : -1});
    }
    return schedule;
}

BufferInfo ProgramFromJson::buffer(const PlanValue &value, TensorId tensor) const
{
    BufferInfo buffer;
    buffer.tensor = tensor;
    const TensorType &type = m_plan.graph->at(tensor).type;
    const Shape &shape = type.shape;
    buffer.dataType = type.dataType;
    if (const auto own = value.find("type")) {
        buffer.dataType = own->named(kBufferTypes);
        if (type.dataType != DataType::Float32 && buffer.dataType != type.dataType)
            own->fail("only float32 tensors take other types");
    }
    const PlanValue box = value.at("box");
    const auto ranges = box.items();
    if (ranges.size() != shape.size())
        box.fail("expected " + std::to_string(shape.size()) + " ranges");
    for (std::size_t d = 0; d < ranges.size(); ++d) {
        const auto range = ranges[d].integers<std::int64_t>(0, shape[d]);
        if (range.size() != 2 || range[0] > range[1])
            box.fail("expected [begin, end] inside the tensor");
        buffer.index.ranges.push_back({range[0], range[1]});
    }
    if (const auto summands = value.find("summands"))
        buffer.summands = summands->integers(0, 1 << 28);
    if (!std::is_sorted(buffer.summands.begin(), buffer.summands.end()))
        value.fail("expected ascending numbers", "/summands");
    if (const auto part = value.find("value_part")) {
        const auto pair = part->integers(0, 1 << 20);
        if (pair.size() != 2 || pair[0] >= pair[1])
            part->fail("expected [index, count]");
        buffer.valuePart = {pair[0], pair[1]};
    }
    buffer.unweighed = value.flag("unweighed", false);
    buffer.perMicroBatch = value.flag("per_micro_batch", true);
    buffer.persistent = value.flag("persistent", false);
    buffer.memory = value.at("memory").named(kMemoryKinds);
    if (const auto place = value.find("place"))
        buffer.place = place->named(kMemoryPlaces);
    if (const auto share = value.find("share"))
        buffer.share = share->named(kUnitShares);
    if (const auto versions = value.find("versions"))
        buffer.versions = versions->integer<std::int16_t>(1, kMostWeightVersions);
    if (const auto staleness = value.find("staleness"))
        buffer.staleness = staleness->integer<std::int16_t>(0, kMostWeightVersions - 1);
    if (buffer.share == UnitShare::Shard) {
        buffer.shardDimension = static_cast<std::int8_t>(value.at("shard_dimension").index(shape.size()));
        buffer.shardEnd = value.at("shard_end").integer<std::int64_t>(0, shape[at(buffer.shardDimension)]);
    }
    return buffer;
}

Instruction ProgramFromJson::instruction(const PlanValue &value, std::size_t bufferCount) const
{
    Instruction instruction;
    instruction.kind = value.at("kind").named(kInstructionKinds);
    const auto optional = [&](const char *name, std::size_t count) {
        const auto found = value.find(name);
        return found ? found->index(count) : std::int32_t{-1};
    };
    for (const auto &[name, member] : kInstructionFlags)
        instruction.*member = value.flag(name, false);
    if (const auto queue = value.find("queue"))
        instruction.queue = queue->named(kQueueKinds);
    instruction.group = optional("group", m_plan.groups.size());
    instruction.peer.index = optional("peer", m_deviceCount);
    instruction.tag = optional("tag", (1 << 30) + 1);
    instruction.dimension = optional("dimension", 65);
    instruction.gatherDimension = optional("gather_dimension", 65);
    if (const auto combination = value.find("combination"))
        instruction.combination = combination->named(kCombinations);
    for (const auto &[name, member, least] : kInstructionBuffers)
        if (const auto buffers = value.find(name))
            instruction.*member = buffers->integers(least, static_cast<std::int64_t>(bufferCount) - 1);
    return instruction;
}

void ProgramFromJson::requireKernel(const PlanValue &value, const Instruction &instruction) const
{
    if (instruction.kind != InstructionKind::Kernel)
        return;
    if (!instruction.op)
        value.fail("expected an operator");
    if (const std::size_t parts = m_plan.placement[at(instruction.op)].size();
        instruction.part < 0 || at(instruction.part) >= parts)
        value.fail("expected an integer from 0 to " + std::to_string(parts - 1), "/part");
    const Operator &op = m_plan.graph->at(instruction.op);
    if (instruction.inputs.size() != op.inputs.size() || instruction.outputs.size() != op.outputs.size())
        value.fail("expected one buffer per slot of " + op.name);
}

Instruction ProgramFromJson::writtenOut(const PlanValue &value, const DeviceProgram &program) const
{
    Instruction instruction = this->instruction(value, program.buffers.size());
    if (const auto op = value.find("operator"))
        instruction.op.index = op->index(m_plan.graph->operators.size());
    if (instruction.kind == InstructionKind::Kernel)
        instruction.part = value.at("part").integer(0, 1 << 20);
    requireKernel(value, instruction);
    return instruction;
}

} // namespace planloom
