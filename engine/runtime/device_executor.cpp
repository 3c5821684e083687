#include "engine/runtime/device_executor.h"

#include "engine/graph/catalogue.h"
#include "engine/graph/storage_types.h"
#include "engine/kernels/narrow_float.h"
#include "engine/runtime/box_copy.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>
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

} // namespace

DeviceExecutor::DeviceExecutor(RunShared &shared, std::int32_t device, DeviceProgress &progress)
    : m_shared(shared)
    , m_plan(shared.plan)
    , m_program(shared.plan.devices[static_cast<std::size_t>(device)])
    , m_device(device)
    , m_progress(progress)
    , m_gradientFactor(static_cast<float>(m_plan.updates / lossScaleOf(*m_plan.graph, m_plan.precisions)))
{
    std::size_t instances = 0;
    for (const BufferInfo &buffer : m_program.buffers) {
        Slot slot;
        slot.first = instances;
        instances += buffer.perMicroBatch ? static_cast<std::size_t>(m_plan.microBatches) : 1;
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
    m_blocks.resize(instances);
    for (const Instruction &instruction : m_program.setup)
        m_setup.push_back(prepare(instruction));
    for (const Segment &segment : m_program.segments) {
        std::vector<Prepared> &prepared = m_segments.emplace_back();
        prepared.reserve(segment.instructions.size());
        for (const Instruction &instruction : segment.instructions)
            prepared.push_back(prepare(instruction));
    }
}

DeviceExecutor::Prepared DeviceExecutor::prepare(const Instruction &instruction)
{
    Prepared prepared;
    prepared.source = &instruction;
    prepared.claims = m_shared.collector.claimsOf(m_device, instruction);
    const auto input = instruction.inputs.empty() ? -1 : instruction.inputs[0];
    const auto output = instruction.outputs.empty() ? -1 : instruction.outputs[0];
    if (instruction.kind == InstructionKind::Kernel)
        prepareKernel(instruction, prepared);
    if (input < 0 || output < 0 || !diesIn(instruction, input))
        return prepared;
    // Memory changes hands only where an instance of one becomes exactly one instance of the other.
    const bool alike = slot(input).bytes == slot(output).bytes && slot(input).type == slot(output).type
        && info(input).perMicroBatch == info(output).perMicroBatch;
    const bool sameBox = alike && info(input).index == info(output).index;
    switch (instruction.kind) {
    case InstructionKind::Kernel:
        prepared.takesInput = alike && isView(m_plan.graph->at(instruction.op))
            && instruction.outputs.size() == 1
            && std::count(instruction.inputs.begin(), instruction.inputs.end(), input) == 1;
        break;
    case InstructionKind::Select:
    case InstructionKind::AllReduce:
    case InstructionKind::Broadcast:
    case InstructionKind::Weigh:
    case InstructionKind::Merge:
        prepared.takesInput = sameBox;
        break;
    case InstructionKind::Concat:
        prepared.takesInput = sameBox && instruction.inputs.size() == 1;
        break;
    case InstructionKind::Sum:
        prepared.takesInput =
            sameBox && std::count(instruction.inputs.begin(), instruction.inputs.end(), input) == 1;
        break;
    case InstructionKind::ValueSelect:
        prepared.takesInput = sameBox && info(output).valuePart.index == 0;
        break;
    default:
        break; // Accumulate and Update decide as they run: their outputs outlive micro-batches
    }
    return prepared;
}

void DeviceExecutor::prepareKernel(const Instruction &instruction, Prepared &prepared)
{
    const Graph &graph = *m_plan.graph;
    const auto index = static_cast<std::size_t>(instruction.op.index);
    const Operator &op = graph.at(instruction.op);
    KernelCall &call = prepared.call;
    call.op = &op;
    call.seed = m_shared.options.seed;
    call.libraries = &m_shared.libraries;
    const Operator &forward =
        op.direction == Direction::Backward && op.mirror.valid() ? graph.at(op.mirror) : op;
    if (m_plan.microBatches > 1 && op.attributes.has("count") && !forward.outputs.empty()
        && forward.outputs[0].valid() && m_plan.batch.operatorDimension[index] >= 0
        && m_plan.batch.tensorRole[static_cast<std::size_t>(forward.outputs[0].index)] == BatchRole::Local) {
        // Each micro-batch has statistics of its own: its mean divides by its own number of elements.
        prepared.adapted = std::make_unique<Operator>(op);
        prepared.adapted->attributes.set("count", op.attributes.integer("count") / m_plan.microBatches);
        call.op = prepared.adapted.get();
    }
    const bool once = index < m_plan.batch.oncePerStep.size() && m_plan.batch.oncePerStep[index];
    std::vector<Range> outer;
    if (!once && m_plan.microBatches > 1) {
        outer = microBatchRanges(m_plan.batch, graph, instruction.op, 0, m_plan.microBatches);
        const std::int32_t identifier = m_plan.batch.operatorDimension[index];
        if (identifier >= 0) {
            prepared.batchIdentifier = identifier;
            prepared.batchShift = outer[static_cast<std::size_t>(identifier)].size();
        }
    }
    const PartBox box = partBox(op, m_plan.partitions[index], instruction.part, outer);
    call.ranges = box.ranges;
    call.value = box.value;
    if (op.kind == OperatorKind::NonZero && box.replica == 0
        && m_counted.emplace(instruction.op, instruction.part).second) // when made again, it drops the same
        call.dropped = &m_dropped[instruction.op];
    const auto bufferOf = [&](std::int32_t buffer) {
        if (buffer < 0)
            return Buffer{};
        const TensorType &type = graph.at(info(buffer).tensor).type;
        return Buffer{nullptr, computedAs(type.dataType), slot(buffer).shape, info(buffer).index, type.shape};
    };
    KernelRounding rounding{.compute = arithmeticOf(graph, op, precisionOf(m_plan, instruction.op)),
        .gradientFactor = op.direction == Direction::Optimizer ? m_gradientFactor : 1.0f};
    const auto typeOf = [&](std::int32_t buffer) {
        return buffer < 0 ? Buffer{}.dataType : slot(buffer).type;
    };
    for (const std::int32_t buffer : instruction.inputs) {
        call.inputs.push_back(bufferOf(buffer));
        rounding.inputs.push_back(typeOf(buffer));
    }
    for (const std::int32_t buffer : instruction.outputs) {
        call.outputs.push_back(bufferOf(buffer));
        rounding.outputs.push_back(typeOf(buffer));
    }
    prepared.rounding = roundingOf(call, std::move(rounding));
}

MemoryBlock &DeviceExecutor::block(std::int32_t buffer, std::int32_t microBatch)
{
    const std::size_t instance = info(buffer).perMicroBatch ? static_cast<std::size_t>(microBatch) : 0;
    return m_blocks[slot(bufferOfVersion(info(buffer), buffer, m_update)).first + instance];
}

IndexMask DeviceExecutor::boxOf(std::int32_t buffer, std::int32_t microBatch) const
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

CollectiveBuffer DeviceExecutor::collectiveBuffer(std::int32_t buffer, std::int32_t microBatch)
{
    if (buffer < 0)
        return {};
    return {block(buffer, microBatch).data(), slot(buffer).type, slot(buffer).shape};
}

bool DeviceExecutor::diesIn(const Instruction &instruction, std::int32_t buffer) const
{
    return !info(buffer).persistent
        && std::find(instruction.deaths.begin(), instruction.deaths.end(), buffer)
        != instruction.deaths.end();
}

void DeviceExecutor::account(std::int32_t buffer, std::int64_t sign)
{
    const std::int64_t bytes = sign * static_cast<std::int64_t>(slot(buffer).bytes);
    if (info(buffer).place == MemoryPlace::Host) {
        m_hostLive += bytes;
        m_hostPeak = std::max(m_hostPeak, m_hostLive);
        return;
    }
    m_live[static_cast<std::size_t>(info(buffer).memory)] += bytes;
    m_liveTotal += bytes;
    m_peak = std::max(m_peak, m_liveTotal);
}

Result<std::byte *> DeviceExecutor::acquire(std::int32_t buffer, std::int32_t microBatch)
{
    MemoryBlock &memory = block(buffer, microBatch);
    if (memory) // written again, as in a second setup of one buffer
        return memory.data();
    const bool onHost = info(buffer).place == MemoryPlace::Host;
    memory = (onHost ? m_shared.hostPool : m_shared.pool).allocate(slot(buffer).bytes);
    if (!memory)
        return Error{ErrorCode::ResourceLimit,
            std::string(onHost ? "the host of " : "") + "device " + std::to_string(m_device)
                + " found no memory for " + std::to_string(slot(buffer).bytes) + " bytes of "
                + m_plan.graph->at(info(buffer).tensor).name,
            "use a smaller batch, more micro-batches or recomputation", {}};
    account(buffer, 1);
    if (m_shared.options.poison)
        std::memset(memory.data(), 0xFF, slot(buffer).bytes); // NaN in every floating type, -1 in integers
    return memory.data();
}

void DeviceExecutor::release(std::int32_t buffer, std::int32_t microBatch)
{
    MemoryBlock &memory = block(buffer, microBatch);
    if (!memory)
        return;
    memory.reset();
    account(buffer, -1);
}

void DeviceExecutor::take(std::int32_t from, std::int32_t to, std::int32_t microBatch)
{
    MemoryBlock &target = block(to, microBatch);
    if (target)
        release(to, microBatch);
    target = std::move(block(from, microBatch));
    account(from, -1);
    account(to, 1);
}

Result<void> DeviceExecutor::kernel(Prepared &prepared, std::int32_t microBatch, std::int32_t step)
{
    const Instruction &instruction = *prepared.source;
    if (prepared.takesInput) {
        take(instruction.inputs[0], instruction.outputs[0], microBatch);
        return {};
    }
    KernelCall &call = prepared.call;
    const auto bind = [&](Buffer &to, std::int32_t buffer, std::byte *data) {
        to.data = data;
        const Slot &slot = this->slot(buffer);
        if (slot.shiftDimension < 0)
            return;
        const auto d = static_cast<std::size_t>(slot.shiftDimension);
        const std::int64_t begin = info(buffer).index.ranges[d].begin + slot.shift * microBatch;
        to.mask.ranges[d] = {begin, begin + slot.shape[d]};
    };
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i)
        if (const std::int32_t buffer = instruction.inputs[i]; buffer >= 0)
            bind(call.inputs[i], buffer, block(buffer, microBatch).data());
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
        if (const std::int32_t buffer = instruction.outputs[i]; buffer >= 0) {
            TRY(std::byte *const data, acquire(buffer, microBatch));
            bind(call.outputs[i], buffer, data);
        }
    }
    call.step = 1 + (call.op->direction == Direction::Optimizer ? static_cast<std::int32_t>(m_update) : step);
    const auto runCall = [&] {
        return prepared.rounding ? runRounded(call, *prepared.rounding) : runKernel(call);
    };
    if (prepared.batchIdentifier >= 0) {
        // Ranges were made for micro-batch 0, or moved since: the micro-batch is told by the mask of the part
        // itself.
        const auto d = static_cast<std::size_t>(prepared.batchIdentifier);
        const std::int64_t shift = prepared.batchShift * microBatch;
        const Range base = call.ranges[d];
        call.ranges[d] = {base.begin + shift, base.end + shift};
        auto outcome = runCall();
        call.ranges[d] = base;
        TRY_VOID(std::move(outcome));
    } else {
        TRY_VOID(runCall());
    }
    if (m_shared.options.findNaN)
        TRY_VOID(checkNumbers(prepared));
    return {};
}

