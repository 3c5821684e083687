#include "engine/graph/operators/weight_update.h"
#include "engine/hardware/full_bucket.h"
#include "engine/lowering/lowering.h"

#include <algorithm>
#include <map>
#include <utility>

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
    if (factorSlot(op))
        return m_optimizer.back(); // the norm is of all gradients
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

/// What the parts of an optimizer operator read in a slot, as all units have it together.
Result<std::vector<std::int32_t>> Lowering::wholeInput(
    OperatorId id, std::size_t slot, DataType type, std::int32_t block)
{
    const TensorId tensor = m_graph.at(id).inputs[slot];
    const auto shard = unitShardOf(id);
    std::vector<Need> needs;
    for (const TransformedPart &part : m_transformed.operators[static_cast<std::size_t>(id.index)])
        needs.push_back(
            {part.device, shard ? joinedUnits(part.inputs[slot].index, *shard) : part.inputs[slot].index});
    return inputBuffers(tensor, needs, type, block, id);
}

/// The gradient that an optimizer operator reads, added up inside of each unit; emitted once.
Result<std::vector<std::int32_t>> Lowering::gradientInUnit(OperatorId id, std::size_t slot)
{
    const TensorId gradient = m_graph.at(id).inputs[slot];
    const auto [known, fresh] = m_gradientInUnit.try_emplace({id, slot});
    if (fresh) {
        const std::int32_t block = m_buckets[static_cast<std::size_t>(m_bucketOf.at(gradient))].block;
        TRY(known->second, wholeInput(id, slot, m_types.reduced(gradient), block));
    }
    return known->second;
}

/// Buffers by part and slot of what an optimizer operator reads: weight, gradient over all micro-batches of
/// all units, states.
Result<std::vector<BufferList>> Lowering::optimizerInputs(OperatorId id, std::int32_t block)
{
    const Operator &op = m_graph.at(id);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    const auto shard = unitShardOf(id);
    // Where gradients are clipped, they wait for their norm: wider copies of them are made where they are
    // read, not where they are reduced.
    const bool waits = factorSlot(op) || op.kind == OperatorKind::SquareSum;
    std::vector<BufferList> inputs(parts.size());
    for (BufferList &list : inputs)
        list.resize(op.inputs.size(), -1);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const TensorId tensor = op.inputs[slot];
        if (!tensor)
            continue;
        const DataType type = m_types.read(id, slot);
        if (slot == factorSlot(op)) {
            std::vector<Need> needs;
            for (const TransformedPart &part : parts)
                needs.push_back({part.device, part.inputs[slot].index});
            TRY(const auto factors, inputBuffers(tensor, needs, type, block, id));
            for (std::size_t p = 0; p < parts.size(); ++p)
                inputs[p][slot] = factors[p];
            continue;
        }
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
                    : castBuffer(parts[p].device, waits ? block : where, id, buffer, type);
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
        const bool acrossUnits = gradient && !m_plan.units.isOne();
        const std::int32_t where =
            gradient ? m_buckets[static_cast<std::size_t>(m_bucketOf.at(tensor))].block : block;
        const bool castLater = waits && gradient && !acrossUnits && type != m_types.accumulated(tensor)
            && type != m_types.reduced(tensor);
        if (castLater)
            TRY_VOID(wholeInput(id, slot, m_types.reduced(tensor), where));
        TRY(const auto buffers,
            acrossUnits ? gradientInUnit(id, slot) : wholeInput(id, slot, type, castLater ? block : where));
        for (std::size_t p = 0; p < parts.size(); ++p) {
            inputs[p][slot] = buffers[p];
            if (!acrossUnits && !shard)
                continue;
            const bool widens = acrossUnits && m_types.reduced(tensor) != type;
            if (const auto known = m_gradientOfUnits.find({parts[p].device, buffers[p]});
                acrossUnits && known != m_gradientOfUnits.end()) {
                inputs[p][slot] =
                    widens ? castBuffer(parts[p].device, block, id, known->second, type) : known->second;
                continue;
            }
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
            if (acrossUnits && waits)
                m_gradientOfUnits[{parts[p].device, buffers[p]}] = inputs[p][slot];
            if (widens)
                inputs[p][slot] =
                    castBuffer(parts[p].device, waits ? block : where, id, inputs[p][slot], type);
        }
    }
    return inputs;
}

