#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/lowering.h"

#include <algorithm>

namespace planloom {

bool Lowering::isWanted(TensorId tensor) const
{
    return !m_uses.consumers[static_cast<std::size_t>(tensor.index)].empty()
        || std::find(m_graph.outputs.begin(), m_graph.outputs.end(), tensor) != m_graph.outputs.end();
}

bool Lowering::isInParts(TensorId tensor) const
{
    return tensor && m_transformed.summands.count(tensor) > 1;
}

bool Lowering::isLeftOut(OperatorId id, bool output, std::size_t slot) const
{
    const Operator &op = m_graph.at(id);
    const std::int32_t probabilities = output ? probabilitiesOutput(op) : probabilitiesInput(op);
    return static_cast<std::int32_t>(slot) == probabilities
        && m_plan.decisions[static_cast<std::size_t>(id.index)].attention == AttentionMode::Fused;
}

/// Buffers of the parts with these numbers by slot; -1 where absent.
/// @param passed  by slot: inputs that come another way; empty for none
Result<std::vector<BufferList>> Lowering::gatherInputs(OperatorId id, std::int32_t block,
    const std::vector<std::size_t> &numbers, const std::vector<bool> &passed)
{
    const auto &all = m_transformed.operators[static_cast<std::size_t>(id.index)];
    std::vector<const TransformedPart *> parts;
    parts.reserve(numbers.size());
    for (const std::size_t p : numbers)
        parts.push_back(&all[p]);
    const Operator &op = shareOf(id, block);
    const std::size_t slots = op.inputs.size();
    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(slots, -1);
    std::vector<Need> needs;
    for (std::size_t slot = 0; slot < slots; ++slot) {
        const TensorId tensor = op.inputs[slot];
        if (!tensor || isLeftOut(id, false, slot) || (slot < passed.size() && passed[slot]))
            continue;
        needs.clear();
        needs.reserve(parts.size());
        bool divided = false;
        for (const TransformedPart *part : parts) {
            needs.push_back({part->device, part->inputs[slot].index, part->inputs[slot].value});
            divided = divided || !needs.back().value.complete();
        }
        const DataType type = m_types.read(id, slot);
        // What is sent as it was made can be divided as it was made.
        if (divided && type == m_types.accumulated(tensor)) {
            if (const auto found = m_materializer.ensureParts(tensor, needs, block, id)) {
                for (std::size_t p = 0; p < parts.size(); ++p)
                    inputs[p][slot] = (*found)[p];
                continue;
            }
        }
        for (Need &need : needs)
            need.value = {};
        TRY(const auto buffers, inputBuffers(tensor, needs, type, block, id));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            inputs[p][slot] = buffers[p];
            const ValueMask value = parts[p]->inputs[slot].value;
            if (value.complete())
                continue;
            BufferInfo info{.tensor = tensor,
                .dataType = type,
                .index = parts[p]->inputs[slot].index,
                .valuePart = value};
            const SegmentKind kind = m_builder.block(block).kind;
            info.perMicroBatch = isPass(kind);
            inputs[p][slot] = m_builder.addBuffer(parts[p]->device, std::move(info));
            m_builder.emit(parts[p]->device, block,
                {.kind = InstructionKind::ValueSelect,
                    .op = id,
                    .inputs = {buffers[p]},
                    .outputs = {inputs[p][slot]}});
        }
    }
    return inputs;
}

/// A copy of `buffer` in another type.
std::int32_t Lowering::castBuffer(
    DeviceId device, std::int32_t block, OperatorId op, std::int32_t buffer, DataType type)
{
    BufferInfo info = m_builder.buffer(device, buffer);
    info.dataType = type;
    info.persistent = false;
    info.versions = 1;
    info.memory = memoryOf(info.tensor);
    const std::int32_t copy = m_builder.addBuffer(device, std::move(info));
    m_builder.emit(
        device, block, {.kind = InstructionKind::Cast, .op = op, .inputs = {buffer}, .outputs = {copy}});
    return copy;
}

