// ZeRO's stages 2 and 3 (arXiv:1910.02054, section 5): gradients that are reduced to shards in every
// micro-batch, and weights that are gathered before their use.

#include "engine/lowering/lowering.h"
#include "engine/table/table.h"

#include <algorithm>

namespace planloom {

namespace {

/// Puts together what the same devices communicate, so that it is one launch: in the order in which the first
/// of each comes.
template<typename Each> void byGroups(std::vector<Each> &all, std::vector<DeviceId> Each::*among)
{
    std::map<std::vector<DeviceId>, std::size_t> places;
    for (const Each &each : all)
        places.try_emplace(each.*among, places.size());
    std::stable_sort(all.begin(), all.end(),
        [&](const Each &a, const Each &b) { return places.at(a.*among) < places.at(b.*among); });
}

} // namespace

/// Finds the weights whose replicas share out more than the update. That takes one stage that reads them,
/// whose devices hold the shards; and across units, that a device's shards are of the boxes it reads. Others
/// are shared out as far as stage 1 goes.
void Lowering::findSharded()
{
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        const OperatorDecision &decision = m_plan.decisions[o];
        if (decision.sharding.stage < 2)
            continue;
        ShardedWeight sharded{id, decision.sharding, unitShardOf(id), {}};
        const TensorId weight = m_graph.at(id).inputs.front();
        std::set<DeviceId> readers;
        std::set<std::int32_t> blocks;
        std::vector<OperatorId> users = m_uses.consumers[static_cast<std::size_t>(weight.index)];
        for (std::size_t v = 0; v < m_versions.size(); ++v)
            if (m_versions[v].weight == weight)
                users.insert(users.end(), m_uses.consumers[firstVersion() + v].begin(),
                    m_uses.consumers[firstVersion() + v].end());
        for (const OperatorId user : users) {
            if (m_graph.at(user).direction == Direction::Optimizer)
                continue;
            blocks.insert(m_plan.decisions[static_cast<std::size_t>(user.index)].stage.index);
            if (m_blocksOf[static_cast<std::size_t>(user.index)].front() == m_prologue)
                blocks.insert(-1);
            for (const TransformedPart &part : m_transformed.operators[static_cast<std::size_t>(user.index)])
                readers.insert(part.device);
        }
        bool fits = blocks.size() == 1;
        for (const TransformedPart &part : m_transformed.operators[o]) {
            const IndexMask &own = part.inputs.front().index;
            fits = fits && readers.contains(part.device);
            sharded.places[part.device].push_back(own);
        }
        for (const Persistent &box : m_persistentBoxes[static_cast<std::size_t>(weight.index)]) {
            if (!sharded.shard || !fits)
                break;
            const auto own = sharded.places.find(box.device);
            const bool isUpdates = m_types.isMaster(weight, box.dataType);
            fits = isUpdates
                || (own != sharded.places.end() && own->second.size() == 1
                    && contains(joinedUnits(own->second.front(), *sharded.shard), box.box));
        }
        if (fits)
            m_sharded.emplace(weight, std::move(sharded));
    }
}

const Lowering::ShardedWeight *Lowering::shardedWeight(TensorId weight, std::int32_t stage) const
{
    const auto found = m_sharded.find(versionOf(weight).weight);
    return found != m_sharded.end() && found->second.sharding.stage >= stage ? &found->second : nullptr;
}

/// A device's own shard of a weight, which lives across steps.
std::int32_t Lowering::shardBuffer(
    const ShardedWeight &sharded, TensorId weight, DeviceId device, const IndexMask &box, DataType type)
{
    const auto [newest, staleness] = versionOf(weight);
    auto &held = m_persistent[static_cast<std::size_t>(newest.index)];
    for (const Persistent &p : held)
        if (p.device == device && p.dataType == type && p.box == box)
            return p.buffer + staleness;
    const bool isMaster = m_types.isMaster(newest, type);
    BufferInfo info{.tensor = newest,
        .dataType = type,
        .index = box,
        .perMicroBatch = false,
        .persistent = true,
        .memory = isMaster ? MemoryKind::OptimizerState : memoryOf(newest)};
    if (sharded.shard)
        markShard(info, *sharded.shard);
    std::int32_t versions = 1; // whoever reads the weight has a piece of it from here
    for (const auto &[reader, boxes] : sharded.places)
        versions = std::max(versions, versionsOn(newest, reader, type));
    const std::int32_t buffer = addVersions(std::move(info), device, versions, !sharded.shard);
    held.push_back({device, box, buffer, type});
    return buffer + staleness;
}

