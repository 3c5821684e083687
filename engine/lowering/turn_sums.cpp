#include "engine/lowering/turn_sums.h"

#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>

namespace planloom {

TurnSums::TurnSums(LoweringWork &work, CutGradients &cut)
    : m_work(work)
    , m_cut(cut)
{
}

/// A device makes several summands of one box, and boxes that meet have the same summands or none in common.
bool TurnSums::areSeveralApart(const Places &places)
{
    const auto isAny = [](const std::set<std::int32_t> &a, const std::set<std::int32_t> &b) {
        return std::any_of(a.begin(), a.end(), [&](std::int32_t summand) { return b.contains(summand); });
    };
    return std::any_of(places.begin(), places.end(), [](const auto &a) { return a.second.size() > 1; })
        && std::all_of(places.begin(), places.end(), [&](const auto &a) {
               return std::all_of(places.begin(), places.end(), [&](const auto &b) {
                   return a.second == b.second || !intersection(a.first.second, b.first.second)
                       || !isAny(a.second, b.second);
               });
           });
}

/// Gradients of weights have accumulators of the step, unless they are cut in every micro-batch.
bool TurnSums::mayAdd(OperatorId id, std::size_t slot)
{
    const Operator &op = m_work.graph.at(id);
    const TensorId tensor = op.outputs[slot];
    return tensor && combinationOf(op.annotation, slot) == Combination::Sum
        && (!m_work.isWeightGradient(tensor) || m_cut.isCutInUnit(tensor));
}

TurnSums::Places TurnSums::placesOf(OperatorId id, std::size_t slot) const
{
    Places places;
    for (const TransformedPart &part : m_work.partsOf(id)) {
        const TensorView &made = part.outputs[slot];
        places[{part.device, made.index}].insert(made.value.index);
    }
    return places;
}

void TurnSums::choose(const std::vector<OperatorId> &members)
{
    m_sums.clear();
    m_sumOf.clear();
    std::set<TensorId> read;
    for (const OperatorId id : members)
        read.insert(m_work.graph.at(id).inputs.begin(), m_work.graph.at(id).inputs.end());
    std::map<std::pair<TensorId, Places>, std::size_t> known;
    for (const OperatorId id : members) {
        const auto &outputs = m_work.graph.at(id).outputs;
        for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
            if (read.contains(outputs[slot]) || !mayAdd(id, slot))
                continue;
            const Places places = placesOf(id, slot);
            if (!areSeveralApart(places))
                continue;
            const auto [it, fresh] = known.try_emplace({outputs[slot], places}, m_sums.size());
            if (fresh)
                m_sums.push_back({.tensor = outputs[slot]});
            const std::int32_t base = m_work.transformed.summandBase[at(id)][slot];
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

bool TurnSums::add(const TensorView &view, DeviceId device, std::int32_t block, OperatorId op,
    std::size_t slot, std::int32_t summand, std::int32_t buffer)
{
    const auto found = m_sumOf.find({op, slot});
    if (found == m_sumOf.end())
        return false;
    Sum &own = m_sums[found->second];
    Holding &sum = own.accumulators.at({device, view.index});
    if (!own.added.emplace(device, view.index, summand).second)
        return true; // a replica on the same device made it already
    const DataType made = m_work.builder.buffer(device, buffer).dataType;
    const DataType kept = m_work.types.accumulated(view.tensor);
    if (made != kept && sizeOf(made) >= sizeOf(kept)) // adding widens by itself
        buffer = m_work.castBuffer(device, block, op, buffer, kept);
    if (sum.buffer < 0) {
        BufferInfo info{.tensor = view.tensor,
            .dataType = kept,
            .index = view.index,
            .summands = sum.summands,
            .memory = m_work.memoryOf(view.tensor)};
        if (static_cast<std::int32_t>(sum.summands.size()) == m_work.transformed.summands.count(view.tensor))
            info.summands.clear();
        info.perMicroBatch = m_work.runsInMicroBatches(block);
        sum.buffer = m_work.builder.addBuffer(device, std::move(info));
    }
    m_work.builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {sum.buffer}});
    return true;
}

void TurnSums::handOut(std::int32_t block)
{
    for (Sum &own : m_sums)
        for (auto &[where, sum] : own.accumulators)
            if (sum.buffer >= 0)
                m_work.materializer.made(own.tensor, block, std::move(sum));
    m_sums.clear();
    m_sumOf.clear();
}

} // namespace planloom
