#include "engine/lowering/optimizer_emitter.h"

#include "engine/graph/operators/weight_update.h"
#include "engine/hardware/full_bucket.h"

#include <algorithm>
#include <set>
#include <tuple>

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

OptimizerEmitter::OptimizerEmitter(LoweringWork &work, const LoweredBlocks &blocks, BlockInputs &inputs,
    KeptWeights &kept, const ShardedWeights &sharded, GradientBuckets &gradients, CutGradients &cut)
    : m_work(work)
    , m_blocks(blocks)
    , m_kept(kept)
    , m_sharded(sharded)
    , m_gradients(gradients)
    , m_inputs(work, inputs, kept, sharded, gradients, cut)
    , m_clipping(work, m_inputs, blocks.optimizers().back())
{
}

bool OptimizerEmitter::WeightUpdate::isInPlace(const KeptBox &kept) const
{
    return std::binary_search(inPlace.begin(), inPlace.end(), std::pair(kept.device, kept.buffer));
}

/// Weights that one stage alone trains are updated by it; the others when all is done.
std::int32_t OptimizerEmitter::blockOf(const Operator &op) const
{
    if (factorSlot(op))
        return m_blocks.optimizers().back(); // the norm is of all gradients
    std::int32_t stage = -1;
    for (const TensorId input : op.inputs) {
        if (const auto its = input ? m_gradients.stageOf(input) : std::nullopt)
            stage = stage < 0 || stage == *its ? *its : m_work.plan.stageCount;
    }
    return m_blocks.optimizers()[at(stage < 0 ? m_work.plan.stageCount : stage)];
}

Result<OptimizerEmitter::WeightUpdate> OptimizerEmitter::emitUpdate(OperatorId id)
{
    const Operator &op = m_work.graph.at(id);
    const auto &parts = m_work.partsOf(id);
    const std::int32_t block = blockOf(op);
    if (const auto twice = updatedTwice(parts); twice)
        return Error{ErrorCode::InvalidInput,
            "operator '" + op.name + "' would update the same weight twice on device "
                + std::to_string(twice.index),
            "place its replicas on different devices", "operator:" + op.name};

    TRY(const auto inputs, m_inputs.of(id, block));
    const auto shard = m_work.unitShardOf(id);
    WeightUpdate update{.id = id, .block = block};
    update.made.resize(op.outputs.size());
    for (std::size_t p = 0; p < parts.size(); ++p)
        emitPart(update, p, inputs[p], shard);
    std::sort(update.inPlace.begin(), update.inPlace.end());
    return update;
}

void OptimizerEmitter::emitPart(
    WeightUpdate &update, std::size_t number, const BufferList &inputs, const std::optional<UnitShard> &shard)
{
    const Operator &op = m_work.graph.at(update.id);
    const TransformedPart &part = m_work.partsOf(update.id)[number];
    Instruction kernel{.kind = InstructionKind::Kernel,
        .op = update.id,
        .part = static_cast<std::int32_t>(number),
        .inputs = inputs};
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot]) {
            kernel.outputs.push_back(-1);
            continue;
        }
        // In place where the persistent buffer is just this box.
        const std::int32_t old = inputs[slot == 0 ? 0 : slot + 1];
        std::int32_t buffer = old;
        if (m_work.builder.buffer(part.device, old).persistent) {
            update.inPlace.emplace_back(part.device, old);
            buffer = m_kept.oldestVersion(part.device, old);
        } else {
            BufferInfo info{.tensor = op.outputs[slot],
                .dataType = m_work.types.made(update.id, slot),
                .index = part.outputs[slot].index,
                .perMicroBatch = false,
                .memory = m_work.memoryOf(op.outputs[slot])};
            if (shard)
                shard->mark(info);
            buffer = m_work.builder.addBuffer(part.device, std::move(info));
        }
        kernel.outputs.push_back(buffer);
        update.made[slot].push_back({part.device, part.outputs[slot].index, {}, buffer});
    }
    m_work.builder.emit(part.device, update.block, std::move(kernel));
}

/// What brings a new weight to its copies: to the first that is not updated in place.
OptimizerEmitter::Gathering OptimizerEmitter::gatheringOf(const WeightUpdate &update) const
{
    const TensorId weight = m_work.graph.at(update.id).inputs[0];
    const auto &copies = m_kept.held(weight);
    const auto copy = std::find_if(
        copies.begin(), copies.end(), [&](const KeptBox &each) { return !update.isInPlace(each); });
    Gathering gathering;
    if (copy == copies.end())
        return gathering;
    gathering.bytes = sizeOf(m_work.builder.buffer(copy->device, copy->buffer));
    for (const Holding &own : update.made[0])
        if (intersection(own.box, copy->box))
            gathering.sources.push_back(own.device);
    return gathering;
}