/// Whether a part runs in this turn of its region, and in this block: those of its lane and slice, but of all
/// slices where they are run again, which is before the first slice that reads them.
bool Lowering::isDue(
    OperatorId id, std::int32_t part, std::int32_t block, bool recompute, std::int32_t turn) const
{
    const OperatorDecision &decision = m_plan.decisions[static_cast<std::size_t>(id.index)];
    if (turn >= 0 && turnOf(decision, part) != turn)
        return false;
    const BlockInfo &info = m_builder.block(block);
    if (laneCount(decision.partition) > 1 && laneOf(decision.partition, part) != info.lane)
        return false;
    return recompute || sliceCount(decision.partition) == 1
        || sliceOf(decision.partition, part) == info.slice;
}

/// Runs one part, on buffers for its inputs by slot.
/// @param besides  by slot: summands of other parts, which add nothing to it and do not run; may be empty
/// @return buffers of its outputs by slot; -1 where nobody wants one
BufferList Lowering::emitPart(OperatorId id, std::int32_t block, bool recompute, std::size_t number,
    const BufferList &inputs, const Weighing &weighing, const std::vector<SummandSet> &besides)
{
    const Operator &op = shareOf(id, block);
    const auto o = static_cast<std::size_t>(id.index);
    const TransformedPart &part = m_transformed.operators[o][number];
    const bool noneWanted = std::none_of(
        op.outputs.begin(), op.outputs.end(), [this](TensorId tensor) { return tensor && isWanted(tensor); });
    Instruction kernel{.kind = InstructionKind::Kernel,
        .op = id,
        .part = static_cast<std::int32_t>(number),
        .recompute = recompute,
        .inputs = inputs};
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const TensorView &view = part.outputs[slot];
        // Plain attention has its probabilities in memory even where nobody reads them again.
        const bool kept = (op.outputs[slot] && isWanted(view.tensor)) || weighing.weighs[slot]
            || static_cast<std::int32_t>(slot) == probabilitiesOutput(op) || noneWanted;
        if (!op.outputs[slot] || !kept || isLeftOut(id, true, slot)) {
            kernel.outputs.push_back(-1);
            continue;
        }
        BufferInfo info{.tensor = view.tensor,
            .dataType = m_types.made(id, slot),
            .index = view.index,
            .memory = memoryOf(view.tensor)};
        info.perMicroBatch = isPass(m_builder.block(block).kind);
        if (isInParts(view.tensor)) {
            info.summands = {m_transformed.summandBase[o][slot] + view.value.index};
            if (slot < besides.size())
                info.summands = unionOf(info.summands, besides[slot]);
            if (m_transformed.summands.complete(view.tensor, info.summands, view.index))
                info.summands.clear(); // no other part reaches this box
        }
        info.unweighed = weighing.by[slot] >= 0 && !info.summands.empty();
        kernel.outputs.push_back(m_builder.addBuffer(part.device, std::move(info)));
    }
    const BufferList outputs = kernel.outputs;
    m_builder.emit(part.device, block, std::move(kernel));
    return outputs;
}

/// Hands over what a part made of output `slot`, which needs no weighing, to those who read it.
/// @param summand  its own number
/// @param expected  as of `Materializer::made`
void Lowering::handOver(OperatorId id, std::int32_t block, std::size_t slot, std::int32_t summand,
    Holding made, std::size_t expected)
{
    const TensorId tensor = m_graph.at(id).outputs[slot];
    const DataType type = m_builder.buffer(made.device, made.buffer).dataType;
    const DataType kept = m_types.accumulated(tensor);
    const TensorView view{tensor, made.box};
    if (isWeightGradient(tensor)) { // adding widens by itself
        if (type != kept && sizeOf(type) >= sizeOf(kept))
            made.buffer = castBuffer(made.device, block, id, made.buffer, kept);
        if (isCutByMicroBatch(tensor)) {
            const ShardedWeight &sharded = *shardedWeight(m_graph.at(tensor).of, 2);
            if (addToSum(view, made.device, block, id, slot, summand, made.buffer))
                return;
            if (!sharded.shard && type != kept && sizeOf(type) < sizeOf(kept))
                made.buffer = castBuffer(made.device, block, id, made.buffer, kept);
            addToShards(sharded, tensor, made.device, block, made.box, summand, made.buffer);
            return;
        }
        accumulate(tensor, made.device, block, id, made.box, summand, made.buffer);
        return;
    }
    if (addToSum(view, made.device, block, id, slot, summand, made.buffer))
        return;
    if (type != kept) // another operator makes summands of it in another type
        made.buffer = castBuffer(made.device, block, id, made.buffer, kept);
    m_materializer.made(tensor, block, std::move(made), expected);
}