Result<void> DeviceExecutor::checkNumbers(const Prepared &prepared) const
{
    const KernelCall &call = prepared.call;
    const auto anyNaN = [&](const Buffer &buffer, const std::vector<DataType> KernelRounding::*types,
                            std::size_t slot) {
        Buffer inMemory = buffer;
        if (prepared.rounding)
            inMemory.dataType = ((*prepared.rounding).*types)[slot];
        return hasNaN(inMemory);
    };
    for (std::size_t o = 0; o < call.outputs.size(); ++o) {
        if (!anyNaN(call.outputs[o], &KernelRounding::outputs, o))
            continue;
        for (std::size_t i = 0; i < call.inputs.size(); ++i)
            if (anyNaN(call.inputs[i], &KernelRounding::inputs, i))
                return {}; // passed on, not made here
        return Error{ErrorCode::CheckFailed, "operator " + call.op->name + " made NaN out of numbers",
            "check the model's inputs and weights, or lower the learning rate", {}};
    }
    return {};
}

Result<void> DeviceExecutor::accumulate(const Prepared &prepared, std::int32_t microBatch)
{
    const Instruction &instruction = *prepared.source;
    const std::int32_t in = instruction.inputs[0];
    const std::int32_t out = instruction.outputs[0];
    MemoryBlock &target = block(out, microBatch);
    const bool first = !target;
    const bool alike = slot(in).type == slot(out).type;
    const auto count = static_cast<std::size_t>(slot(out).elements);
    if (first && alike && diesIn(instruction, in)) {
        take(in, out, microBatch);
    } else if (first) {
        TRY(std::byte *const to, acquire(out, microBatch));
        convertFloats(block(in, microBatch).data(), slot(in).type, to, slot(out).type, count);
    } else if (!(alike ? addInto(target.data(), block(in, microBatch).data(), count, slot(out).type)
                       : addConverted(target.data(), slot(out).type, block(in, microBatch).data(),
                           slot(in).type, count))) {
        return Error{ErrorCode::NotSupported,
            std::string{"values of type "} + nameOf(slot(out).type) + " cannot be added", {}, {}};
    }
    return {};
}