/// Brings a sharded weight together where `needs` ask for it, once in a block.
void Lowering::gatherWeight(const ShardedWeight &sharded, TensorId weight, const std::vector<Need> &needs,
    DataType type, std::int32_t block, OperatorId op)
{
    // The largest box that any operator of a device reads serves all that lie inside it.
    std::vector<Need> wide;
    for (const Need &need : needs) {
        Need all{need.device, largestBox(weight, need.device, need.box, type)};
        if (std::find(wide.begin(), wide.end(), all) == wide.end())
            wide.push_back(std::move(all));
    }
    if (m_materializer.holds(weight, wide, type, block))
        return;
    const BesideCompute queue(m_builder, m_gathersWait);
    if (!sharded.shard) {
        std::vector<Holding> pieces;
        for (const auto &[device, boxes] : sharded.places)
            for (const IndexMask &box : boxes)
                pieces.push_back({device, box, {}, shardBuffer(sharded, weight, device, box, type)});
        m_materializer.gather(weight, std::move(pieces), wide, type, block, op, sharded.sharding.keep);
        return;
    }
    for (const Need &need : wide) {
        const IndexMask &own = sharded.places.at(need.device).front();
        const std::int32_t piece = shardBuffer(sharded, weight, need.device, own, type);
        const IndexMask box = joinedUnits(own, *sharded.shard);
        const SegmentKind kind = m_builder.block(block).kind;
        const std::int32_t copy = m_builder.addBuffer(need.device,
            {.tensor = weight,
                .dataType = type,
                .index = box,
                .perMicroBatch = isPass(kind),
                .memory = memoryOf(weight)});
        m_builder.emit(need.device, block,
            {.kind = InstructionKind::AllGather,
                .op = op,
                .acrossUnits = true,
                .dimension = sharded.shard->dimension,
                .inputs = {piece},
                .outputs = {copy}});
        m_materializer.gathered(weight, {need.device, box, {}, copy}, block, sharded.sharding.keep);
    }
}

/// What `id` reads of sharded weights.
void Lowering::addGathers(OperatorId id, std::int32_t block, std::vector<WeightGather> &gathers) const
{
    const Operator &op = shareOf(id, block);
    const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const ShardedWeight *sharded = op.inputs[slot] ? shardedWeight(op.inputs[slot], 3) : nullptr;
        if (!sharded || parts.empty())
            continue;
        WeightGather gather{sharded, op.inputs[slot], m_types.read(id, slot), id};
        gather.needs.reserve(parts.size());
        for (const TransformedPart &part : parts)
            gather.needs.push_back({part.device, part.inputs[slot].index});
        const IndexMask &box = gather.needs.front().box;
        for (const auto &[device, boxes] : sharded->places)
            if (std::any_of(boxes.begin(), boxes.end(),
                    [&box](const IndexMask &own) { return intersection(own, box).has_value(); }))
                gather.among.push_back(device);
        gathers.push_back(std::move(gather));
    }
}

