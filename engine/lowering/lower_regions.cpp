// Coshard regions: operators that run part by part.
//
//     forward     x --> [a 0]-[b 0] --> y 0     x --> [a 1]-[b 1] --> y 1        y = y 0 + y 1, or side by
//     side backward    [a 0]-[b 0'a 0'] --> dx 0     [a 1]-[b 1'a 1'] --> dx 1
//
// Between turns live what the region reads, and what it makes for others; sums over the parts grow in one
// buffer. All devices take the same turns, so that communication inside a region keeps one order.

#include "engine/lowering/lowering.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/plan/run_again.h"

#include <algorithm>

namespace planloom {

std::vector<std::int32_t> coshardRegionsOf(const Plan &plan)
{
    std::vector<std::int32_t> regions;
    regions.reserve(plan.decisions.size());
    for (const OperatorDecision &decision : plan.decisions)
        regions.push_back(decision.coshardRegion);
    return regions;
}

/// Finds the recompute groups that are one region each.
void Lowering::findTurns()
{
    std::map<std::int32_t, std::int32_t> regionOfGroup; // -1: not one
    for (std::size_t o = 0; o < m_regionOf.size(); ++o) {
        const std::int32_t group = m_plan.decisions[o].recomputeGroup;
        if (group < 0)
            continue;
        const auto [it, fresh] = regionOfGroup.emplace(group, m_regionOf[o]);
        if (!fresh && it->second != m_regionOf[o])
            it->second = -1;
    }
    m_takesTurns.assign(m_graph.operators.size(), false); // groups are numbered below
    for (const auto &[group, region] : regionOfGroup)
        m_takesTurns[static_cast<std::size_t>(group)] = region >= 0;
}

/// Where the operators that are emitted together with the one at `begin` end: those of its region.
std::size_t Lowering::regionEnd(const std::vector<OperatorId> &operators, std::size_t begin) const
{
    const auto regionOf = [&](std::size_t i) {
        return m_regionOf[static_cast<std::size_t>(operators[i].index)];
    };
    std::size_t end = begin + 1;
    while (regionOf(begin) >= 0 && end < operators.size() && regionOf(end) == regionOf(begin))
        ++end;
    return end;
}

/// Emits operators of one block, those of a region, which stand together, turn by turn.
Result<void> Lowering::emitInOrder(
    const std::vector<OperatorId> &operators, std::int32_t block, bool recompute)
{
    for (std::size_t i = 0; i < operators.size();) {
        const std::size_t begin = std::exchange(i, regionEnd(operators, i));
        const OperatorId id = operators[begin];
        if (m_regionOf[static_cast<std::size_t>(id.index)] >= 0) {
            TRY_VOID(emitRegion({operators.begin() + static_cast<std::ptrdiff_t>(begin),
                                    operators.begin() + static_cast<std::ptrdiff_t>(i)},
                block, recompute));
            continue;
        }
        if (m_graph.at(id).direction == Direction::Backward)
            TRY_VOID(recomputeFor(id, block));
        TRY_VOID(emitOperator(id, block, recompute));
    }
    return {};
}

/// The forward operators of a region that have to run again for `members`, its backward ones: those whose
/// dropped outputs they read, and what those are made from.
std::vector<OperatorId> Lowering::readAgain(const std::vector<OperatorId> &members, std::int32_t block) const
{
    const std::int32_t region = m_regionOf[static_cast<std::size_t>(members.front().index)];
    std::set<TensorId> read;
    for (const OperatorId id : members)
        read.insert(m_graph.at(id).inputs.begin(), m_graph.at(id).inputs.end());
    std::vector<OperatorId> dropped = forwardOperators(block);
    std::erase_if(dropped, [&](OperatorId id) {
        return m_regionOf[static_cast<std::size_t>(id.index)] != region
            || m_plan.decisions[static_cast<std::size_t>(id.index)].recomputeGroup < 0;
    });
    return runAgain(m_graph, dropped, [&](OperatorId, TensorId output) { return read.contains(output); });
}

Result<void> Lowering::emitRegion(const std::vector<OperatorId> &members, std::int32_t block, bool recompute)
{
    const auto decisionOf = [this](OperatorId id) -> const OperatorDecision & {
        return m_plan.decisions[static_cast<std::size_t>(id.index)];
    };
    std::vector<OperatorId> all;
    if (m_graph.at(members.front()).direction == Direction::Backward) {
        for (const OperatorId id : members)
            TRY_VOID(recomputeFor(id, block));
        all = readAgain(members, block);
        // What a larger group drops is made again first.
        for (const OperatorId id : all)
            for (const TensorId tensor : m_graph.at(id).inputs)
                if (tensor)
                    for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(tensor.index)])
                        if (decisionOf(producer).recomputeGroup == decisionOf(id).recomputeGroup
                            && decisionOf(producer).coshardRegion != decisionOf(id).coshardRegion)
                            TRY_VOID(recomputeGroup(decisionOf(id).recomputeGroup, block));
        for (const OperatorId id : all)
            for (const TensorId output : m_graph.at(id).outputs) {
                if (!output)
                    continue;
                for (const std::int32_t made : m_blocksOf[static_cast<std::size_t>(id.index)])
                    if (m_builder.block(made).lane == m_builder.block(block).lane)
                        m_materializer.forget(output, made, block);
                m_materializer.forget(output, block, block);
            }
    }
    const std::size_t again = all.size();
    all.insert(all.end(), members.begin(), members.end());
    TRY_VOID(bringToRegion(all, block));
    chooseSums(members);
    for (std::int32_t turn = 0; turn < turnsOf(decisionOf(members.front())); ++turn) {
        m_materializer.beginTurn(turn);
        for (std::size_t i = 0; i < all.size(); ++i)
            TRY_VOID(emitOperator(all[i], block, recompute || i < again, turn));
    }
    std::set<TensorId> made;
    std::set<TensorId> read;
    for (const OperatorId id : all) {
        made.insert(m_graph.at(id).outputs.begin(), m_graph.at(id).outputs.end());
        read.insert(m_graph.at(id).inputs.begin(), m_graph.at(id).inputs.end());
    }
    std::vector<TensorId> fromOutside;
    std::copy_if(read.begin(), read.end(), std::back_inserter(fromOutside),
        [&](TensorId tensor) { return tensor.valid() && made.count(tensor) == 0; });
    m_materializer.endTurns(block, fromOutside);
    handOutSums(block);
    return {};
}