Result<void> DeviceExecutor::cast(const Prepared &prepared, std::int32_t microBatch)
{
    const std::int32_t in = prepared.source->inputs[0];
    const std::int32_t out = prepared.source->outputs[0];
    TRY(std::byte *const to, acquire(out, microBatch));
    if (!convertFloats(block(in, microBatch).data(), slot(in).type, to, slot(out).type,
            static_cast<std::size_t>(slot(out).elements)))
        return Error{ErrorCode::NotSupported,
            std::string{"values of type "} + nameOf(slot(in).type) + " cannot be cast to "
                + nameOf(slot(out).type),
            "this plan was not made by Planloom, or is damaged", {}};
    return {};
}

Result<void> DeviceExecutor::copyPieces(const Prepared &prepared, std::int32_t microBatch)
{
    const Instruction &instruction = *prepared.source;
    const std::int32_t out = instruction.outputs[0];
    if (prepared.takesInput) {
        take(instruction.inputs[0], out, microBatch);
        return {};
    }
    TRY(std::byte *const to, acquire(out, microBatch));
    const IndexMask outBox = boxOf(out, microBatch);
    for (const std::int32_t in : instruction.inputs) {
        const IndexMask inBox = boxOf(in, microBatch);
        const auto region = intersection(inBox, outBox);
        if (region)
            copyBox(block(in, microBatch).data(), inBox, to, outBox, *region, sizeOf(slot(out).type));
    }
    return {};
}

