#include "engine/hardware/full_bucket.h"
#include "engine/lowering/lowering.h"

#include <algorithm>
#include <tuple>

namespace planloom {

/// Whether each device may add all its summands of a weight's gradient up in one accumulator: not if the sets
/// that result would overlap without being equal, since such sums cannot be added to a whole any more.
bool Lowering::joinsAccumulators(TensorId tensor)
{
    if (m_transformed.summands.count(tensor) <= 1)
        return true; // all make the same one
    const auto [it, fresh] = m_joinsAccumulators.try_emplace(tensor.index, true);
    if (!fresh)
        return it->second;
    std::map<std::pair<DeviceId, IndexMask>, std::set<std::int32_t>> sets;
    for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(tensor.index)]) {
        const auto o = static_cast<std::size_t>(producer.index);
        for (std::size_t slot = 0; slot < m_graph.at(producer).outputs.size(); ++slot)
            if (m_graph.at(producer).outputs[slot] == tensor)
                for (const TransformedPart &part : m_transformed.operators[o])
                    sets[{part.device, part.outputs[slot].index}].insert(
                        m_transformed.summandBase[o][slot] + part.outputs[slot].value.index);
    }
    std::set<std::pair<IndexMask, std::set<std::int32_t>>> distinct; // replicas on many devices make the same
    for (auto &[where, summands] : sets)
        distinct.emplace(where.second, std::move(summands));
    for (auto a = distinct.begin(); a != distinct.end(); ++a)
        for (auto b = std::next(a); b != distinct.end(); ++b) {
            if (a->second == b->second || !intersection(a->first, b->first))
                continue;
            for (const std::int32_t summand : a->second)
                if (b->second.count(summand) > 0)
                    return it->second = false;
        }
    return true;
}

void Lowering::accumulate(TensorId tensor, DeviceId device, std::int32_t block, OperatorId op,
    const IndexMask &box, std::int32_t summand, std::int32_t buffer)
{
    auto &accumulators = m_accumulators[static_cast<std::size_t>(tensor.index)][device];
    const std::int32_t alone = joinsAccumulators(tensor) ? -1 : summand;
    auto found = std::find_if(accumulators.begin(), accumulators.end(),
        [&](const Accumulator &a) { return a.summand == alone && a.box == box; });
    if (found == accumulators.end()) {
        accumulators.push_back({.box = box, .summand = alone});
        found = accumulators.end() - 1;
    }
    Accumulator &accumulator = *found;
    const auto at = std::lower_bound(accumulator.summands.begin(), accumulator.summands.end(), summand);
    if (at != accumulator.summands.end() && *at == summand)
        return; // a replica on the same device made the same summand already
    accumulator.summands.insert(at, summand);
    if (accumulator.buffer < 0)
        accumulator.buffer = m_builder.addBuffer(device,
            {.tensor = tensor,
                .dataType = m_types.accumulated(tensor),
                .index = box,
                .perMicroBatch = false,
                .memory = MemoryKind::Gradient,
                .share = m_plan.units.isOne() ? UnitShare::Same : UnitShare::Partial});
    m_builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {accumulator.buffer}});
    noteCompletion(tensor, block);
}

/// Notes that `block` adds to a gradient, whose other summands may come from elsewhere.
void Lowering::noteCompletion(TensorId tensor, std::int32_t block)
{
    const auto [complete, first] = m_complete.try_emplace(tensor);
    auto &marks = complete->second.marks;
    if (first) {
        marks.push_back({block, -1}); // not yet: the operator at hand makes it, and is not done
        return;
    }
    const BlockInfo &now = m_builder.block(block);
    for (BlockMark &mark : marks) {
        const BlockInfo &other = m_builder.block(mark.block);
        if (other.kind != now.kind || other.stage != now.stage) {
            marks.clear();
            return;
        }
        // Slices of one pass run one behind the other: the last of them completes it.
        if (other.lane == now.lane) {
            mark = {block, -1};
            return;
        }
    }
    if (!marks.empty())
        marks.push_back({block, -1});
}

/// The gradients that this operator adds to are complete behind it, unless another one adds to them too.
void Lowering::markCompletions(OperatorId id, std::int32_t block)
{
    std::int32_t mark = -1;
    for (const TensorId output : shareOf(id, block).outputs) {
        const auto complete = output ? m_complete.find(output) : m_complete.end();
        if (complete == m_complete.end())
            continue;
        if (mark < 0)
            mark = m_builder.mark(block);
        for (BlockMark &each : complete->second.marks)
            if (each.block == block)
                each.mark = mark;
    }
}

