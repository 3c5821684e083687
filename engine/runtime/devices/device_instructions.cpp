#include "engine/runtime/devices/device_instructions.h"

#include "engine/graph/operators/storage_types.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

namespace planloom {

namespace {

/// True if any element is NaN. Integers never are.
bool hasNaN(const Buffer &buffer)
{
    const auto count = static_cast<std::size_t>(elementCount(buffer.shape));
    const auto any = [&](const auto *values) {
        return std::any_of(values, values + count, [](auto value) { return std::isnan(value); });
    };
    if (buffer.data == nullptr)
        return false;
    if (buffer.dataType == DataType::Float32)
        return any(reinterpret_cast<const float *>(buffer.data));
    if (buffer.dataType == DataType::Float64)
        return any(reinterpret_cast<const double *>(buffer.data));
    if (isNarrowFloat(buffer.dataType)) {
        std::vector<float> wide(count);
        widen(buffer.data, buffer.dataType, wide.data(), count);
        return any(wide.data());
    }
    return false;
}

/// Where a kernel's NaNs were seen: shared by the looks at its buffers.
struct NaNsSeen {
    std::string op{};
    bool inputs = false;
    bool outputs = false;
};

} // namespace

DeviceInstructions::DeviceInstructions(RunShared &shared, std::int32_t device)
    : m_shared(shared)
    , m_plan(shared.plan)
    , m_program(shared.plan.devices[static_cast<std::size_t>(device)])
    , m_device(device)
    , m_gradientFactor(static_cast<float>(m_plan.updates / lossScaleOf(*m_plan.graph, m_plan.precisions)))
{
    for (const BufferInfo &buffer : m_program.buffers) {
        Slot slot;
        slot.type = buffer.dataType;
        slot.shape = shapeOf(buffer.index);
        slot.elements = elementCount(buffer.index);
        slot.bytes = static_cast<std::size_t>(slot.elements * sizeOf(slot.type));
        if (buffer.perMicroBatch && m_plan.microBatches > 1) {
            // Micro-batches move a box along one dimension, by the same step each time.
            const IndexMask second = planloom::boxOf(m_plan, buffer, 1);
            for (std::size_t d = 0; d < second.ranges.size(); ++d) {
                if (second.ranges[d].begin != buffer.index.ranges[d].begin) {
                    slot.shiftDimension = static_cast<std::int32_t>(d);
                    slot.shift = second.ranges[d].begin - buffer.index.ranges[d].begin;
                }
            }
        }
        m_slots.push_back(std::move(slot));
    }
}

PreparedInstruction DeviceInstructions::prepare(const Instruction &instruction)
{
    PreparedInstruction prepared;
    prepared.source = &instruction;
    prepared.claims = m_shared.collector.claimsOf(m_device, instruction);
    if (instruction.kind != InstructionKind::Kernel)
        return prepared;
    prepared.kernel = prepareKernel(m_plan, m_program, instruction, m_gradientFactor);
    KernelCall &call = prepared.kernel.call;
    call.seed = m_shared.options.seed;
    call.learningRate = m_shared.begin.learningRate;
    call.libraries = &m_shared.libraries;
    if (call.op->kind == OperatorKind::NonZero && prepared.kernel.isFirstReplica
        && m_counted.emplace(instruction.op, instruction.part).second) // when made again, it drops the same
        call.dropped = &m_dropped[instruction.op];
    return prepared;
}

CollectiveCall DeviceInstructions::collectiveCall(const Turn &turn, std::int64_t sequence) const
{
    const Instruction &instruction = *turn.prepared.source;
    CollectiveCall call;
    call.kind = instruction.kind;
    call.group = instruction.group;
    call.sequence = sequence;
    if (!instruction.outputs.empty() && instruction.outputs[0] >= 0) {
        const Slot &out = slot(instruction.outputs[0]);
        call.out = {output(turn, 0), out.type, out.shape};
    }
    if (!instruction.inputs.empty() && instruction.inputs[0] >= 0) {
        const Slot &in = slot(instruction.inputs[0]);
        call.in = {input(turn, 0), in.type, in.shape};
    }
    call.dimension = instruction.dimension;
    call.gatherDimension = instruction.gatherDimension;
    call.combination = instruction.combination;
    return call;
}

std::byte *DeviceInstructions::addressOf(const MemoryPlan &memory, const StepOperand &operand) const
{
    const PlannedBlock &block = memory.blocks[static_cast<std::size_t>(operand.block)];
    const auto owner = static_cast<std::size_t>(block.owner < 0 ? m_device : block.owner);
    return m_shared.arenas[owner][static_cast<std::size_t>(block.place)] + block.offset;
}

std::byte *DeviceInstructions::input(const Turn &turn, std::size_t slot) const
{
    return addressOf(turn.memory, turn.operands[slot]);
}

std::byte *DeviceInstructions::output(const Turn &turn, std::size_t slot) const
{
    return addressOf(turn.memory, turn.operands[turn.prepared.source->inputs.size() + slot]);
}

OperandUse DeviceInstructions::useOf(const Turn &turn, std::size_t output) const
{
    return turn.operands[turn.prepared.source->inputs.size() + output].use;
}

bool DeviceInstructions::isMadeElsewhere(const Turn &turn) const
{
    const Instruction &instruction = *turn.prepared.source;
    for (std::size_t o = 0; o < instruction.outputs.size(); ++o)
        if (useOf(turn, o) == OperandUse::Shared)
            return instruction.kind != InstructionKind::Load; // which may fill others, too
    return false;
}

IndexMask DeviceInstructions::boxOf(std::int32_t buffer, std::int32_t microBatch) const
{
    IndexMask box = info(buffer).index;
    const Slot &slot = this->slot(buffer);
    if (slot.shiftDimension >= 0) {
        Range &range = box.ranges[static_cast<std::size_t>(slot.shiftDimension)];
        range.begin += slot.shift * microBatch;
        range.end += slot.shift * microBatch;
    }
    return box;
}

Result<void> DeviceInstructions::kernel(const Turn &turn, DeviceQueue &queue)
{
    PreparedKernel &prepared = turn.prepared.kernel;
    const Instruction &instruction = *turn.prepared.source;
    if (instruction.outputs.size() == 1 && useOf(turn, 0) == OperandUse::Takes)
        return {};
    KernelCall &call = prepared.call;
    const auto bind = [&](Buffer &to, std::int32_t buffer, std::byte *data) {
        to.data = data;
        const Slot &slot = this->slot(buffer);
        if (slot.shiftDimension < 0)
            return;
        const auto d = static_cast<std::size_t>(slot.shiftDimension);
        const std::int64_t begin = info(buffer).index.ranges[d].begin + slot.shift * turn.microBatch;
        to.mask.ranges[d] = {begin, begin + slot.shape[d]};
    };
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i)
        if (const std::int32_t buffer = instruction.inputs[i]; buffer >= 0)
            bind(call.inputs[i], buffer, input(turn, i));
    call.addsTo = 0;
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
        if (const std::int32_t buffer = instruction.outputs[i]; buffer >= 0) {
            bind(call.outputs[i], buffer, output(turn, i));
            if (useOf(turn, i) == OperandUse::Adds)
                call.addsTo |= 1U << i;
        }
    }
    const std::int64_t step = m_shared.begin.step + turn.step;
    call.step = 1 + step;
    if (call.op->direction == Direction::Optimizer) {
        call.step = 1 + step * m_plan.updates + updateOf(m_plan, turn.microBatch);
        call.rateShare = rateShare(m_shared.begin.schedule, step);
    }
    // Ranges were made for micro-batch 0.
    const auto d = static_cast<std::size_t>(std::max(prepared.batchIdentifier, 0));
    const Range base = prepared.batchIdentifier >= 0 ? call.ranges[d] : Range{};
    const std::int64_t shift = prepared.batchShift * turn.microBatch;
    if (prepared.batchIdentifier >= 0)
        call.ranges[d] = {base.begin + shift, base.end + shift};
    auto outcome = queue.kernel(call, prepared.rounding ? &*prepared.rounding : nullptr);
    if (prepared.batchIdentifier >= 0)
        call.ranges[d] = base;
    TRY_VOID(std::move(outcome));
    if (m_shared.options.findNaN)
        TRY_VOID(checkNumbers(prepared, queue));
    return {};
}