/// Whether so much is gathered by one launch that its latency matters little.
bool OptimizerEmitter::isWorthALaunch(const std::vector<DeviceId> &sources, Bytes bytes) const
{
    if (sources.size() < 2)
        return true;
    const GroupShape group = groupShape(m_work.cluster, sources);
    return isFullBucket(m_work.costs.collective(CollectiveKind::AllGather, {}, group),
        m_work.costs.collective(CollectiveKind::AllGather, bytes, group));
}

/// Brings what an update made to everywhere the old value is held.
Result<void> OptimizerEmitter::spread(WeightUpdate update)
{
    const OperatorId id = update.id;
    const Operator &op = m_work.graph.at(id);
    const bool sharded = m_sharded.of(op.inputs[0], 3) != nullptr;
    const auto shard = m_work.unitShardOf(id);
    for (const Holding &own : update.made[0]) {
        if (sharded)
            castShards(op.inputs[0], own.device, update.block, id, own.buffer);
        else if (shard) // each unit keeps its own share of the states, in place
            gatherAcrossUnits(id, update.block, own, *shard);
    }
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
        if (op.outputs[slot] && (slot > 0 ? !shard : !sharded))
            TRY_VOID(spreadSlot(update, slot, shard.has_value()));
    return {};
}

/// @param isGathered  what was made is at hand already
Result<void> OptimizerEmitter::spreadSlot(WeightUpdate &update, std::size_t slot, bool isGathered)
{
    const Operator &op = m_work.graph.at(update.id);
    std::map<DataType, std::vector<KeptBox>> byType;
    for (const KeptBox &kept : m_kept.held(op.inputs[slot == 0 ? 0 : slot + 1]))
        if (!update.isInPlace(kept))
            byType[kept.dataType].push_back(kept);
    if (byType.empty())
        return {}; // nobody asks for it
    auto &made = update.made[slot];
    for (std::size_t i = 0; i < made.size() && !isGathered; ++i)
        m_work.materializer.made(op.outputs[slot], update.block, std::move(made[i]), made.size());
    for (const auto &[type, holders] : byType) {
        std::vector<Need> needs;
        for (const KeptBox &kept : holders)
            needs.push_back({kept.device, kept.box});
        TRY(const auto buffers,
            m_work.materializer.ensure(op.outputs[slot], needs, type, update.block, update.id));
        for (std::size_t i = 0; i < holders.size(); ++i)
            if (buffers[i] != holders[i].buffer)
                m_work.builder.emit(holders[i].device, update.block,
                    {.kind = InstructionKind::Update,
                        .op = update.id,
                        .inputs = {buffers[i]},
                        .outputs = {m_kept.oldestVersion(holders[i].device, holders[i].buffer)}});
    }
    return {};
}

/// Keeps the copies of a weight's shards in other types as the update leaves them.
void OptimizerEmitter::castShards(
    TensorId weight, DeviceId device, std::int32_t block, OperatorId op, std::int32_t made)
{
    const BufferInfo source = m_work.builder.buffer(device, made);
    for (const KeptBox &p : m_kept.held(weight)) {
        if (p.device != device || p.box != source.index || p.dataType == source.dataType)
            continue;
        const std::int32_t copy =
            m_work.castBuffer(device, block, op, made, p.dataType, m_work.graph.at(op).outputs.front());
        m_work.builder.emit(device, block,
            {.kind = InstructionKind::Update,
                .op = op,
                .inputs = {copy},
                .outputs = {m_kept.oldestVersion(device, p.buffer)}});
    }
}

/// Brings the units' shares of a new weight together on every one of them, in each of the types that somebody
/// keeps it in.
void OptimizerEmitter::gatherAcrossUnits(
    OperatorId id, std::int32_t block, const Holding &own, const UnitShard &shard)
{
    const TensorId tensor = m_work.graph.at(id).outputs[0];
    const TensorId old = m_work.graph.at(id).inputs[0];
    std::set<DataType> types;
    for (const KeptBox &p : m_kept.held(old))
        if (m_work.builder.buffer(p.device, p.buffer).share != UnitShare::Shard)
            types.insert(p.dataType);
    for (const DataType type : types) {
        const bool isMade = m_work.builder.buffer(own.device, own.buffer).dataType == type;
        Holding sent = own;
        if (!isMade)
            sent.buffer = m_work.castBuffer(own.device, block, id, own.buffer, type, tensor);
        Holding whole = m_work.gatherAcrossUnits(tensor, type, shard, sent, block, id);
        if (type == m_work.types.accumulated(tensor))
            m_work.materializer.made(tensor, block, std::move(whole));
        else
            m_work.materializer.available(tensor, std::move(whole), block);
    }
}