/// The devices that hold summands of one part of a gradient, each others.
std::vector<DeviceId> Lowering::addersOf(TensorId gradient) const
{
    const auto &accumulators = m_accumulators[static_cast<std::size_t>(gradient.index)];
    const Accumulator &first = accumulators.begin()->second.front();
    std::vector<DeviceId> adders;
    for (const auto &[device, own] : accumulators)
        for (const Accumulator &accumulator : own)
            if (accumulator.box == first.box && (adders.empty() || accumulator.summands != first.summands))
                adders.push_back(device);
    return adders;
}

/// Seconds that the replicas take to add `bytes` of this gradient up: what decides when a bucket is full.
double Lowering::gradientSeconds(TensorId tensor, Bytes bytes) const
{
    const DeviceId device = m_accumulators[static_cast<std::size_t>(tensor.index)].begin()->first;
    if (!m_plan.units.isOne())
        return m_costs.collective(CollectiveKind::AllReduce, bytes, shapeAcrossUnits(m_cluster, device));
    const std::vector<DeviceId> group = addersOf(tensor);
    return group.size() < 2
        ? 0
        : m_costs.collective(CollectiveKind::AllReduce, bytes, groupShape(m_cluster, group));
}

/// Sorts gradients into buckets, in the order in which the backward pass completes them, each until it is
/// full
/// (`isFullBucket`).
void Lowering::fillBuckets()
{
    std::vector<TensorId> inOrder;
    for (const auto &[tensor, complete] : m_complete)
        inOrder.push_back(tensor);
    std::stable_sort(inOrder.begin(), inOrder.end(), [this](TensorId a, TensorId b) {
        const Completion &x = m_complete.at(a);
        const Completion &y = m_complete.at(b);
        return x.atEnd() == y.atEnd() ? x.marks < y.marks : y.atEnd();
    });
    const auto sameBlocks = [](const Completion &a, const Completion &b) {
        return std::equal(a.marks.begin(), a.marks.end(), b.marks.begin(), b.marks.end(),
            [](const BlockMark &x, const BlockMark &y) { return x.block == y.block; });
    };
    Bytes filled{};
    bool open = false;
    for (const TensorId tensor : inOrder) {
        const Completion &complete = m_complete.at(tensor);
        if (!open || !sameBlocks(m_buckets.back().after, complete)) {
            const StageId stage = complete.atEnd() ? StageId{m_plan.stageCount - 1}
                                                   : m_builder.block(complete.marks.front().block).stage;
            m_buckets.push_back(
                {m_builder.addBlock(SegmentKind::Reduce, stage, 1e6 + static_cast<double>(m_buckets.size())),
                    complete});
            filled = {};
        }
        for (std::size_t i = 0; i < complete.marks.size(); ++i) {
            BlockMark &mark = m_buckets.back().after.marks[i];
            mark = std::max(mark, complete.marks[i]);
        }
        m_bucketOf[tensor] = static_cast<std::int32_t>(m_buckets.size()) - 1;
        const auto &[device, own] = *m_accumulators[static_cast<std::size_t>(tensor.index)].begin();
        if (!own.front().complete) // else there is nothing left to reduce
            filled += sizeOf(m_builder.buffer(device, own.front().buffer));
        open =
            complete.atEnd() || !isFullBucket(gradientSeconds(tensor, {}), gradientSeconds(tensor, filled));
    }
}

/// Hands what was added up to the reductions of the step.
void Lowering::reduceAccumulators()
{
    for (std::size_t index = 0; index < m_accumulators.size(); ++index) {
        const TensorId tensor{static_cast<std::int32_t>(index)};
        for (auto &[device, own] : m_accumulators[index]) {
            std::sort(own.begin(), own.end(), [](const Accumulator &a, const Accumulator &b) {
                return std::tie(a.box, a.summand) < std::tie(b.box, b.summand);
            });
            for (const auto &[box, alone, buffer, summands, complete] : own) {
                const bool all = complete
                    || static_cast<std::int32_t>(summands.size()) == m_transformed.summands.count(tensor);
                m_builder.setSummands(device, buffer, all ? SummandSet{} : summands);
                m_materializer.made(tensor, m_buckets[static_cast<std::size_t>(m_bucketOf.at(tensor))].block,
                    {device, box, summands, buffer});
            }
        }
    }
}

} // namespace planloom