Result<Lowering::WeightUpdate> Lowering::emitUpdate(OperatorId id)
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
    WeightUpdate update{.id = id, .block = block};
    update.made.resize(op.outputs.size());
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
                update.inPlace.emplace_back(part.device, old);
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
            update.made[slot].push_back({part.device, part.outputs[slot].index, {}, outputs[slot]});
        }
    }
    std::sort(update.inPlace.begin(), update.inPlace.end());
    return update;
}

/// What brings a new weight to its copies: to the first that is not updated in place.
Lowering::Gathering Lowering::gatheringOf(const WeightUpdate &update) const
{
    const TensorId weight = m_graph.at(update.id).inputs[0];
    const auto &copies = m_persistent[static_cast<std::size_t>(weight.index)];
    const auto copy = std::find_if(copies.begin(), copies.end(), [&](const Persistent &each) {
        return !std::binary_search(
            update.inPlace.begin(), update.inPlace.end(), std::pair(each.device, each.buffer));
    });
    Gathering gathering;
    if (copy == copies.end())
        return gathering;
    gathering.bytes = sizeOf(m_builder.buffer(copy->device, copy->buffer));
    for (const Holding &own : update.made[0])
        if (intersection(own.box, copy->box))
            gathering.sources.push_back(own.device);
    return gathering;
}

/// Whether so much is gathered by one launch that its latency matters little.
bool Lowering::isWorthALaunch(const std::vector<DeviceId> &sources, Bytes bytes) const
{
    if (sources.size() < 2)
        return true;
    const GroupShape group = groupShape(m_cluster, sources);
    return isFullBucket(m_costs.collective(CollectiveKind::AllGather, {}, group),
        m_costs.collective(CollectiveKind::AllGather, bytes, group));
}

/// Brings what an update made to everywhere the old value is held.
Result<void> Lowering::spreadUpdate(WeightUpdate update)
{
    const OperatorId id = update.id;
    const Operator &op = m_graph.at(id);
    const bool sharded = shardedWeight(op.inputs[0], 3) != nullptr;
    const auto shard = unitShardOf(id);
    for (const Holding &own : update.made[0]) {
        if (sharded)
            castShards(op.inputs[0], own.device, update.block, id, own.buffer);
        else if (shard) // each unit keeps its own share of the states, in place
            gatherAcrossUnits(id, update.block, own, *shard);
    }
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot] || (shard && slot > 0) || (slot == 0 && sharded))
            continue;
        const TensorId old = op.inputs[slot == 0 ? 0 : slot + 1];
        std::map<DataType, std::vector<Persistent>> byType;
        for (const Persistent &p : m_persistent[static_cast<std::size_t>(old.index)])
            if (!std::binary_search(
                    update.inPlace.begin(), update.inPlace.end(), std::pair(p.device, p.buffer)))
                byType[p.dataType].push_back(p);
        if (byType.empty())
            continue; // nobody asks for it
        for (Holding &own : shard ? std::vector<Holding>{} : update.made[slot])
            m_materializer.made(op.outputs[slot], update.block, std::move(own), update.made[slot].size());
        for (const auto &[type, holders] : byType) {
            std::vector<Need> needs;
            for (const Persistent &p : holders)
                needs.push_back({p.device, p.box});
            TRY(const auto buffers, m_materializer.ensure(op.outputs[slot], needs, type, update.block, id));
            for (std::size_t i = 0; i < holders.size(); ++i)
                if (buffers[i] != holders[i].buffer)
                    m_builder.emit(holders[i].device, update.block,
                        {.kind = InstructionKind::Update,
                            .op = id,
                            .inputs = {buffers[i]},
                            .outputs = {oldestVersion(holders[i].device, holders[i].buffer)}});
        }
    }
    return {};
}