Result<void> DeviceExecutor::sum(const Prepared &prepared, std::int32_t microBatch)
{
    const Instruction &instruction = *prepared.source;
    const std::int32_t out = instruction.outputs[0];
    std::vector<const std::byte *> from;
    for (const std::int32_t in : instruction.inputs)
        from.push_back(block(in, microBatch).data());
    if (prepared.takesInput)
        take(instruction.inputs[0], out, microBatch); // its data stays where `from` says
    TRY(std::byte *const to, acquire(out, microBatch));
    if (!combineInto(
            to, from, static_cast<std::size_t>(slot(out).elements), slot(out).type, instruction.combination))
        return Error{ErrorCode::NotSupported,
            std::string{"values of type "} + nameOf(slot(out).type) + " cannot be combined by "
                + nameOf(instruction.combination),
            {}, {}};
    return {};
}

Result<void> DeviceExecutor::weigh(const Prepared &prepared, std::int32_t microBatch)
{
    const Instruction &instruction = *prepared.source;
    const std::int32_t part = instruction.inputs[0];
    const std::int32_t own = instruction.inputs[1];
    const std::int32_t all = instruction.inputs[2];
    const std::int32_t out = instruction.outputs[0];
    const auto rows = static_cast<std::size_t>(slot(own).elements);
    const auto elements = static_cast<std::size_t>(slot(part).elements);
    const std::byte *from = block(part, microBatch).data();
    if (prepared.takesInput)
        take(part, out, microBatch); // its data stays where `from` says
    TRY(std::byte *const to, acquire(out, microBatch));
    if (slot(all).elements != slot(own).elements || slot(all).type != slot(own).type
        || slot(out).elements != slot(part).elements || slot(out).type != slot(part).type
        || (rows > 0 && elements % rows != 0)
        || !weighInto(to, from, slot(part).type, block(own, microBatch).data(), block(all, microBatch).data(),
            slot(own).type, rows, rows == 0 ? 0 : elements / rows))
        return Error{ErrorCode::InvalidInput, "a part and its weights do not fit",
            "this plan was not made by Planloom, or is damaged", {}};
    return {};
}