/// The groups of operators of a block whose sharded weights are gathered, and whose gradients are cut,
/// together: runs of operators of one group, with those that the backward pass runs again.
void Lowering::findGatherGroups(std::int32_t block)
{
    m_gatherGroups.clear();
    if (m_sharded.empty())
        return;
    std::map<std::int32_t, std::size_t> known; // by group
    const auto groupOf = [this](OperatorId id) {
        return m_plan.decisions[static_cast<std::size_t>(id.index)].gatherGroup;
    };
    const auto touches = [this](const Operator &op) {
        const auto isSharded = [this](TensorId tensor) {
            return tensor && m_sharded.contains(versionOf(tensor).weight);
        };
        return std::any_of(op.inputs.begin(), op.inputs.end(), isSharded)
            || std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId tensor) {
                   return tensor && isWeightGradient(tensor) && isSharded(m_graph.at(tensor).of);
               });
    };
    const auto &sequence = m_sequence[static_cast<std::size_t>(block)];
    for (std::size_t place = 0; place < sequence.size(); ++place) {
        if (!touches(shareOf(sequence[place], block)))
            continue;
        const std::int32_t group = groupOf(sequence[place]);
        const auto found = group < 0 ? known.end() : known.find(group);
        if (found == known.end()) {
            if (group >= 0)
                known[group] = m_gatherGroups.size();
            m_gatherGroups.push_back({.first = place, .last = place});
        }
        GatherGroup &own = found == known.end() ? m_gatherGroups.back() : m_gatherGroups[found->second];
        own.last = place;
        own.operators.push_back(sequence[place]);
    }
    const BlockInfo &info = m_builder.block(block);
    if (info.kind != SegmentKind::Backward && info.kind != SegmentKind::InputGradient)
        return;
    for (const OperatorId id : forwardOperators(block)) {
        const auto found = known.find(groupOf(id));
        if (found != known.end() && groupOf(id) >= 0 && touches(m_graph.at(id))
            && m_plan.decisions[static_cast<std::size_t>(id.index)].recomputeGroup >= 0)
            m_gatherGroups[found->second].operators.push_back(id);
    }
}

/// Says before which operator of the block each group's weights are gathered: those of the first groups at
/// its begin, where nothing holds them up; those of others as the group so far ahead begins; and where rows
/// ask for it, later or earlier.
/// @return InvalidInput naming a row that asks for weights after their use
Result<void> Lowering::scheduleGathers(std::int32_t block)
{
    for (std::size_t g = 0; g < m_gatherGroups.size(); ++g) {
        GatherGroup &group = m_gatherGroups[g];
        std::int32_t ahead = 0;
        for (const OperatorId id : group.operators)
            for (const TensorId input : m_graph.at(id).inputs)
                if (const ShardedWeight *sharded = input ? shardedWeight(input, 3) : nullptr)
                    ahead = std::max(ahead, sharded->sharding.prefetch);
        const bool atBegin = g < static_cast<std::size_t>(ahead);
        group.due = atBegin ? 0 : m_gatherGroups[g - static_cast<std::size_t>(ahead)].first;
        group.waits = !atBegin;
    }
    const auto &sequence = m_sequence[static_cast<std::size_t>(block)];
    for (const CommunicationOrder &order : m_plan.communicationOrders) {
        if (order.part != CommunicationPart::Gathers)
            continue;
        std::vector<std::size_t> places; // of the other side
        for (std::size_t place = 0; place < sequence.size(); ++place)
            if (std::binary_search(order.second.begin(), order.second.end(), sequence[place]))
                places.push_back(place);
        for (GatherGroup &group : m_gatherGroups) {
            if (places.empty()
                || std::none_of(group.operators.begin(), group.operators.end(), [&](OperatorId op) {
                       return std::binary_search(order.first.begin(), order.first.end(), op);
                   }))
                continue;
            const std::size_t due =
                order.before ? std::min(group.due, places.front()) : std::max(group.due, places.back() + 1);
            if (due > group.first)
                return Error{ErrorCode::InvalidInput,
                    "weights cannot be gathered after '" + m_graph.at(sequence[due - 1]).name + "': '"
                        + m_graph.at(sequence[group.first]).name + "' reads them before it is done",
                    "remove the row, or turn it around", placeOf(order.row, "rule")};
            group.waits = group.waits || due > group.due;
            group.due = due;
        }
    }
    return {};
}

/// Gathers the weights of groups that are due before the operator at `place` of `block`.
void Lowering::gatherAhead(std::size_t place, std::int32_t block)
{
    for (const GatherGroup &group : m_gatherGroups) {
        if (group.due != place)
            continue;
        std::vector<WeightGather> gathers;
        for (const OperatorId id : group.operators)
            addGathers(id, block, gathers);
        byGroups(gathers, &WeightGather::among);
        m_gathersWait = group.waits;
        for (const WeightGather &each : gathers)
            gatherWeight(*each.sharded, each.weight, each.needs, each.type, block, each.op);
        m_gathersWait = true;
    }
}

