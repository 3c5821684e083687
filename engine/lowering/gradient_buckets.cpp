#include "engine/lowering/gradient_buckets.h"

#include "engine/hardware/full_bucket.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace planloom {

GradientBuckets::GradientBuckets(LoweringWork &work, const LoweredBlocks &blocks)
    : m_work(work)
    , m_blocks(blocks)
    , m_accumulators(work.graph.tensors.size())
{
}

/// Whether each device may add all its summands of a weight's gradient up in one accumulator: not if the sets
/// that result would overlap without being equal, since such sums cannot be added to a whole any more.
bool GradientBuckets::joinsAccumulators(TensorId tensor)
{
    if (m_work.transformed.summands.count(tensor) <= 1)
        return true; // all make the same one
    const auto [it, fresh] = m_joinsAccumulators.try_emplace(tensor.index, true);
    if (!fresh)
        return it->second;
    std::map<std::pair<DeviceId, IndexMask>, std::set<std::int32_t>> sets;
    for (const OperatorId producer : m_work.uses.producers[at(tensor)]) {
        for (std::size_t slot = 0; slot < m_work.graph.at(producer).outputs.size(); ++slot)
            if (m_work.graph.at(producer).outputs[slot] == tensor)
                for (const TransformedPart &part : m_work.partsOf(producer))
                    sets[{part.device, part.outputs[slot].index}].insert(
                        m_work.summandOf(producer, slot, part.outputs[slot]));
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

void GradientBuckets::accumulate(TensorId tensor, DeviceId device, std::int32_t block, OperatorId op,
    const IndexMask &box, std::int32_t summand, std::int32_t buffer)
{
    auto &accumulators = m_accumulators[at(tensor)][device];
    const std::int32_t alone = joinsAccumulators(tensor) ? -1 : summand;
    auto found = std::find_if(accumulators.begin(), accumulators.end(),
        [&](const Accumulator &a) { return a.summand == alone && a.box == box; });
    if (found == accumulators.end()) {
        accumulators.push_back({.box = box, .summand = alone});
        found = accumulators.end() - 1;
    }
    Accumulator &accumulator = *found;
    const auto place = std::lower_bound(accumulator.summands.begin(), accumulator.summands.end(), summand);
    if (place != accumulator.summands.end() && *place == summand)
        return; // a replica on the same device made the same summand already
    accumulator.summands.insert(place, summand);
    if (accumulator.buffer < 0)
        accumulator.buffer = m_work.builder.addBuffer(device,
            {.tensor = tensor,
                .dataType = m_work.types.accumulated(tensor),
                .index = box,
                .perMicroBatch = false,
                .memory = MemoryKind::Gradient,
                .share = m_work.plan.units.isOne() ? UnitShare::Same : UnitShare::Partial});
    m_work.builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {accumulator.buffer}});
    noteCompletion(tensor, block);
}

void GradientBuckets::addShards(const std::vector<GradientShard> &shards, std::int32_t block)
{
    for (const GradientShard &shard : shards)
        addShard(shard, block);
    if (shards.empty())
        return;
    const std::int32_t mark = m_work.builder.mark(block);
    for (const GradientShard &shard : shards)
        m_complete[shard.gradient] = {{{block, mark}}};
}

void GradientBuckets::addShard(const GradientShard &shard, std::int32_t block)
{
    const auto &[gradient, device, op, box, buffer, ofUnits] = shard;
    auto &own = m_accumulators[at(gradient)][device];
    auto found = std::find_if(
        own.begin(), own.end(), [&shard](const Accumulator &each) { return each.box == shard.box; });
    if (found == own.end()) {
        BufferInfo info{.tensor = gradient,
            .dataType = m_work.types.accumulated(gradient),
            .index = box,
            .perMicroBatch = false,
            .memory = MemoryKind::Gradient,
            .share = m_work.plan.units.isOne() ? UnitShare::Same : UnitShare::Partial};
        if (ofUnits)
            ofUnits->mark(info);
        own.push_back(
            {.box = box, .buffer = m_work.builder.addBuffer(device, std::move(info)), .complete = true});
        found = own.end() - 1;
    }
    m_work.builder.emit(device, block,
        {.kind = InstructionKind::Accumulate, .op = op, .inputs = {buffer}, .outputs = {found->buffer}});
}