Result<void> DeviceExecutor::merge(const Prepared &prepared, std::int32_t microBatch)
{
    const Instruction &instruction = *prepared.source;
    const BufferList &ins = instruction.inputs;
    const std::int32_t both = instruction.outputs[0];
    const std::int32_t bothRows = instruction.outputs[1];
    const auto rows = static_cast<std::size_t>(slot(ins[1]).elements);
    const auto elements = static_cast<std::size_t>(slot(ins[0]).elements);
    std::array<const std::byte *, 4> from{};
    bool fits = rows == 0 || elements % rows == 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::int32_t like = i % 2 == 0 ? both : bothRows;
        from[i] = block(ins[i], microBatch).data();
        fits = fits && slot(ins[i]).type == slot(like).type && slot(ins[i]).elements == slot(like).elements;
    }
    TRY(std::byte *const logarithms, acquire(bothRows, microBatch));
    if (prepared.takesInput)
        take(ins[0], both, microBatch); // its data stays where `from` says
    TRY(std::byte *const to, acquire(both, microBatch));
    if (!fits
        || !mergeInto(to, logarithms, {from[0], from[2]}, {from[1], from[3]}, slot(both).type,
            slot(bothRows).type, rows, rows == 0 ? 0 : elements / rows))
        return Error{ErrorCode::InvalidInput, "two parts and their log-sum-exps do not fit",
            "this plan was not made by Planloom, or is damaged", {}};
    return {};
}

Result<void> DeviceExecutor::valueSelect(const Prepared &prepared, std::int32_t microBatch)
{
    const std::int32_t out = prepared.source->outputs[0];
    if (info(out).valuePart.index == 0)
        return copyPieces(prepared, microBatch);
    TRY(std::byte *const to, acquire(out, microBatch));
    std::memset(to, 0, slot(out).bytes);
    return {};
}

Result<void> DeviceExecutor::collective(
    const Prepared &prepared, std::int32_t microBatch, Communicator &communicator)
{
    const Instruction &instruction = *prepared.source;
    const std::int32_t input = instruction.inputs.empty() ? -1 : instruction.inputs[0];
    const std::int32_t output = instruction.outputs.empty() ? -1 : instruction.outputs[0];
    if (prepared.takesInput)
        take(input, output, microBatch);
    else if (output >= 0)
        TRY_VOID(acquire(output, microBatch));
    const CollectiveBuffer out = collectiveBuffer(output, microBatch);
    const CollectiveBuffer in = prepared.takesInput ? out : collectiveBuffer(input, microBatch);
    switch (instruction.kind) {
    case InstructionKind::AllReduce:
        return communicator.allReduce(instruction.group, in, out, instruction.combination);
    case InstructionKind::AllGather:
        return communicator.allGather(instruction.group, in, out, instruction.dimension);
    case InstructionKind::ReduceScatter:
        return communicator.reduceScatter(
            instruction.group, in, out, instruction.dimension, instruction.combination);
    case InstructionKind::AllToAll:
        return communicator.allToAll(
            instruction.group, in, out, instruction.dimension, instruction.gatherDimension);
    case InstructionKind::Shift:
        return communicator.shift(instruction.group, in, out);
    default:
        assert(instruction.kind == InstructionKind::Broadcast);
        return communicator.broadcast(instruction.group, in, out);
    }
}

