#include "engine/lowering/lowering.h"

#include <algorithm>

namespace planloom {

namespace {

/// A device on which two parts update the same box; invalid if there is none.
DeviceId updatedTwice(const std::vector<TransformedPart> &parts)
{
    std::vector<const TransformedPart *> sorted;
    sorted.reserve(parts.size());
    for (const TransformedPart &part : parts)
        sorted.push_back(&part);
    const auto key = [](const TransformedPart *part) {
        return std::tie(part->device, part->inputs[0].index);
    };
    std::sort(sorted.begin(), sorted.end(),
        [&](const TransformedPart *a, const TransformedPart *b) { return key(a) < key(b); });
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end(),
        [&](const TransformedPart *a, const TransformedPart *b) { return key(a) == key(b); });
    return twice == sorted.end() ? DeviceId{} : (*twice)->device;
}

} // namespace

/// Weights that one stage alone trains are updated by it; the others when all is done.
std::int32_t Lowering::optimizerBlockOf(const Operator &op) const
{
    std::int32_t stage = -1;
    for (const TensorId input : op.inputs) {
        const auto complete = input ? m_complete.find(input) : m_complete.end();
        if (complete == m_complete.end())
            continue;
        const std::int32_t its = complete->second.atEnd()
            ? m_plan.stageCount
            : m_builder.block(complete->second.marks.front().block).stage.index;
        stage = stage < 0 || stage == its ? its : m_plan.stageCount;
    }
    return m_optimizer[static_cast<std::size_t>(stage < 0 ? m_plan.stageCount : stage)];
}

/// Buffers by part and slot of what an optimizer operator reads: weight, gradient over all micro-batches of
/// all units, states.
Result<std::vector<BufferList>> Lowering::optimizerInputs(OperatorId id, std::int32_t block)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const auto shard = unitShardOf(id);
    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(op.inputs.size(), -1);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const TensorId tensor = op.inputs[slot];
        if (!tensor)
            continue;
        const DataType type = m_types.read(id, slot);
        const bool gradient = isWeightGradient(tensor);
        const ShardedWeight *sharded =
            gradient ? shardedWeight(m_graph.at(tensor).of, 2) : shardedWeight(tensor, 3);
        if (sharded && !gradient) {
            for (std::size_t p = 0; p < parts.size(); ++p)
                inputs[p][slot] =
                    shardBuffer(*sharded, tensor, parts[p].device, parts[p].inputs[slot].index, type);
            continue;
        }
        if (sharded && sharded->shard && isCutByMicroBatch(tensor)) {
            const std::int32_t where = m_buckets[static_cast<std::size_t>(m_bucketOf.at(tensor))].block;
            for (std::size_t p = 0; p < parts.size(); ++p) {
                const std::int32_t buffer =
                    m_accumulators[static_cast<std::size_t>(tensor.index)].at(parts[p].device).front().buffer;
                inputs[p][slot] = m_types.accumulated(tensor) == type
                    ? buffer
                    : castBuffer(parts[p].device, where, id, buffer, type);
            }
            continue;
        }
        // Every unit keeps its own share of states, and of weights that nobody else reads so.
        if (shard && !gradient && (slot > 0 || m_types.isMaster(tensor, type))) {
            for (std::size_t p = 0; p < parts.size(); ++p)
                inputs[p][slot] =
                    persistentBuffer(tensor, parts[p].device, parts[p].inputs[slot].index, type, &*shard);
            continue;
        }
        std::vector<Need> needs;
        needs.reserve(parts.size());
        for (const TransformedPart &part : parts)
            needs.push_back({part.device,
                shard ? joinedUnits(part.inputs[slot].index, *shard) : part.inputs[slot].index});
        const std::int32_t where =
            gradient ? m_buckets[static_cast<std::size_t>(m_bucketOf.at(tensor))].block : block;
        const bool acrossUnits = gradient && !m_plan.units.isOne();
        TRY(const auto buffers,
            inputBuffers(tensor, needs, acrossUnits ? m_types.reduced(tensor) : type, where, id));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            inputs[p][slot] = buffers[p];
            if (!acrossUnits && !shard)
                continue;
            BufferInfo info = m_builder.buffer(parts[p].device, buffers[p]);
            info.index = parts[p].inputs[slot].index;
            info.persistent = false;
            info.versions = 1;
            info.memory = memoryOf(tensor);
            info.share = UnitShare::Same;
            if (shard)
                markShard(info, *shard);
            inputs[p][slot] = m_builder.addBuffer(parts[p].device, std::move(info));
            Instruction instruction{
                .op = id, .acrossUnits = acrossUnits, .inputs = {buffers[p]}, .outputs = {inputs[p][slot]}};
            instruction.kind = !acrossUnits ? InstructionKind::Select
                : !shard                    ? InstructionKind::AllReduce
                                            : InstructionKind::ReduceScatter;
            instruction.dimension = acrossUnits && shard ? shard->dimension : -1;
            m_builder.emit(parts[p].device, where, std::move(instruction));
            if (acrossUnits && m_types.reduced(tensor) != type)
                inputs[p][slot] = castBuffer(parts[p].device, where, id, inputs[p][slot], type);
        }
    }
    return inputs;
}