/// In the order of the devices that add up their gradients, and of those that update them: reductions over
/// the same group are launched together.
std::vector<OperatorId> Lowering::byReduction(std::vector<OperatorId> updates) const
{
    std::map<OperatorId, std::pair<std::vector<DeviceId>, std::size_t>> keys;
    for (const OperatorId id : updates)
        for (const TensorId input : m_graph.at(id).inputs)
            if (input && m_bucketOf.contains(input))
                keys[id] = {
                    addersOf(input), m_transformed.operators[static_cast<std::size_t>(id.index)].size()};
    std::stable_sort(
        updates.begin(), updates.end(), [&](OperatorId a, OperatorId b) { return keys[a] < keys[b]; });
    return updates;
}

/// All of their kernels: one launch updates many weights (as torch.optim's foreach and fused implementations
/// do).
Result<std::vector<Lowering::WeightUpdate>> Lowering::emitUpdates(const std::vector<OperatorId> &together)
{
    // What units add up by themselves first: reductions over the same group are launched together.
    for (const OperatorId id : together)
        for (std::size_t slot = 0; slot < m_graph.at(id).inputs.size() && !m_plan.units.isOne(); ++slot)
            if (const TensorId tensor = m_graph.at(id).inputs[slot];
                tensor && isWeightGradient(tensor) && !shardedWeight(m_graph.at(tensor).of, 2))
                TRY_VOID(gradientInUnit(id, slot));
    std::vector<WeightUpdate> updates;
    for (const OperatorId id : together) {
        TRY_VOID(goesOn());
        TRY(WeightUpdate update, emitUpdate(id));
        updates.push_back(std::move(update));
    }
    return updates;
}

/// The operators of the optimizer that `wanted` names, by block and bucket of the gradients they read.
std::map<std::int32_t, std::map<std::int32_t, std::vector<OperatorId>>> Lowering::byBlockAndBucket(
    bool (*wanted)(const Operator &)) const
{
    std::map<std::int32_t, std::map<std::int32_t, std::vector<OperatorId>>> sorted;
    for (const OperatorId id : m_sequence[static_cast<std::size_t>(m_optimizer.back())]) {
        const Operator &op = m_graph.at(id);
        if (!wanted(op))
            continue;
        std::int32_t bucket = -1;
        for (const TensorId input : op.inputs)
            if (const auto reduced = m_bucketOf.find(input); input && reduced != m_bucketOf.end())
                bucket = std::max(bucket, reduced->second);
        sorted[optimizerBlockOf(op)][bucket].push_back(id);
    }
    return sorted;
}

/// Weights are updated in the order in which their gradients are reduced, those of one bucket together: none
/// waits for a reduction that comes later. What brings the new weights of a bucket to their copies (one
/// launch casts them) stands behind the kernels of the next, which would else wait until they have been
/// gathered. What the same devices bring together waits until it is worth a launch.
Result<void> Lowering::emitOptimizer()
{
    TRY_VOID(emitClipping());
    for (const auto &[block, byBucket] : byBlockAndBucket(updatesWeight)) {
        std::vector<OperatorId> all;
        for (const auto &[bucket, operators] : byBucket)
            all.insert(all.end(), operators.begin(), operators.end());
        reserveRoom(block, all);
        struct Waiting {
            std::vector<WeightUpdate> updates{};
            Bytes bytes{};
        };
        std::map<std::vector<DeviceId>, Waiting> waiting; // by whose parts come together
        const auto spread = [&](bool isEnd) -> Result<void> {
            for (auto &[sources, own] : waiting) {
                if (!isEnd && !isWorthALaunch(sources, own.bytes))
                    continue;
                for (WeightUpdate &update : std::exchange(own, {}).updates) {
                    TRY_VOID(goesOn());
                    TRY_VOID(spreadUpdate(std::move(update)));
                }
            }
            return {};
        };
        for (const auto &[bucket, operators] : byBucket) {
            TRY(auto updates, emitUpdates(byReduction(operators)));
            TRY_VOID(spread(false));
            for (WeightUpdate &update : updates) {
                Gathering gathering = gatheringOf(update);
                Waiting &own = waiting[std::move(gathering.sources)];
                own.bytes += gathering.bytes;
                own.updates.push_back(std::move(update));
            }
        }
        TRY_VOID(spread(true));
    }
    return {};
}

} // namespace planloom
