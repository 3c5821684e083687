#include "engine/lowering/cut_gradients.h"

#include <algorithm>
#include <utility>

namespace planloom {

CutGradients::CutGradients(LoweringWork &work, const LoweredBlocks &blocks, const ShardedWeights &sharded,
    GradientBuckets &gradients)
    : m_work(work)
    , m_blocks(blocks)
    , m_sharded(sharded)
    , m_gradients(gradients)
{
}

void CutGradients::add(TensorId gradient, DeviceId device, std::int32_t block, OperatorId op,
    const IndexMask &box, std::int32_t summand, std::int32_t buffer)
{
    if (weightOf(gradient).isCutInUnit) {
        const DataType kept = m_work.types.accumulated(gradient);
        if (sizeOf(m_work.builder.buffer(device, buffer).dataType) < sizeOf(kept))
            buffer = m_work.castBuffer(device, block, op, buffer, kept);
        m_work.materializer.made(gradient, block, {device, box, {summand}, buffer});
        return;
    }
    auto &made = m_made[{gradient, device}];
    if (std::none_of(made.begin(), made.end(), [&](const auto &other) { return other.second == summand; }))
        made.emplace_back(buffer, summand); // else a replica on the same device made the same one
}

void CutGradients::note(OperatorId id, std::int32_t block)
{
    for (const TensorId output : m_blocks.shareOf(id, block).outputs) {
        if (!output || !m_work.isWeightGradient(output) || !isCut(output))
            continue;
        const auto [left, fresh] = m_makersLeft.try_emplace(
            output, static_cast<std::int32_t>(m_work.uses.producers[at(output)].size()));
        if (--left->second == 0)
            m_complete.push_back(output);
    }
}

bool CutGradients::isCut(TensorId gradient)
{
    const ShardedWeight *sharded = m_sharded.of(m_work.graph.at(gradient).of, 2);
    if (!sharded)
        return false;
    const auto [known, fresh] = m_isCut.try_emplace(gradient, true);
    if (!fresh)
        return known->second;
    const auto &producers = m_work.uses.producers[at(gradient)];
    bool &cut = known->second;
    for (const OperatorId producer : producers) {
        cut = cut && m_blocks.weightBlockOf(producer) == m_blocks.weightBlockOf(producers.front());
        const Operator &op = m_work.graph.at(producer);
        for (std::size_t slot = 0; slot < op.outputs.size() && !sharded->isCutInUnit; ++slot) {
            if (op.outputs[slot] != gradient)
                continue;
            for (const TransformedPart &part : m_work.partsOf(producer)) {
                const auto own = sharded->places.find(part.device);
                cut = cut && part.outputs[slot].value.complete() && own != sharded->places.end()
                    && own->second.size() == 1
                    && part.outputs[slot].index == sharded->shard->joined(own->second.front());
            }
        }
    }
    return cut;
}

bool CutGradients::isCutInUnit(TensorId gradient)
{
    return isCut(gradient) && weightOf(gradient).isCutInUnit;
}

/// Gradients that are complete and not yet cut, in the order in which they are: those that the same devices
/// communicate stand together.
std::vector<TensorId> CutGradients::takeComplete(std::int32_t block)
{
    struct Pending {
        TensorId gradient{};
        std::vector<DeviceId> among{}; ///< That add up the same box as the first of them.
    };
    std::vector<Pending> pending;
    for (const TensorId gradient : std::exchange(m_complete, {})) {
        Pending &own = pending.emplace_back();
        own.gradient = gradient;
        if (const auto *made = m_work.materializer.holdingsOf(gradient, block))
            for (const Holding &holding : *made)
                if (holding.box == made->front().box)
                    own.among.push_back(holding.device);
    }
    byGroups(pending, &Pending::among);
    std::vector<TensorId> gradients;
    for (const Pending &each : pending)
        gradients.push_back(each.gradient);
    return gradients;
}

Result<void> CutGradients::endBlock(std::int32_t block)
{
    TRY_VOID(cut(block));
    m_gradients.addShards(std::exchange(m_shards, {}), block);
    return {};
}

Result<void> CutGradients::cut(std::int32_t block)
{
    const std::vector<TensorId> gradients = takeComplete(block);
    if (gradients.empty())
        return {};
    const std::vector<GradientShard> before = std::exchange(m_shards, {});
    const BesideCompute queue(m_work.builder, false);
    for (const TensorId gradient : gradients) {
        const ShardedWeight &sharded = weightOf(gradient);
        if (!sharded.isCutInUnit)
            continue;
        std::vector<Need> needs;
        for (const auto &[device, boxes] : sharded.places)
            for (const IndexMask &box : boxes)
                needs.push_back({device, sharded.inUnit(box)});
        TRY(const auto buffers,
            m_work.materializer.ensure(
                gradient, needs, m_work.types.accumulated(gradient), block, sharded.update));
        for (std::size_t i = 0; i < needs.size(); ++i) {
            if (sharded.shard)
                m_made[{gradient, needs[i].device}] = {{buffers[i], -1}};
            else
                m_shards.push_back({gradient, needs[i].device, sharded.update, needs[i].box, buffers[i]});
        }
        m_work.materializer.forget(gradient, block, block);
    }
    cutAcrossUnits(gradients, block);
    m_gradients.addShards(before, block);
    return {};
}

/// First what is sent in another type is cast, then all is sent at once.
void CutGradients::cutAcrossUnits(const std::vector<TensorId> &gradients, std::int32_t block)
{
    struct Shard {
        TensorId gradient{};
        DeviceId device{};
        const ShardedWeight *sharded = nullptr;
        std::int32_t sent = -1;
        std::int32_t buffer = -1;
    };
    std::vector<Shard> shards;
    for (const TensorId gradient : gradients) {
        const ShardedWeight *sharded = &weightOf(gradient);
        const DataType reduced = m_work.types.reduced(gradient);
        for (const auto &[device, boxes] : sharded->places) {
            const auto made = m_made.find({gradient, device});
            if (!sharded->shard || made == m_made.end())
                continue;
            for (const auto &[buffer, summand] : made->second) {
                const bool asMade = m_work.builder.buffer(device, buffer).dataType == reduced;
                shards.push_back({gradient, device, sharded,
                    asMade ? buffer : m_work.castBuffer(device, block, sharded->update, buffer, reduced)});
            }
            m_made.erase(made);
        }
    }
    for (Shard &shard : shards) {
        BufferInfo info = m_work.builder.buffer(shard.device, shard.sent);
        info.index = shard.sharded->places.at(shard.device).front();
        info.memory = MemoryKind::Gradient;
        shard.sharded->shard->mark(info);
        shard.buffer = m_work.builder.make(shard.device, block, std::move(info),
            {.kind = InstructionKind::ReduceScatter,
                .op = shard.sharded->update,
                .acrossUnits = true,
                .dimension = shard.sharded->shard->dimension,
                .inputs = {shard.sent}});
    }
    for (const Shard &shard : shards)
        m_shards.push_back({shard.gradient, shard.device, shard.sharded->update,
            shard.sharded->places.at(shard.device).front(), shard.buffer, &*shard.sharded->shard});
}

} // namespace planloom