/// What a part made of a weight's gradient in a micro-batch, to be cut into shards when its group is done.
void Lowering::addToShards(const ShardedWeight &sharded, TensorId gradient, DeviceId device,
    std::int32_t block, const IndexMask &box, std::int32_t summand, std::int32_t buffer)
{
    if (!sharded.shard) {
        m_materializer.made(gradient, block, {device, box, {summand}, buffer});
        return;
    }
    auto &made = m_madeGradients[{gradient, device}];
    if (std::none_of(made.begin(), made.end(), [&](const auto &other) { return other.second == summand; }))
        made.emplace_back(buffer, summand); // else a replica on the same device made the same one
}

/// Gradients that `id` was the last to add to are complete for this micro-batch.
void Lowering::noteCut(OperatorId id, std::int32_t block)
{
    for (const TensorId output : shareOf(id, block).outputs) {
        if (!output || !isWeightGradient(output) || !isCutByMicroBatch(output))
            continue;
        const auto [left, fresh] = m_makersLeft.try_emplace(output,
            static_cast<std::int32_t>(m_uses.producers[static_cast<std::size_t>(output.index)].size()));
        if (--left->second == 0)
            m_pending.push_back(output);
    }
}

/// Whether a gradient is cut into shards in every micro-batch: one block makes it, and across units every
/// device makes all of its box alone.
bool Lowering::isCutByMicroBatch(TensorId gradient)
{
    const ShardedWeight *sharded = shardedWeight(m_graph.at(gradient).of, 2);
    if (!sharded)
        return false;
    const auto [known, fresh] = m_cut.try_emplace(gradient, true);
    if (!fresh)
        return known->second;
    const auto &producers = m_uses.producers[static_cast<std::size_t>(gradient.index)];
    bool &cut = known->second;
    for (const OperatorId producer : producers) {
        const auto o = static_cast<std::size_t>(producer.index);
        cut = cut && weightBlockOf(producer) == weightBlockOf(producers.front());
        const Operator &op = m_graph.at(producer);
        for (std::size_t slot = 0; slot < op.outputs.size() && sharded->shard; ++slot) {
            if (op.outputs[slot] != gradient)
                continue;
            for (const TransformedPart &part : m_transformed.operators[o]) {
                const auto own = sharded->places.find(part.device);
                cut = cut && part.outputs[slot].value.complete() && own != sharded->places.end()
                    && own->second.size() == 1
                    && part.outputs[slot].index == joinedUnits(own->second.front(), *sharded->shard);
            }
        }
    }
    return cut;
}

/// Cuts the gradients that are complete behind the operators emitted so far, and adds the shards up that were
/// cut before: what is computed next is not to wait for those that are on their way.
Result<void> Lowering::cutGradients(std::int32_t block)
{
    struct Pending {
        TensorId gradient{};
        std::vector<DeviceId> among{}; ///< That add up the same box as the first of them.
    };
    std::vector<Pending> pending;
    for (const TensorId gradient : std::exchange(m_pending, {})) {
        Pending &own = pending.emplace_back();
        own.gradient = gradient;
        if (const auto *made = m_materializer.holdingsOf(gradient, block))
            for (const Holding &holding : *made)
                if (holding.box == made->front().box)
                    own.among.push_back(holding.device);
    }
    if (pending.empty())
        return {};
    byGroups(pending, &Pending::among);
    std::vector<TensorId> gradients;
    for (const Pending &each : pending)
        gradients.push_back(each.gradient);
    const std::vector<CutShard> before = std::exchange(m_cutShards, {});
    const BesideCompute queue(m_builder, false);
    for (const TensorId gradient : gradients) {
        const ShardedWeight &sharded = *shardedWeight(m_graph.at(gradient).of, 2);
        if (sharded.shard)
            continue;
        std::vector<Need> needs;
        for (const auto &[device, boxes] : sharded.places)
            for (const IndexMask &box : boxes)
                needs.push_back({device, box});
        TRY(const auto buffers,
            m_materializer.ensure(gradient, needs, m_types.accumulated(gradient), block, sharded.update));
        for (std::size_t i = 0; i < needs.size(); ++i)
            m_cutShards.push_back({gradient, needs[i].device, sharded.update, needs[i].box, buffers[i]});
        m_materializer.forget(gradient, block, block);
    }
    cutAcrossUnits(gradients, block);
    addShards(before, block);
    return {};
}

