#include "engine/lowering/update_inputs.h"

#include "engine/graph/operators/weight_update.h"

namespace planloom {

namespace {

/// Where gradients are clipped, they wait for their norm: wider copies of them are made where they are read,
/// not where they are reduced.
bool waitsForNorm(const Operator &op)
{
    return factorSlot(op) || op.kind == OperatorKind::SquareSum;
}

} // namespace

UpdateInputs::UpdateInputs(LoweringWork &work, BlockInputs &inputs, KeptWeights &kept,
    const ShardedWeights &sharded, GradientBuckets &gradients, CutGradients &cut)
    : m_work(work)
    , m_inputs(inputs)
    , m_kept(kept)
    , m_sharded(sharded)
    , m_gradients(gradients)
    , m_cut(cut)
{
}

/// What the parts of an operator read in a slot, as all units have it together.
Result<std::vector<std::int32_t>> UpdateInputs::whole(
    OperatorId id, std::size_t slot, DataType type, std::int32_t block)
{
    const auto shard = m_work.unitShardOf(id);
    std::vector<Need> needs;
    for (const TransformedPart &part : m_work.partsOf(id)) {
        const IndexMask &own = part.inputs[slot].index;
        needs.push_back(
            {part.device, shard && slot != factorSlot(m_work.graph.at(id)) ? shard->joined(own) : own});
    }
    return m_inputs.of(m_work.graph.at(id).inputs[slot], needs, type, block, id);
}

Result<std::vector<std::int32_t>> UpdateInputs::gradientInUnit(OperatorId id, std::size_t slot)
{
    const TensorId gradient = m_work.graph.at(id).inputs[slot];
    const auto [known, fresh] = m_inUnit.try_emplace({id, slot});
    if (fresh) {
        TRY(known->second,
            whole(id, slot, m_work.types.reduced(gradient), m_gradients.reductionOf(gradient)));
    }
    return known->second;
}

Result<std::vector<BufferList>> UpdateInputs::of(OperatorId id, std::int32_t block)
{
    const Operator &op = m_work.graph.at(id);
    std::vector<BufferList> inputs(m_work.partsOf(id).size());
    for (BufferList &list : inputs)
        list.resize(op.inputs.size(), -1);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (!op.inputs[slot])
            continue;
        TRY(const auto buffers, ofSlot(id, slot, block));
        for (std::size_t p = 0; p < inputs.size(); ++p)
            inputs[p][slot] = buffers[p];
    }
    return inputs;
}

Result<std::vector<std::int32_t>> UpdateInputs::ofSlot(OperatorId id, std::size_t slot, std::int32_t block)
{
    const Operator &op = m_work.graph.at(id);
    const TensorId tensor = op.inputs[slot];
    const DataType type = m_work.types.read(id, slot);
    if (slot == factorSlot(op))
        return whole(id, slot, type, block);
    const auto byPart = [&](const auto &bufferOf) {
        std::vector<std::int32_t> buffers;
        for (const TransformedPart &part : m_work.partsOf(id))
            buffers.push_back(bufferOf(part));
        return buffers;
    };
    const bool waits = waitsForNorm(op);
    const auto shard = m_work.unitShardOf(id);
    if (!m_work.isWeightGradient(tensor)) {
        if (const ShardedWeight *sharded = m_sharded.of(tensor, 3))
            return byPart([&](const TransformedPart &part) {
                return m_kept.shardBuffer(*sharded, tensor, part.device, part.inputs[slot].index, type);
            });
        // Every unit keeps its own share of states, and of weights that nobody else reads so.
        if (shard && (slot > 0 || m_work.types.isMaster(tensor, type)))
            return byPart([&](const TransformedPart &part) {
                return m_kept.buffer(tensor, part.device, part.inputs[slot].index, type, &*shard);
            });
        TRY(auto buffers, whole(id, slot, type, block));
        std::size_t next = 0;
        return shard ? byPart([&](const TransformedPart &part) {
            return shareOf(id, part, slot, buffers[next++], block);
        })
                     : std::move(buffers);
    }
    const std::int32_t where = m_gradients.reductionOf(tensor);
    const ShardedWeight *sharded = m_sharded.of(m_work.graph.at(tensor).of, 2);
    if (sharded && sharded->shard && m_cut.isCut(tensor))
        return byPart([&](const TransformedPart &part) {
            const std::int32_t buffer = m_gradients.sumOn(tensor, part.device);
            return m_work.types.accumulated(tensor) == type
                ? buffer
                : m_work.castBuffer(part.device, waits ? block : where, id, buffer, type);
        });
    const bool acrossUnits = !m_work.plan.units.isOne();
    const bool castLater = waits && !acrossUnits && type != m_work.types.accumulated(tensor)
        && type != m_work.types.reduced(tensor);
    if (castLater)
        TRY_VOID(whole(id, slot, m_work.types.reduced(tensor), where));
    TRY(auto buffers,
        acrossUnits ? gradientInUnit(id, slot) : whole(id, slot, type, castLater ? block : where));
    std::size_t next = 0;
    return acrossUnits || shard
        ? byPart([&](const TransformedPart &part) { return shareOf(id, part, slot, buffers[next++], block); })
        : std::move(buffers);
}

/// What a part reads of `own`, its unit's: of a gradient, its share of the sum over all units.
std::int32_t UpdateInputs::shareOf(
    OperatorId id, const TransformedPart &part, std::size_t slot, std::int32_t own, std::int32_t block)
{
    const Operator &op = m_work.graph.at(id);
    const TensorId tensor = op.inputs[slot];
    const DataType type = m_work.types.read(id, slot);
    const bool waits = waitsForNorm(op);
    const bool gradient = m_work.isWeightGradient(tensor);
    const bool acrossUnits = gradient && !m_work.plan.units.isOne();
    const bool widens = acrossUnits && m_work.types.reduced(tensor) != type;
    if (const auto known = m_ofUnits.find({part.device, own}); acrossUnits && known != m_ofUnits.end())
        return widens ? m_work.castBuffer(part.device, block, id, known->second, type) : known->second;
    const auto shard = m_work.unitShardOf(id);
    BufferInfo info = m_work.builder.buffer(part.device, own);
    info.index = part.inputs[slot].index;
    info.persistent = false;
    info.versions = 1;
    info.memory = m_work.memoryOf(tensor);
    info.share = UnitShare::Same;
    if (shard)
        shard->mark(info);
    const std::int32_t where = gradient ? m_gradients.reductionOf(tensor) : block;
    const std::int32_t share = m_work.builder.make(part.device, where, std::move(info),
        {.kind = !acrossUnits ? InstructionKind::Select
                : !shard      ? InstructionKind::AllReduce
                              : InstructionKind::ReduceScatter,
            .op = id,
            .acrossUnits = acrossUnits,
            .dimension = acrossUnits && shard ? shard->dimension : -1,
            .inputs = {own}});
    if (acrossUnits && waits)
        m_ofUnits[{part.device, own}] = share;
    return widens ? m_work.castBuffer(part.device, waits ? block : where, id, share, type) : share;
}

} // namespace planloom