Result<void> DeviceExecutor::message(
    const Prepared &prepared, std::int32_t microBatch, Communicator &communicator)
{
    const Instruction &instruction = *prepared.source;
    const MessageKey key{instruction.peer, instruction.tag, microBatch};
    if (instruction.kind == InstructionKind::Send) {
        const std::int32_t in = instruction.inputs[0];
        MemoryBlock packet;
        if (diesIn(instruction, in)) {
            packet = std::move(block(in, microBatch));
            account(in, -1);
        } else {
            packet = m_shared.pool.allocate(slot(in).bytes);
            if (!packet)
                return Error{
                    ErrorCode::ResourceLimit, "no memory for a message", "use more micro-batches", {}};
            std::memcpy(packet.data(), block(in, microBatch).data(), slot(in).bytes);
        }
        return communicator.send(key, std::move(packet));
    }
    const std::int32_t out = instruction.outputs[0];
    TRY(auto packet, communicator.receive(key));
    if (packet.size() != slot(out).bytes)
        return Error{ErrorCode::InvalidInput,
            "expected " + std::to_string(slot(out).bytes) + " bytes from device "
                + std::to_string(instruction.peer.index) + ", got " + std::to_string(packet.size()),
            "this plan was not made by Planloom, or is damaged", {}};
    release(out, microBatch);
    block(out, microBatch) = std::move(packet);
    account(out, 1);
    return {};
}

Result<void> DeviceExecutor::execute(
    Prepared &prepared, std::int32_t microBatch, std::int32_t step, Communicator &communicator)
{
    const Instruction &instruction = *prepared.source;
    for (const std::int32_t input : instruction.inputs)
        if (input >= 0 && !block(input, microBatch))
            return Error{ErrorCode::InvalidInput,
                "the plan reads " + m_plan.graph->at(info(input).tensor).name + " on device "
                    + std::to_string(m_device) + " before it is there",
                "verify the plan", {}};
    switch (instruction.kind) {
    case InstructionKind::Load:
        for (const std::int32_t out : instruction.outputs) {
            TRY(std::byte *const to, acquire(out, microBatch));
            TRY_VOID(m_shared.values.load(info(out).tensor, boxOf(out, microBatch), slot(out).type, to));
        }
        return {};
    case InstructionKind::Kernel:
        return kernel(prepared, microBatch, step);
    case InstructionKind::Accumulate:
        return accumulate(prepared, microBatch);
    case InstructionKind::Select:
    case InstructionKind::Concat:
        return copyPieces(prepared, microBatch);
    case InstructionKind::Sum:
        return sum(prepared, microBatch);
    case InstructionKind::ValueSelect:
        return valueSelect(prepared, microBatch);
    case InstructionKind::AllReduce:
    case InstructionKind::AllGather:
    case InstructionKind::ReduceScatter:
    case InstructionKind::AllToAll:
    case InstructionKind::Broadcast:
    case InstructionKind::Shift:
        return collective(prepared, microBatch, communicator);
    case InstructionKind::Send:
    case InstructionKind::Recv:
        return message(prepared, microBatch, communicator);
    case InstructionKind::Cast:
        return cast(prepared, microBatch);
    case InstructionKind::Weigh:
        return weigh(prepared, microBatch);
    case InstructionKind::Merge:
        return merge(prepared, microBatch);
    case InstructionKind::Store:
        return {}; // its claims say what goes to the host
    case InstructionKind::Offload:
    case InstructionKind::Fetch: {
        const std::int32_t in = instruction.inputs[0];
        const std::int32_t out = instruction.outputs[0];
        if (slot(in).bytes != slot(out).bytes)
            return Error{ErrorCode::InvalidInput, "a copy of another size", "verify the plan", {}};
        TRY(std::byte *const to, acquire(out, microBatch));
        std::memcpy(to, block(in, microBatch).data(), slot(in).bytes);
        return {};
    }
    case InstructionKind::Update: {
        const std::int32_t in = instruction.inputs[0];
        const std::int32_t out = instruction.outputs[0];
        if (diesIn(instruction, in) && slot(in).bytes == slot(out).bytes) {
            take(in, out, microBatch);
        } else {
            TRY(std::byte *const to, acquire(out, microBatch));
            std::memcpy(to, block(in, microBatch).data(), std::min(slot(in).bytes, slot(out).bytes));
        }
        return {};
    }
    }
    return {};
}