Result<void> Lowering::emitOptimizer(OperatorId id)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const std::int32_t block = optimizerBlockOf(op);
    if (const auto twice = updatedTwice(parts); twice)
        return Error{ErrorCode::InvalidInput,
            "operator '" + op.name + "' would update the same weight twice on device "
                + std::to_string(twice.index),
            "place its replicas on different devices", "operator:" + op.name};

    TRY(const auto inputs, optimizerInputs(id, block));
    const auto shard = unitShardOf(id);
    std::vector<std::pair<DeviceId, std::int32_t>> inPlace;
    std::vector<std::vector<Holding>> made(op.outputs.size()); // by slot
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const TransformedPart &part = parts[p];
        Instruction kernel{.kind = InstructionKind::Kernel,
            .op = id,
            .part = static_cast<std::int32_t>(p),
            .inputs = inputs[p]};
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (!op.outputs[slot]) {
                kernel.outputs.push_back(-1);
                continue;
            }
            // In place where the persistent buffer is just this box.
            const std::int32_t old = inputs[p][slot == 0 ? 0 : slot + 1];
            std::int32_t buffer = old;
            if (m_builder.buffer(part.device, old).persistent) {
                inPlace.emplace_back(part.device, old);
                buffer = oldestVersion(part.device, old);
            } else {
                BufferInfo info{.tensor = op.outputs[slot],
                    .dataType = m_types.made(id, slot),
                    .index = part.outputs[slot].index,
                    .perMicroBatch = false,
                    .memory = memoryOf(op.outputs[slot])};
                if (shard)
                    markShard(info, *shard);
                buffer = m_builder.addBuffer(part.device, std::move(info));
            }
            kernel.outputs.push_back(buffer);
        }
        const BufferList outputs = kernel.outputs;
        m_builder.emit(part.device, block, std::move(kernel));
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (outputs[slot] < 0)
                continue;
            Holding own{part.device, part.outputs[slot].index, {}, outputs[slot]};
            if (slot == 0 && shardedWeight(op.inputs[0], 3))
                castShards(op.inputs[0], part.device, block, id, outputs[0]);
            else if (!shard)
                made[slot].push_back(std::move(own));
            else if (slot == 0) // each unit keeps its own share of the states, in place
                gatherAcrossUnits(id, block, own, *shard);
        }
    }
    std::sort(inPlace.begin(), inPlace.end());
    // Everywhere the old value is held, the new one must arrive.
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot] || (shard && slot > 0) || (slot == 0 && shardedWeight(op.inputs[0], 3)))
            continue;
        const TensorId old = op.inputs[slot == 0 ? 0 : slot + 1];
        std::map<DataType, std::vector<Persistent>> byType;
        for (const Persistent &p : m_persistent[static_cast<std::size_t>(old.index)])
            if (!std::binary_search(inPlace.begin(), inPlace.end(), std::pair(p.device, p.buffer)))
                byType[p.dataType].push_back(p);
        if (byType.empty())
            continue; // nobody asks for it
        for (Holding &own : made[slot])
            m_materializer.made(op.outputs[slot], block, std::move(own), parts.size());
        for (const auto &[type, holders] : byType) {
            std::vector<Need> needs;
            for (const Persistent &p : holders)
                needs.push_back({p.device, p.box});
            TRY(const auto buffers, m_materializer.ensure(op.outputs[slot], needs, type, block, id));
            for (std::size_t i = 0; i < holders.size(); ++i)
                if (buffers[i] != holders[i].buffer)
                    m_builder.emit(holders[i].device, block,
                        {.kind = InstructionKind::Update,
                            .op = id,
                            .inputs = {buffers[i]},
                            .outputs = {oldestVersion(holders[i].device, holders[i].buffer)}});
        }
    }
    return {};
}

} // namespace planloom