Result<void> DeviceInstructions::checkNumbers(const PreparedKernel &prepared, DeviceQueue &queue) const
{
    const KernelCall &call = prepared.call;
    const auto seen = std::make_shared<NaNsSeen>();
    seen->op = call.op->name;
    const auto look = [&](const Buffer &buffer, const std::vector<DataType> KernelRounding::*types,
                          std::size_t slot, bool NaNsSeen::*flag) -> Result<void> {
        Buffer inMemory = buffer;
        if (prepared.rounding)
            inMemory.dataType = ((*prepared.rounding).*types)[slot];
        if (buffer.data == nullptr || !isFloating(inMemory.dataType))
            return {};
        const auto bytes = static_cast<std::size_t>(elementCount(buffer.shape) * sizeOf(inMemory.dataType));
        return queue.download(
            buffer.data, bytes, [inMemory, seen, flag](const std::byte *data) -> Result<void> {
                Buffer onHost = inMemory;
                onHost.data = const_cast<std::byte *>(data); // only read
                (*seen).*flag = (*seen).*flag || hasNaN(onHost);
                if (!seen->outputs || seen->inputs) // passed on, not made here
                    return {};
                return Error{ErrorCode::CheckFailed, "operator " + seen->op + " made NaN out of numbers",
                    "check the model's inputs and weights, or lower the learning rate", {}};
            });
    };
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
        TRY_VOID(look(call.inputs[i], &KernelRounding::inputs, i, &NaNsSeen::inputs));
    for (std::size_t o = 0; o < call.outputs.size(); ++o)
        TRY_VOID(look(call.outputs[o], &KernelRounding::outputs, o, &NaNsSeen::outputs));
    return {};
}

