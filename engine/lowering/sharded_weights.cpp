#include "engine/lowering/sharded_weights.h"

#include "engine/table/table.h"

#include <algorithm>
#include <set>

namespace planloom {

ShardedWeights::ShardedWeights(LoweringWork &work, const LoweredBlocks &blocks, KeptWeights &kept)
    : m_work(work)
    , m_blocks(blocks)
    , m_kept(kept)
{
}

/// Finds the weights whose replicas share out more than the update. That takes one stage that reads them,
/// whose devices hold the shards; and across units, one shard on each device. Others are shared out as far as
/// stage 1 goes.
void ShardedWeights::find()
{
    for (std::size_t o = 0; o < m_work.graph.operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        const OperatorDecision &decision = m_work.plan.decisions[o];
        if (decision.sharding.stage < 2)
            continue;
        ShardedWeight sharded{id, decision.sharding, m_work.unitShardOf(id), true, {}};
        const TensorId weight = m_work.graph.at(id).inputs.front();
        std::set<DeviceId> readers;
        std::set<std::int32_t> blocks;
        std::vector<OperatorId> users = m_work.uses.consumers[at(weight)];
        for (std::size_t v = 0; v < m_work.versions.size(); ++v)
            if (m_work.versions[v].weight == weight)
                users.insert(users.end(), m_work.uses.consumers[m_work.firstVersion() + v].begin(),
                    m_work.uses.consumers[m_work.firstVersion() + v].end());
        for (const OperatorId user : users) {
            if (m_work.graph.at(user).direction == Direction::Optimizer)
                continue;
            blocks.insert(m_work.decisionOf(user).stage.index);
            if (m_blocks.of(user).front() == m_blocks.prologue())
                blocks.insert(-1);
            for (const TransformedPart &part : m_work.partsOf(user))
                readers.insert(part.device);
        }
        bool fits = blocks.size() == 1;
        for (const TransformedPart &part : m_work.transformed.operators[o]) {
            const IndexMask &own = part.inputs.front().index;
            fits = fits && readers.contains(part.device);
            sharded.places[part.device].push_back(own);
        }
        sharded.isCutInUnit = !sharded.shard;
        for (const KeptBox &box : m_kept.boxesOf(weight)) {
            const auto own = sharded.places.find(box.device);
            if (!sharded.shard || !fits || m_work.types.isMaster(weight, box.dataType))
                continue;
            fits = own != sharded.places.end() && own->second.size() == 1;
            sharded.isCutInUnit =
                sharded.isCutInUnit || (fits && !contains(sharded.inUnit(own->second.front()), box.box));
        }
        if (fits)
            m_sharded.emplace(weight, std::move(sharded));
    }
}

const ShardedWeight *ShardedWeights::of(TensorId weight, std::int32_t stage) const
{
    const auto found = m_sharded.find(m_work.versionOf(weight).weight);
    return found != m_sharded.end() && found->second.sharding.stage >= stage ? &found->second : nullptr;
}

void ShardedWeights::gather(const ShardedWeight &sharded, TensorId weight, const std::vector<Need> &needs,
    DataType type, std::int32_t block, OperatorId op)
{
    // The largest box that any operator of a device reads serves all that lie inside it.
    std::vector<Need> wide;
    for (const Need &need : needs) {
        Need all{need.device, m_kept.largestBox(weight, need.device, need.box, type)};
        if (std::find(wide.begin(), wide.end(), all) == wide.end())
            wide.push_back(std::move(all));
    }
    if (m_work.materializer.holds(weight, wide, type, block))
        return;
    const BesideCompute queue(m_work.builder, m_waits);
    const auto pieceOf = [&](DeviceId device, const IndexMask &box) {
        const Holding own{device, box, {}, m_kept.shardBuffer(sharded, weight, device, box, type)};
        return sharded.shard ? m_work.gatherAcrossUnits(weight, type, *sharded.shard, own, block, op) : own;
    };
    if (!sharded.isCutInUnit) {
        for (const Need &need : wide)
            m_work.materializer.gathered(weight, pieceOf(need.device, sharded.places.at(need.device).front()),
                block, sharded.sharding.keep);
        return;
    }
    std::vector<Holding> pieces;
    for (const auto &[device, boxes] : sharded.places)
        for (const IndexMask &box : boxes)
            pieces.push_back(pieceOf(device, box));
    m_work.materializer.gather(weight, std::move(pieces), wide, type, block, op, sharded.sharding.keep);
}

/// What `id` reads of sharded weights.
void ShardedWeights::addGathers(OperatorId id, std::int32_t block, std::vector<WeightGather> &gathers) const
{
    const Operator &op = m_blocks.shareOf(id, block);
    const auto &parts = m_work.partsOf(id);
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const ShardedWeight *sharded = op.inputs[slot] ? of(op.inputs[slot], 3) : nullptr;
        if (!sharded || parts.empty())
            continue;
        WeightGather gather{sharded, op.inputs[slot], m_work.types.read(id, slot), id};
        gather.needs.reserve(parts.size());
        for (const TransformedPart &part : parts)
            gather.needs.push_back({part.device, part.inputs[slot].index});
        const IndexMask &box = gather.needs.front().box;
        for (const auto &[device, boxes] : sharded->places)
            if (std::any_of(boxes.begin(), boxes.end(), [&](const IndexMask &own) {
                    return intersection(sharded->inUnit(own), box).has_value();
                }))
                gather.among.push_back(device);
        gathers.push_back(std::move(gather));
    }
}