/// What other stages made comes whole, not in a message for each turn. But for what `operators` themselves
/// make summands of: that is only complete once they have run.
Result<void> Lowering::bringToRegion(const std::vector<OperatorId> &operators, std::int32_t block)
{
    struct Wanted {
        OperatorId op{};
        std::map<DeviceId, std::set<IndexMask>> boxes{};
    };
    std::map<std::pair<TensorId, DataType>, Wanted> wanted;
    const StageId stage = m_builder.block(block).stage;
    std::set<TensorId> made;
    for (const OperatorId id : operators)
        made.insert(m_graph.at(id).outputs.begin(), m_graph.at(id).outputs.end());
    for (const OperatorId id : operators) {
        const auto &inputs = m_graph.at(id).inputs;
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (!inputs[slot] || isLeftOut(id, false, slot) || made.count(inputs[slot]) > 0)
                continue;
            const auto &producers = m_uses.producers[static_cast<std::size_t>(inputs[slot].index)];
            if (std::none_of(producers.begin(), producers.end(), [&](OperatorId producer) {
                    const std::int32_t from = m_blocksOf[static_cast<std::size_t>(producer.index)].front();
                    return from != m_prologue && m_builder.block(from).stage != stage;
                }))
                continue;
            Wanted &want = wanted[{inputs[slot], m_types.read(id, slot)}];
            want.op = id;
            const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
            for (std::size_t p = 0; p < parts.size(); ++p)
                if (isDue(id, static_cast<std::int32_t>(p), block, true, -1))
                    want.boxes[parts[p].device].insert(parts[p].inputs[slot].index);
        }
    }
    for (const auto &[what, want] : wanted) {
        std::vector<Need> needs;
        for (const auto &[device, boxes] : want.boxes)
            if (const auto box = tiledBox({boxes.begin(), boxes.end()}))
                needs.push_back({device, *box});
        if (!needs.empty())
            TRY_VOID(inputBuffers(what.first, needs, what.second, block, want.op));
    }
    return {};
}