Result<void> DeviceInstructions::accumulate(const Turn &turn, DeviceQueue &queue)
{
    const Instruction &instruction = *turn.prepared.source;
    const std::int32_t in = instruction.inputs[0];
    const std::int32_t out = instruction.outputs[0];
    const auto count = static_cast<std::size_t>(slot(out).elements);
    switch (useOf(turn, 0)) {
    case OperandUse::Takes:
        return {};
    case OperandUse::Makes:
        (void)queue.convert(input(turn, 0), slot(in).type, output(turn, 0), slot(out).type, count);
        return {};
    default:
        if (queue.add(output(turn, 0), slot(out).type, input(turn, 0), slot(in).type, count))
            return {};
        return Error{ErrorCode::NotSupported,
            std::string{"values of type "} + nameOf(slot(out).type) + " cannot be added", {}, {}};
    }
}

Result<void> DeviceInstructions::cast(const Turn &turn, DeviceQueue &queue)
{
    const std::int32_t in = turn.prepared.source->inputs[0];
    const std::int32_t out = turn.prepared.source->outputs[0];
    if (!queue.convert(input(turn, 0), slot(in).type, output(turn, 0), slot(out).type,
            static_cast<std::size_t>(slot(out).elements)))
        return Error{ErrorCode::NotSupported,
            std::string{"values of type "} + nameOf(slot(in).type) + " cannot be cast to "
                + nameOf(slot(out).type),
            "this plan was not made by Planloom, or is damaged", {}};
    return {};
}