Result<void> DeviceExecutor::run(
    Prepared &prepared, std::int32_t microBatch, std::int32_t step, Communicator &communicator)
{
    if (m_shared.stopped.load(std::memory_order_relaxed))
        return cancelled("the run was stopped");
    Result<void> outcome;
    try {
        outcome = execute(prepared, microBatch, step, communicator);
    } catch (const std::bad_alloc &) {
        outcome = Error{
            ErrorCode::ResourceLimit, "memory is exhausted", "use a smaller batch or recomputation", {}};
    } catch (const std::exception &failure) { // of libraries behind the kernels
        outcome = Error{ErrorCode::Internal, failure.what(), {}, {}};
    }
    const Instruction &instruction = *prepared.source;
    if (!outcome) {
        Error error = std::move(outcome).error();
        if (error.where.empty() && instruction.op.valid())
            error.where = "operator:" + std::to_string(instruction.op.index);
        if (error.code != ErrorCode::Cancelled)
            error.message = "device " + std::to_string(m_device) + ", " + nameOf(instruction.kind)
                + (instruction.op.valid() ? " of " + m_plan.graph->at(instruction.op).name : std::string{})
                + ": " + error.message;
        return error;
    }
    const bool lastStep = step + 1 == m_shared.options.steps;
    for (const Collector::Claim &claim : prepared.claims)
        if (lastStep || !claim.lastStepOnly)
            m_shared.collector.put(
                claim, boxOf(claim.buffer, microBatch), block(claim.buffer, microBatch).data());
    if (m_measure)
        recordMemory();
    for (const std::int32_t buffer : instruction.deaths)
        if (!info(buffer).persistent)
            release(buffer, microBatch);
    if (m_measure)
        recordMemory();
    return {};
}

std::int64_t DeviceExecutor::sinceOrigin() const
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - m_origin).count();
}

void DeviceExecutor::recordMemory()
{
    if (!m_curve.bytes.empty() && m_curve.bytes.back() == m_live)
        return;
    m_curve.time.push_back(sinceOrigin());
    m_curve.bytes.push_back(m_live);
    if (m_liveTotal > m_curve.peak.count) {
        m_curve.peak = {m_liveTotal};
        m_curve.atPeak = m_live;
    }
}

Result<void> DeviceExecutor::load(Communicator &communicator)
{
    for (Prepared &prepared : m_setup)
        TRY_VOID(run(prepared, 0, 0, communicator));
    return {};
}

std::vector<LiveSpan> DeviceExecutor::takeLive()
{
    const std::lock_guard lock{m_liveMutex};
    return std::exchange(m_liveSpans, {});
}

Result<void> DeviceExecutor::runStep(
    Communicator &communicator, std::int32_t step, Clock::time_point origin, bool measure)
{
    m_origin = origin;
    m_measure = measure;
    m_spans.clear();
    m_curve = {};
    if (m_measure)
        recordMemory();
    std::int64_t issued = m_progress.issued.load(std::memory_order_relaxed);
    for (const ScheduleEntry &entry : m_program.schedule) {
        std::vector<Prepared> &segment = m_segments[static_cast<std::size_t>(entry.segment)];
        const auto [begin, end] = indicesOf(m_program, entry);
        m_update = std::int64_t{step} * m_plan.updates + updateOf(m_plan, entry.microBatch);
        for (std::size_t i = begin; i < end; ++i) {
            m_progress.issued.store(++issued, std::memory_order_relaxed);
            const std::int64_t start = m_measure ? sinceOrigin() : 0;
            TRY_VOID(run(segment[i], entry.microBatch, step, communicator));
            if (m_measure) {
                m_spans.push_back({entry.segment, static_cast<std::int32_t>(i), entry.microBatch, start,
                    sinceOrigin() - start});
                if (m_tellsSpans) {
                    const MeasuredSpan &span = m_spans.back();
                    const std::lock_guard lock{m_liveMutex};
                    m_liveSpans.push_back(
                        {step, span.segment, span.instruction, span.microBatch, span.start, span.duration});
                }
            }
            m_progress.finished.store(issued, std::memory_order_relaxed);
        }
    }
    m_measure = false;
    // What no instruction buried (a plan may leave that out) must not reach the next step.
    for (std::size_t b = 0; b < m_program.buffers.size(); ++b) {
        const BufferInfo &buffer = m_program.buffers[b];
        if (buffer.persistent)
            continue;
        for (std::int32_t m = 0; m < (buffer.perMicroBatch ? m_plan.microBatches : 1); ++m)
            release(static_cast<std::int32_t>(b), m);
    }
    return {};
}

} // namespace planloom