/// Chooses what `members` add up as they take their turns: outputs that no turn reads, where a device makes
/// several summands of one box. Operators whose parts lie alike (the projections of queries, keys and values,
/// in the backward pass) add to the same sum.
///
/// Only where devices make the same summands or none in common: sums that share some could not be added to a
/// whole any more.
void Lowering::chooseSums(const std::vector<OperatorId> &members)
{
    m_sums.clear();
    m_sumOf.clear();
    std::set<TensorId> read;
    for (const OperatorId id : members)
        read.insert(m_graph.at(id).inputs.begin(), m_graph.at(id).inputs.end());
    using Places = std::map<std::pair<DeviceId, IndexMask>, std::set<std::int32_t>>; // summands
    std::map<std::pair<TensorId, Places>, std::size_t> known; // by places of the operator's own summands
    for (const OperatorId id : members) {
        const auto &outputs = m_graph.at(id).outputs;
        for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
            const TensorId tensor = outputs[slot];
            // Gradients of weights have accumulators of the step, unless they are cut in every micro-batch.
            if (!tensor || read.count(tensor) > 0
                || combinationOf(m_graph.at(id).annotation, slot) != Combination::Sum
                || (isWeightGradient(tensor)
                    && (!isCutByMicroBatch(tensor) || shardedWeight(m_graph.at(tensor).of, 2)->shard)))
                continue;
            Places places;
            bool several = false;
            for (const TransformedPart &part : m_transformed.operators[static_cast<std::size_t>(id.index)]) {
                auto &summands = places[{part.device, part.outputs[slot].index}];
                summands.insert(part.outputs[slot].value.index);
                several = several || summands.size() > 1;
            }
            const bool apart = std::all_of(places.begin(), places.end(), [&](const auto &a) {
                return std::all_of(places.begin(), places.end(), [&](const auto &b) {
                    return a.second == b.second || !intersection(a.first.second, b.first.second)
                        || std::none_of(a.second.begin(), a.second.end(),
                            [&](std::int32_t summand) { return b.second.count(summand) > 0; });
                });
            });
            if (!several || !apart)
                continue;
            const auto [it, fresh] = known.try_emplace({tensor, places}, m_sums.size());
            if (fresh)
                m_sums.push_back({.tensor = tensor});
            const std::int32_t base = m_transformed.summandBase[static_cast<std::size_t>(id.index)][slot];
            for (const auto &[where, summands] : places) {
                Holding &sum = m_sums[it->second].accumulators[where];
                sum.device = where.first;
                sum.box = where.second;
                SummandSet own;
                for (const std::int32_t summand : summands)
                    own.push_back(base + summand);
                sum.summands = unionOf(sum.summands, own);
            }
            m_sumOf[{id, slot}] = it->second;
        }
    }
}

/// Adds a part's output to its sum, if it has one.
bool Lowering::addToSum(const TensorView &view, DeviceId device, std::int32_t block, OperatorId op,
    std::size_t slot, std::int32_t summand, std::int32_t buffer)
{
    const auto found = m_sumOf.find({op, slot});
    if (found == m_sumOf.end())
        return false;
    TurnSum &own = m_sums[found->second];
    Holding &sum = own.accumulators.at({device, view.index});
    if (!own.added.emplace(device, view.index, summand).second)
        return true; // a replica on the same device made it already
    const DataType made = m_builder.buffer(device, buffer).dataType;
    const DataType kept = m_types.accumulated(view.tensor);
    if (made != kept && sizeOf(made) >= sizeOf(kept)) // adding widens by itself
        buffer = castBuffer(device, block, op, buffer, kept);
    if (sum.buffer < 0) {
        BufferInfo info{.tensor = view.tensor,
            .dataType = kept,
            .index = view.index,
            .summands = sum.summands,
            .memory = memoryOf(view.tensor)};
        if (static_cast<std::int32_t>(sum.summands.size()) == m_transformed.summands.count(view.tensor))
            info.summands.clear();
        const SegmentKind kind = m_builder.block(block).kind;
        info.perMicroBatch = isPass(kind);
        sum.buffer = m_builder.addBuffer(device, std::move(info));
    }
    m_builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {sum.buffer}});
    return true;
}

/// Says where the sums are, once the region is over.
void Lowering::handOutSums(std::int32_t block)
{
    for (TurnSum &own : m_sums)
        for (auto &[where, sum] : own.accumulators)
            if (sum.buffer >= 0)
                m_materializer.made(own.tensor, block, std::move(sum));
    m_sums.clear();
    m_sumOf.clear();
}

} // namespace planloom