Result<void> DeviceInstructions::copyPieces(const Turn &turn, DeviceQueue &queue)
{
    const Instruction &instruction = *turn.prepared.source;
    const std::int32_t out = instruction.outputs[0];
    if (useOf(turn, 0) == OperandUse::Takes)
        return {};
    const IndexMask outBox = boxOf(out, turn.microBatch);
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
        const IndexMask inBox = boxOf(instruction.inputs[i], turn.microBatch);
        if (const auto region = intersection(inBox, outBox))
            queue.copyBox(input(turn, i), inBox, output(turn, 0), outBox, *region, sizeOf(slot(out).type));
    }
    return {};
}

Result<void> DeviceInstructions::sum(const Turn &turn, DeviceQueue &queue)
{
    const Instruction &instruction = *turn.prepared.source;
    const std::int32_t out = instruction.outputs[0];
    std::vector<const std::byte *> from;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i)
        from.push_back(input(turn, i));
    if (!queue.combine(output(turn, 0), from, static_cast<std::size_t>(slot(out).elements), slot(out).type,
            instruction.combination))
        return Error{ErrorCode::NotSupported,
            std::string{"values of type "} + nameOf(slot(out).type) + " cannot be combined by "
                + nameOf(instruction.combination),
            {}, {}};
    return {};
}

Result<void> DeviceInstructions::weigh(const Turn &turn, DeviceQueue &queue)
{
    const Instruction &instruction = *turn.prepared.source;
    const std::int32_t part = instruction.inputs[0];
    const std::int32_t own = instruction.inputs[1];
    const std::int32_t all = instruction.inputs[2];
    const std::int32_t out = instruction.outputs[0];
    const auto rows = static_cast<std::size_t>(slot(own).elements);
    const auto elements = static_cast<std::size_t>(slot(part).elements);
    if (slot(all).elements != slot(own).elements || slot(all).type != slot(own).type
        || slot(out).elements != slot(part).elements || slot(out).type != slot(part).type
        || (rows > 0 && elements % rows != 0)
        || !queue.weigh(output(turn, 0), input(turn, 0), slot(part).type, input(turn, 1), input(turn, 2),
            slot(own).type, rows, rows == 0 ? 0 : elements / rows))
        return damagedPlan("a part and its weights do not fit");
    return {};
}

Result<void> DeviceInstructions::merge(const Turn &turn, DeviceQueue &queue)
{
    const Instruction &instruction = *turn.prepared.source;
    const BufferList &ins = instruction.inputs;
    const std::int32_t both = instruction.outputs[0];
    const std::int32_t bothRows = instruction.outputs[1];
    const auto rows = static_cast<std::size_t>(slot(ins[1]).elements);
    const auto elements = static_cast<std::size_t>(slot(ins[0]).elements);
    std::array<const std::byte *, 4> from{};
    bool fits = rows == 0 || elements % rows == 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::int32_t like = i % 2 == 0 ? both : bothRows;
        from[i] = input(turn, i);
        fits = fits && slot(ins[i]).type == slot(like).type && slot(ins[i]).elements == slot(like).elements;
    }
    if (!fits
        || !queue.merge(output(turn, 0), output(turn, 1), {from[0], from[2]}, {from[1], from[3]},
            slot(both).type, slot(bothRows).type, rows, rows == 0 ? 0 : elements / rows))
        return damagedPlan("two parts and their log-sum-exps do not fit");
    return {};
}

Result<void> DeviceInstructions::moveWhole(const Turn &turn, DeviceQueue &queue)
{
    const std::int32_t in = turn.prepared.source->inputs[0];
    const std::int32_t out = turn.prepared.source->outputs[0];
    if (useOf(turn, 0) == OperandUse::Takes)
        return {};
    if (slot(in).bytes != slot(out).bytes)
        return Error{ErrorCode::InvalidInput, "a copy of another size", "verify the plan", {}};
    queue.copy(output(turn, 0), input(turn, 0), slot(in).bytes);
    return {};
}