Result<void> ShardedWeights::beginBlock(std::int32_t block)
{
    findGroups(block);
    return scheduleGroups(block);
}

bool ShardedWeights::anyGroupEnds(std::size_t begin, std::size_t end) const
{
    return std::any_of(m_groups.begin(), m_groups.end(),
        [&](const GatherGroup &group) { return group.last >= begin && group.last < end; });
}

/// The groups of operators of a block whose sharded weights are gathered, and whose gradients are cut,
/// together: runs of operators of one group, with those that the backward pass runs again.
void ShardedWeights::findGroups(std::int32_t block)
{
    m_groups.clear();
    if (m_sharded.empty())
        return;
    std::map<std::int32_t, std::size_t> known; // by group
    const auto groupOf = [this](OperatorId id) { return m_work.decisionOf(id).gatherGroup; };
    const auto touches = [this](const Operator &op) {
        const auto isSharded = [this](TensorId tensor) {
            return tensor && m_sharded.contains(m_work.versionOf(tensor).weight);
        };
        return std::any_of(op.inputs.begin(), op.inputs.end(), isSharded)
            || std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId tensor) {
                   return tensor && m_work.isWeightGradient(tensor) && isSharded(m_work.graph.at(tensor).of);
               });
    };
    const auto &sequence = m_blocks.sequence(block);
    for (std::size_t place = 0; place < sequence.size(); ++place) {
        if (!touches(m_blocks.shareOf(sequence[place], block)))
            continue;
        const std::int32_t group = groupOf(sequence[place]);
        const auto found = group < 0 ? known.end() : known.find(group);
        if (found == known.end()) {
            if (group >= 0)
                known[group] = m_groups.size();
            m_groups.push_back({.first = place, .last = place});
        }
        GatherGroup &own = found == known.end() ? m_groups.back() : m_groups[found->second];
        own.last = place;
        own.operators.push_back(sequence[place]);
    }
    const BlockInfo &info = m_work.builder.block(block);
    if (info.kind != SegmentKind::Backward && info.kind != SegmentKind::InputGradient)
        return;
    for (const OperatorId id : m_blocks.forwardOperators(block)) {
        const auto found = known.find(groupOf(id));
        if (found != known.end() && groupOf(id) >= 0 && touches(m_work.graph.at(id))
            && m_work.decisionOf(id).recomputeGroup >= 0)
            m_groups[found->second].operators.push_back(id);
    }
}

/// Says before which operator of the block each group's weights are gathered: those of the first groups at
/// its begin, where nothing holds them up; those of others as the group so far ahead begins; and where rows
/// ask for it, later or earlier.
/// @return InvalidInput naming a row that asks for weights after their use
Result<void> ShardedWeights::scheduleGroups(std::int32_t block)
{
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        GatherGroup &group = m_groups[g];
        std::int32_t ahead = 0;
        for (const OperatorId id : group.operators)
            for (const TensorId input : m_work.graph.at(id).inputs)
                if (const ShardedWeight *sharded = input ? of(input, 3) : nullptr)
                    ahead = std::max(ahead, sharded->sharding.prefetch);
        const bool atBegin = g < static_cast<std::size_t>(ahead);
        group.due = atBegin ? 0 : m_groups[g - static_cast<std::size_t>(ahead)].first;
        group.waits = !atBegin;
    }
    const auto &sequence = m_blocks.sequence(block);
    for (const CommunicationOrder &order : m_work.plan.communicationOrders) {
        if (order.part != CommunicationPart::Gathers)
            continue;
        std::vector<std::size_t> places; // of the other side
        for (std::size_t place = 0; place < sequence.size(); ++place)
            if (std::binary_search(order.second.begin(), order.second.end(), sequence[place]))
                places.push_back(place);
        for (GatherGroup &group : m_groups) {
            if (places.empty()
                || std::none_of(group.operators.begin(), group.operators.end(), [&](OperatorId op) {
                       return std::binary_search(order.first.begin(), order.first.end(), op);
                   }))
                continue;
            const std::size_t due =
                order.before ? std::min(group.due, places.front()) : std::max(group.due, places.back() + 1);
            if (due > group.first)
                return Error{ErrorCode::InvalidInput,
                    "weights cannot be gathered after '" + m_work.graph.at(sequence[due - 1]).name + "': '"
                        + m_work.graph.at(sequence[group.first]).name + "' reads them before it is done",
                    "remove the row, or turn it around", placeOf(order.row, "rule")};
            group.waits = group.waits || due > group.due;
            group.due = due;
        }
    }
    return {};
}

void ShardedWeights::gatherAhead(std::size_t place, std::int32_t block)
{
    for (const GatherGroup &group : m_groups) {
        if (group.due != place)
            continue;
        std::vector<WeightGather> gathers;
        for (const OperatorId id : group.operators)
            addGathers(id, block, gathers);
        byGroups(gathers, &WeightGather::among);
        m_waits = group.waits;
        for (const WeightGather &each : gathers)
            gather(*each.sharded, each.weight, each.needs, each.type, block, each.op);
        m_waits = true;
    }
}

} // namespace planloom