/// Notes that `block` adds to a gradient, whose other summands may come from elsewhere.
void GradientBuckets::noteCompletion(TensorId tensor, std::int32_t block)
{
    const auto [complete, first] = m_complete.try_emplace(tensor);
    auto &marks = complete->second.marks;
    if (first) {
        marks.push_back({block, -1}); // not yet: the operator at hand makes it, and is not done
        return;
    }
    const BlockInfo &now = m_work.builder.block(block);
    for (BlockMark &mark : marks) {
        const BlockInfo &other = m_work.builder.block(mark.block);
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

void GradientBuckets::markCompletions(OperatorId id, std::int32_t block)
{
    std::int32_t mark = -1;
    for (const TensorId output : m_blocks.shareOf(id, block).outputs) {
        const auto complete = output ? m_complete.find(output) : m_complete.end();
        if (complete == m_complete.end())
            continue;
        if (mark < 0)
            mark = m_work.builder.mark(block);
        for (BlockMark &each : complete->second.marks)
            if (each.block == block)
                each.mark = mark;
    }
}

std::vector<DeviceId> GradientBuckets::addersOf(TensorId gradient) const
{
    const auto &accumulators = m_accumulators[at(gradient)];
    const Accumulator &first = accumulators.begin()->second.front();
    std::vector<DeviceId> adders;
    for (const auto &[device, own] : accumulators)
        for (const Accumulator &accumulator : own)
            if (accumulator.box == first.box && (adders.empty() || accumulator.summands != first.summands))
                adders.push_back(device);
    return adders;
}

/// Seconds that the replicas take to add `bytes` of this gradient up: what decides when a bucket is full.
double GradientBuckets::reductionSeconds(TensorId tensor, Bytes bytes) const
{
    const DeviceId device = m_accumulators[at(tensor)].begin()->first;
    if (!m_work.plan.units.isOne())
        return m_work.costs.collective(
            CollectiveKind::AllReduce, bytes, shapeAcrossUnits(m_work.cluster, device));
    const std::vector<DeviceId> group = addersOf(tensor);
    return group.size() < 2
        ? 0
        : m_work.costs.collective(CollectiveKind::AllReduce, bytes, groupShape(m_work.cluster, group));
}

void GradientBuckets::reduce()
{
    fillBuckets();
    handOverSums();
}

std::vector<TensorId> GradientBuckets::inOrderOfCompletion() const
{
    std::vector<TensorId> inOrder;
    for (const auto &[tensor, complete] : m_complete)
        inOrder.push_back(tensor);
    std::stable_sort(inOrder.begin(), inOrder.end(), [this](TensorId a, TensorId b) {
        const Completion &x = m_complete.at(a);
        const Completion &y = m_complete.at(b);
        return x.atEnd() == y.atEnd() ? x.marks < y.marks : y.atEnd();
    });
    return inOrder;
}

void GradientBuckets::fillBuckets()
{
    const auto sameBlocks = [](const Completion &a, const Completion &b) {
        return std::equal(a.marks.begin(), a.marks.end(), b.marks.begin(), b.marks.end(),
            [](const BlockMark &x, const BlockMark &y) { return x.block == y.block; });
    };
    Bytes filled{};
    bool open = false;
    for (const TensorId tensor : inOrderOfCompletion()) {
        const Completion &complete = m_complete.at(tensor);
        if (!open || !sameBlocks(m_buckets.back().after, complete)) {
            const StageId stage = complete.atEnd() ? StageId{m_work.plan.stageCount - 1}
                                                   : m_work.builder.block(complete.marks.front().block).stage;
            m_buckets.push_back({m_work.builder.addBlock(
                                     SegmentKind::Reduce, stage, 1e6 + static_cast<double>(m_buckets.size())),
                complete});
            filled = {};
        }
        for (std::size_t i = 0; i < complete.marks.size(); ++i) {
            BlockMark &mark = m_buckets.back().after.marks[i];
            mark = std::max(mark, complete.marks[i]);
        }
        m_bucketOf[tensor] = static_cast<std::int32_t>(m_buckets.size()) - 1;
        const auto &[device, own] = *m_accumulators[at(tensor)].begin();
        if (!own.front().complete) // else there is nothing left to reduce
            filled += sizeOf(m_work.builder.buffer(device, own.front().buffer));
        open =
            complete.atEnd() || !isFullBucket(reductionSeconds(tensor, {}), reductionSeconds(tensor, filled));
    }
}

/// Hands what was added up to the reductions of the step.
void GradientBuckets::handOverSums()
{
    for (std::size_t index = 0; index < m_accumulators.size(); ++index) {
        const TensorId tensor{static_cast<std::int32_t>(index)};
        for (auto &[device, own] : m_accumulators[index]) {
            std::sort(own.begin(), own.end(), [](const Accumulator &a, const Accumulator &b) {
                return std::tie(a.box, a.summand) < std::tie(b.box, b.summand);
            });
            for (const auto &[box, alone, buffer, summands, complete] : own) {
                const bool all = complete
                    || static_cast<std::int32_t>(summands.size())
                        == m_work.transformed.summands.count(tensor);
                m_work.builder.setSummands(device, buffer, all ? SummandSet{} : summands);
                m_work.materializer.made(tensor, reductionOf(tensor), {device, box, summands, buffer});
            }
        }
    }
}

std::optional<std::int32_t> GradientBuckets::stageOf(TensorId gradient) const
{
    const auto complete = m_complete.find(gradient);
    if (complete == m_complete.end())
        return std::nullopt;
    return complete->second.atEnd() ? m_work.plan.stageCount
                                    : m_work.builder.block(complete->second.marks.front().block).stage.index;
}

std::int32_t GradientBuckets::bucketOf(TensorId gradient) const
{
    const auto bucket = m_bucketOf.find(gradient);
    return bucket == m_bucketOf.end() ? -1 : bucket->second;
}

void GradientBuckets::handOver(MaterializedPlan &materialized) const
{
    for (const Bucket &bucket : m_buckets)
        materialized.reductions.push_back({bucket.block, bucket.after.marks});
    for (const auto &[gradient, bucket] : m_bucketOf)
        materialized.reductions[at(bucket)].gradients.push_back(gradient);
}

} // namespace planloom