/// In the order of the devices that add up their gradients, and of those that update them: reductions over
/// the same group are launched together.
std::vector<OperatorId> OptimizerEmitter::byReduction(std::vector<OperatorId> updates) const
{
    std::map<OperatorId, std::pair<std::vector<DeviceId>, std::size_t>> keys;
    for (const OperatorId id : updates)
        for (const TensorId input : m_work.graph.at(id).inputs)
            if (input && m_gradients.bucketOf(input) >= 0)
                keys[id] = {m_gradients.addersOf(input), m_work.partsOf(id).size()};
    std::stable_sort(
        updates.begin(), updates.end(), [&](OperatorId a, OperatorId b) { return keys[a] < keys[b]; });
    return updates;
}

/// All of their kernels: one launch updates many weights (as torch.optim's foreach and fused implementations
/// do).
Result<std::vector<OptimizerEmitter::WeightUpdate>> OptimizerEmitter::emitUpdates(
    const std::vector<OperatorId> &together)
{
    // What units add up by themselves first: reductions over the same group are launched together.
    for (const OperatorId id : together)
        for (std::size_t slot = 0; slot < m_work.graph.at(id).inputs.size() && !m_work.plan.units.isOne();
             ++slot)
            if (const TensorId tensor = m_work.graph.at(id).inputs[slot];
                tensor && m_work.isWeightGradient(tensor) && !m_sharded.of(m_work.graph.at(tensor).of, 2))
                TRY_VOID(m_inputs.gradientInUnit(id, slot));
    std::vector<WeightUpdate> updates;
    for (const OperatorId id : together) {
        TRY_VOID(m_work.goesOn());
        TRY(WeightUpdate update, emitUpdate(id));
        updates.push_back(std::move(update));
    }
    return updates;
}

/// The operators of the optimizer that `wanted` names, by block and bucket of the gradients they read.
OperatorsByBucket OptimizerEmitter::byBlockAndBucket(bool (*wanted)(const Operator &)) const
{
    OperatorsByBucket sorted;
    for (const OperatorId id : m_blocks.sequence(m_blocks.optimizers().back())) {
        const Operator &op = m_work.graph.at(id);
        if (!wanted(op))
            continue;
        std::int32_t bucket = -1;
        for (const TensorId input : op.inputs)
            bucket = std::max(bucket, input ? m_gradients.bucketOf(input) : -1);
        sorted[blockOf(op)][bucket].push_back(id);
    }
    return sorted;
}

Result<void> OptimizerEmitter::emit()
{
    const auto isSquareSum = [](const Operator &op) { return op.kind == OperatorKind::SquareSum; };
    const auto isClipFactor = [](const Operator &op) { return op.kind == OperatorKind::ClipFactor; };
    TRY_VOID(m_clipping.emit(byBlockAndBucket(isSquareSum), byBlockAndBucket(isClipFactor)));
    for (const auto &[block, byBucket] : byBlockAndBucket(updatesWeight))
        TRY_VOID(emitBlock(block, byBucket));
    return {};
}

Result<void> OptimizerEmitter::emitBlock(
    std::int32_t block, const std::map<std::int32_t, std::vector<OperatorId>> &byBucket)
{
    std::vector<OperatorId> all;
    for (const auto &[bucket, operators] : byBucket)
        all.insert(all.end(), operators.begin(), operators.end());
    m_work.reserveRoom(block, all);
    struct Waiting {
        std::vector<WeightUpdate> updates{};
        Bytes bytes{};
    };
    std::map<std::vector<DeviceId>, Waiting> waiting; // by whose parts come together
    const auto spreadThose = [&](bool isEnd) -> Result<void> {
        for (auto &[sources, own] : waiting) {
            if (!isEnd && !isWorthALaunch(sources, own.bytes))
                continue;
            for (WeightUpdate &update : std::exchange(own, {}).updates) {
                TRY_VOID(m_work.goesOn());
                TRY_VOID(spread(std::move(update)));
            }
        }
        return {};
    };
    for (const auto &[bucket, operators] : byBucket) {
        TRY(auto updates, emitUpdates(byReduction(operators)));
        TRY_VOID(spreadThose(false));
        for (WeightUpdate &update : updates) {
            Gathering gathering = gatheringOf(update);
            Waiting &own = waiting[std::move(gathering.sources)];
            own.bytes += gathering.bytes;
            own.updates.push_back(std::move(update));
        }
    }
    return spreadThose(true);
}

} // namespace planloom