/// @param turn  of its region, whose parts alone are to run; -1 for all
Result<void> Lowering::emitOperator(OperatorId id, std::int32_t block, bool recompute, std::int32_t turn)
{
    const auto o = static_cast<std::size_t>(id.index);
    if (m_plan.decisions[o].ringSplit >= 0)
        return emitRing(id, block, recompute);
    const auto &parts = m_transformed.operators[o];
    std::vector<std::size_t> numbers;
    numbers.reserve(parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p)
        if (isDue(id, static_cast<std::int32_t>(p), block, recompute, turn))
            numbers.push_back(p);
    TRY(const auto inputs, gatherInputs(id, block, numbers));
    TRY(auto weighing, weighingOf(id));
    m_builder.noteOperator(block, id);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const TransformedPart &part = parts[numbers[i]];
        const BufferList outputs = emitPart(id, block, recompute, numbers[i], inputs[i], weighing);
        for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
            if (outputs[slot] < 0)
                continue;
            const TensorView &view = part.outputs[slot];
            const std::int32_t summand = m_transformed.summandBase[o][slot] + view.value.index;
            Holding made{part.device, view.index, {summand}, outputs[slot]};
            if (weighing.by[slot] >= 0 || weighing.weighs[slot])
                weighing.made[slot].push_back(made);
            if (weighing.by[slot] < 0)
                handOver(id, block, slot, summand, std::move(made), numbers.size());
        }
    }
    return weighParts(id, block, weighing);
}

Result<void> Lowering::storeOutput(TensorId tensor)
{
    const auto makers = m_materializer.makersOf(tensor);
    const auto store = [&](const std::vector<Need> &needs, std::int32_t block) -> Result<void> {
        const auto &producers = m_uses.producers[static_cast<std::size_t>(tensor.index)];
        const OperatorId op = producers.empty() ? OperatorId{} : producers.front();
        TRY(const auto buffers, inputBuffers(tensor, needs, m_types.accumulated(tensor), block, op));
        for (std::size_t i = 0; i < needs.size(); ++i)
            m_builder.emit(
                needs[i].device, block, {.kind = InstructionKind::Store, .op = op, .inputs = {buffers[i]}});
        return {};
    };
    IndexMask whole = wholeMask(m_graph.at(tensor).type.shape);
    const auto index = static_cast<std::size_t>(tensor.index);
    if (m_transformed.batch.tensorRole[index] == BatchRole::Split)
        whole.ranges[static_cast<std::size_t>(m_transformed.batch.tensorDimension[index])].end /=
            batchCuts(m_plan);
    if (makers.empty())
        return store({{DeviceId{0}, whole}}, m_forward.front().front());
    // Every distinct box once, from the first device that made it, if they tile the tensor; slices of it by
    // their own blocks.
    std::map<std::int32_t, std::vector<Need>> needs; // by block
    std::vector<Need> all;
    std::int64_t volume = 0;
    bool overlap = false;
    for (const std::int32_t block : makers)
        for (const Holding &h : *m_materializer.holdingsOf(tensor, block)) {
            if (std::any_of(all.begin(), all.end(), [&](const Need &n) { return n.box == h.box; }))
                continue;
            for (const Need &need : all)
                overlap = overlap || intersection(need.box, h.box).has_value();
            all.push_back({h.device, h.box});
            needs[block].push_back(all.back());
            volume += elementCount(shapeOf(h.box));
        }
    const bool summed = makers.size() > 1 && isInParts(tensor); // over slices
    if (overlap || summed || volume != elementCount(shapeOf(whole)))
        return store({{all.front().device, whole}}, makers.back());
    for (const std::int32_t block : makers)
        if (const auto own = needs.find(block); own != needs.end())
            TRY_VOID(store(own->second, block));
    return {};
}

Result<void> Lowering::storeOutputs()
{
    const auto &outputs = m_graph.outputs;
    for (auto tensor = outputs.begin(); tensor != outputs.end(); ++tensor)
        if (std::find(outputs.begin(), tensor, *tensor)
            == tensor) // one that is listed twice reaches the host once
            TRY_VOID(storeOutput(*tensor));
    return {};
}

} // namespace planloom