Result<void> DeviceInstructions::execute(const Turn &turn, DeviceQueue &queue)
{
    const Instruction &instruction = *turn.prepared.source;
    switch (instruction.kind) {
    case InstructionKind::Load:
        for (std::size_t o = 0; o < instruction.outputs.size(); ++o) {
            const std::int32_t out = instruction.outputs[o];
            if (useOf(turn, o) == OperandUse::Shared)
                continue;
            TRY_VOID(queue.upload(
                output(turn, o), slot(out).bytes, [this, out, microBatch = turn.microBatch](std::byte *to) {
                    return m_shared.values.load(
                        info(out).tensor, boxOf(out, microBatch), slot(out).type, to, microBatch);
                }));
        }
        return {};
    case InstructionKind::Kernel:
        return kernel(turn, queue);
    case InstructionKind::Accumulate:
        return accumulate(turn, queue);
    case InstructionKind::Select:
    case InstructionKind::Concat:
        return copyPieces(turn, queue);
    case InstructionKind::Sum:
        return sum(turn, queue);
    case InstructionKind::ValueSelect:
        if (info(instruction.outputs[0]).valuePart.index == 0)
            return copyPieces(turn, queue);
        queue.fill(output(turn, 0), 0, slot(instruction.outputs[0]).bytes);
        return {};
    case InstructionKind::Cast:
        return cast(turn, queue);
    case InstructionKind::Weigh:
        return weigh(turn, queue);
    case InstructionKind::Merge:
        return merge(turn, queue);
    case InstructionKind::Offload:
    case InstructionKind::Fetch:
    case InstructionKind::Update:
        return moveWhole(turn, queue);
    case InstructionKind::Store: // its claims say what goes to the host
    case InstructionKind::AllReduce:
    case InstructionKind::AllGather:
    case InstructionKind::ReduceScatter:
    case InstructionKind::AllToAll:
    case InstructionKind::Broadcast:
    case InstructionKind::Shift:
    case InstructionKind::Send:
    case InstructionKind::Recv:
        return {}; // the communicator's
    }
    return {};
}

Result<void> DeviceInstructions::run(const Turn &turn, DeviceQueue &queue)
{
    if (m_shared.stopped.load(std::memory_order_relaxed))
        return cancelled("the run was stopped");
    const PreparedInstruction &prepared = turn.prepared;
    const Instruction &instruction = *prepared.source;
    if (m_shared.options.poison && turn.step <= 0) {
        for (std::size_t o = 0; o < instruction.outputs.size(); ++o)
            if (useOf(turn, o) == OperandUse::Makes) // NaN in every floating type, -1 in integers
                queue.fill(output(turn, o), 0xFF, slot(instruction.outputs[o]).bytes);
    }
    if (!isMadeElsewhere(turn))
        TRY_VOID(execute(turn, queue));
    const bool lastStep = turn.step + 1 == m_shared.options.steps;
    for (const Collector::Claim &claim : prepared.claims) {
        if (!lastStep && claim.lastStepOnly)
            continue;
        const auto of = [&](const BufferList &buffers) {
            return static_cast<std::size_t>(
                std::find(buffers.begin(), buffers.end(), claim.buffer) - buffers.begin());
        };
        const std::size_t out = of(instruction.outputs); // what is updated in place is looked at behind it
        const std::byte *const from =
            out < instruction.outputs.size() ? output(turn, out) : input(turn, of(instruction.inputs));
        TRY_VOID(queue.download(from, slot(claim.buffer).bytes,
            [this, &claim, microBatch = turn.microBatch, event = turn.event](
                const std::byte *data) -> Result<void> {
                m_shared.collector.put(claim, boxOf(claim.buffer, microBatch), data, {m_device, event});
                return {};
            }));
    }
    return {};
}

} // namespace planloom