/// First what is sent in another type is cast, then all is sent at once.
void Lowering::cutAcrossUnits(const std::vector<TensorId> &gradients, std::int32_t block)
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
        const ShardedWeight *sharded = shardedWeight(m_graph.at(gradient).of, 2);
        const DataType reduced = m_types.reduced(gradient);
        for (const auto &[device, boxes] : sharded->places) {
            const auto made = m_madeGradients.find({gradient, device});
            if (!sharded->shard || made == m_madeGradients.end())
                continue;
            for (const auto &[buffer, summand] : made->second) {
                const bool asMade = m_builder.buffer(device, buffer).dataType == reduced;
                shards.push_back({gradient, device, sharded,
                    asMade ? buffer : castBuffer(device, block, sharded->update, buffer, reduced)});
            }
            m_madeGradients.erase(made);
        }
    }
    for (Shard &shard : shards) {
        BufferInfo info = m_builder.buffer(shard.device, shard.sent);
        info.index = shard.sharded->places.at(shard.device).front();
        info.memory = MemoryKind::Gradient;
        markShard(info, *shard.sharded->shard);
        shard.buffer = m_builder.addBuffer(shard.device, std::move(info));
        m_builder.emit(shard.device, block,
            {.kind = InstructionKind::ReduceScatter,
                .op = shard.sharded->update,
                .acrossUnits = true,
                .dimension = shard.sharded->shard->dimension,
                .inputs = {shard.sent},
                .outputs = {shard.buffer}});
    }
    for (const Shard &shard : shards)
        m_cutShards.push_back({shard.gradient, shard.device, shard.sharded->update,
            shard.sharded->places.at(shard.device).front(), shard.buffer});
}

/// Adds shards of this micro-batch's gradients to those of the step: they are complete then.
void Lowering::addShards(const std::vector<CutShard> &shards, std::int32_t block)
{
    for (const CutShard &shard : shards)
        addShard(shard, block);
    if (shards.empty())
        return;
    const std::int32_t mark = m_builder.mark(block);
    for (const CutShard &shard : shards)
        m_complete[shard.gradient] = {{{block, mark}}};
}

void Lowering::addShard(const CutShard &shard, std::int32_t block)
{
    const auto &[gradient, device, op, box, buffer] = shard;
    auto &own = m_accumulators[static_cast<std::size_t>(gradient.index)][device];
    auto found = std::find_if(
        own.begin(), own.end(), [&shard](const Accumulator &each) { return each.box == shard.box; });
    if (found == own.end()) {
        const ShardedWeight &sharded = *shardedWeight(m_graph.at(gradient).of, 2);
        BufferInfo info{.tensor = gradient,
            .dataType = m_types.accumulated(gradient),
            .index = box,
            .perMicroBatch = false,
            .memory = MemoryKind::Gradient,
            .share = m_plan.units.isOne() ? UnitShare::Same : UnitShare::Partial};
        if (sharded.shard)
            markShard(info, *sharded.shard);
        own.push_back({.box = box, .buffer = m_builder.addBuffer(device, std::move(info)), .complete = true});
        found = own.end() - 1;
    }
    m_builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {found->buffer}});
}

/// Keeps the copies of a weight's shards in other types as the update leaves them.
void Lowering::castShards(
    TensorId weight, DeviceId device, std::int32_t block, OperatorId op, std::int32_t made)
{
    const BufferInfo source = m_builder.buffer(device, made);
    const std::vector<Persistent> held = m_persistent[static_cast<std::size_t>(weight.index)];
    for (const Persistent &p : held) {
        if (p.device != device || p.box != source.index || p.dataType == source.dataType)
            continue;
        BufferInfo info = source;
        info.tensor = m_graph.at(op).outputs.front();
        info.dataType = p.dataType;
        info.persistent = false;
        info.staleness = 0;
        info.versions = 1;
        info.memory = memoryOf(info.tensor);
        const std::int32_t copy = m_builder.addBuffer(device, std::move(info));
        m_builder.emit(
            device, block, {.kind = InstructionKind::Cast, .op = op, .inputs = {made}, .outputs = {copy}});
        m_builder.emit(device, block,
            {.kind = InstructionKind::Update,
                .op = op,
                .inputs = {copy},
                .outputs = {oldestVersion(device, p.buffer)}});
    }
}

} // namespace planloom
