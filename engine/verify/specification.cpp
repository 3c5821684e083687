#include "engine/verify/specification.h"

#include "engine/graph/annotation/partition.h"
#include "engine/graph/operators/attention.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

/// Does `last`, the view of the last micro-batch, lie where a buffer of the tensor lies then? Sets `moves` if
/// that is elsewhere than in micro-batch 0.
bool movesWithTensor(const ExecutionPlan &plan, const TensorView &first, const TensorView &last, bool &moves)
{
    moves = first.index != last.index;
    if (!moves)
        return true;
    BufferInfo buffer;
    buffer.tensor = first.tensor;
    buffer.index = first.index;
    return boxOf(plan, buffer, plan.microBatches - 1, plan.units.count - 1) == last.index;
}

/// How `views`, one of every unit, lie; nothing if they are neither the same nor side by side, all but the
/// last as long as the first.
std::optional<ShardSpecification> shardOf(const std::vector<TensorView> &views)
{
    ShardSpecification shard;
    const TensorView &first = views.front();
    for (std::size_t u = 1; u < views.size(); ++u) {
        const TensorView &next = views[u];
        if (next.value != first.value || next.tensor != first.tensor)
            return std::nullopt;
        for (std::size_t d = 0; d < first.index.ranges.size(); ++d) {
            const Range &a = first.index.ranges[d];
            const Range &b = next.index.ranges[d];
            const auto dimension = static_cast<std::int32_t>(d);
            if (a == b && shard.dimension != dimension)
                continue;
            const bool last = u + 1 == views.size();
            if ((shard.dimension >= 0 && shard.dimension != dimension)
                || b.begin != a.begin + static_cast<std::int64_t>(u) * a.size() || b.size() < 1
                || (last ? b.size() > a.size() : b.size() != a.size()))
                return std::nullopt;
            shard = {dimension, b.end - a.begin};
        }
        if (shard.dimension < 0 && u > 1)
            break; // the same twice: for all of them
    }
    return shard;
}

/// Slices that leave keys out are of queries that see none of them: a sentence if not.
std::string problemOfSlices(const ExecutionPlan &plan)
{
    for (std::size_t o = 0; o < plan.partitions.size(); ++o) {
        const Operator &op = plan.graph->operators[o];
        const auto axes = attentionAxes(op);
        const Partition &partition = plan.partitions[o];
        if (sliceCount(partition) == 1 || !axes)
            continue;
        const AttentionReach reach = attentionReach(op.attributes);
        const auto q = static_cast<std::size_t>(axes->query);
        const auto k = static_cast<std::size_t>(axes->key);
        const std::int64_t keys = op.annotation.dimensions[k].size;
        const Partition slices{{partition.splits[blockSplits(partition) - 1]}};
        for (std::int32_t slice = 0; slice < partCount(slices); ++slice) {
            const PartBox box = partBox(op, slices, slice);
            for (std::int64_t query = box.ranges[q].begin; query < box.ranges[q].end; ++query) {
                const Range seen = reach.keysOf(query, keys);
                if (seen.size() > 0 && (seen.begin < box.ranges[k].begin || seen.end > box.ranges[k].end))
                    return "slice " + std::to_string(slice) + " of " + op.name
                        + " leaves out keys that its queries see";
            }
        }
    }
    return {};
}

} // namespace

/// A summand whose parts do not together hold all that the parts of others do is zero in what they leave out.
void Specification::noteReach(TensorId tensor, OperatorId op, std::size_t slot)
{
    std::map<std::int32_t, std::vector<IndexMask>> boxes;
    for (const PartSpecification &part : m_parts[static_cast<std::size_t>(op.index)])
        boxes[summandBase(op, slot) + part.outputs[slot].value.index].push_back(part.outputs[slot].index);
    for (auto &[summand, made] : boxes)
        m_reach[tensor][summand] = std::move(made);
}

bool Specification::isComplete(TensorId tensor, const SummandSet &summands, const IndexMask &box) const
{
    if (summands.empty() || static_cast<std::int32_t>(summands.size()) == summandCount(tensor))
        return true;
    const auto reach = m_reach.find(tensor);
    for (std::int32_t summand = 0; summand < summandCount(tensor); ++summand) {
        if (std::find(summands.begin(), summands.end(), summand) != summands.end())
            continue;
        if (reach == m_reach.end() || !reach->second.contains(summand))
            return false;
        for (const IndexMask &made : reach->second.at(summand))
            if (const auto both = intersection(made, box); both && elementCount(shapeOf(*both)) > 0)
                return false;
    }
    return true;
}

Specification::Specification(const ExecutionPlan &plan)
    : m_combination(combinationsOf(*plan.graph))
    , m_weightTensor(weightTensorsOf(*plan.graph))
    , m_types(*plan.graph, plan.precisions)
{
    const Graph &graph = *plan.graph;
    const std::size_t operators = graph.operators.size();
    m_parts.resize(operators);
    m_once.resize(operators);
    m_summandBase.resize(operators);
    m_inputMoves.resize(operators);
    m_outputMoves.resize(operators);
    m_inputShards.resize(operators);
    m_outputShards.resize(operators);
    m_summandCount.assign(graph.tensors.size(), 0);
    m_made.assign(graph.tensors.size(), false);
    m_update.assign(graph.tensors.size(), TensorId{});
    m_replaced.assign(graph.tensors.size(), TensorId{});

    const std::vector<bool> trained = trainedWeights(graph);
    m_staleness.resize(operators);
    for (std::size_t o = 0; o < operators; ++o) {
        const Operator &op = graph.operators[o];
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            m_staleness[o].push_back(
                stalenessOf(op, slot, weightVersionsOf(plan, {static_cast<std::int32_t>(o)}), trained));
        const OperatorId id{static_cast<std::int32_t>(o)};
        const Partition &partition = plan.partitions[o];
        m_once[o] = op.direction == Direction::Optimizer || plan.batch.oncePerStep[o];
        std::vector<Range> first;
        std::vector<Range> last;
        if (!m_once[o]) {
            first = microBatchRanges(plan.batch, graph, id, 0, batchCuts(plan));
            last = microBatchRanges(plan.batch, graph, id, batchCuts(plan) - 1, batchCuts(plan));
        }
        const auto parts = static_cast<std::int32_t>(plan.placement[o].size());
        const std::int32_t shards = unitParts(partition);
        m_parts[o].reserve(static_cast<std::size_t>(parts));
        for (std::int32_t p = 0; p < parts; ++p) {
            PartViews views = partViews(graph, op, partition, p * shards, first);
            m_parts[o].push_back({std::move(views.inputs), std::move(views.outputs)});
        }
        const PartViews later = partViews(graph, op, partition, 0, last);
        std::vector<PartViews> byUnit; // of part 0
        for (std::int32_t unit = 0; unit < shards; ++unit)
            byUnit.push_back(partViews(graph, op, partition, unit, first));
        const auto noteShards = [&](std::size_t slots, std::vector<TensorView> PartViews::*views,
                                    std::vector<ShardSpecification> &list) {
            for (std::size_t slot = 0; slot < slots; ++slot) {
                std::vector<TensorView> ofSlot;
                for (const PartViews &unit : byUnit)
                    ofSlot.push_back((unit.*views)[slot]);
                const auto shard = shardOf(ofSlot);
                if (!shard && m_problem.empty())
                    m_problem = "the units' shares of " + op.name + " do not lie side by side";
                list.push_back(shard.value_or(ShardSpecification{}));
            }
        };
        noteShards(op.inputs.size(), &PartViews::inputs, m_inputShards[o]);
        noteShards(op.outputs.size(), &PartViews::outputs, m_outputShards[o]);
        // They share the work out: what they make is theirs alone, or a summand.
        for (ShardSpecification &made : m_outputShards[o])
            made.partial = shards > 1 && made.dimension < 0;
        const auto check = [&](TensorId tensor, const TensorView &a, const TensorView &b,
                               std::vector<bool> &list) {
            bool moves = false;
            if (tensor && !movesWithTensor(plan, a, b, moves) && m_problem.empty())
                m_problem = "micro-batches of " + op.name + " do not match those of " + graph.at(tensor).name;
            list.push_back(moves);
        };
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            check(op.inputs[slot], m_parts[o][0].inputs[slot], later.inputs[slot], m_inputMoves[o]);
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            check(op.outputs[slot], m_parts[o][0].outputs[slot], later.outputs[slot], m_outputMoves[o]);
            m_summandBase[o].push_back(0);
            if (!op.outputs[slot])
                continue;
            const auto tensor = static_cast<std::size_t>(op.outputs[slot].index);
            m_summandBase[o].back() = m_summandCount[tensor];
            m_summandCount[tensor] += m_parts[o][0].outputs[slot].value.count;
            if (sliceCount(partition) > 1)
                noteReach(op.outputs[slot], id, slot);
            m_made[tensor] = true;
            if (op.direction == Direction::Optimizer && graph.tensors[tensor].of)
                // States carry the weight they belong to; which of them this one follows is told by the
                // slots.
                m_update[static_cast<std::size_t>(op.inputs[slot == 0 ? 0 : slot + 1].index)] =
                    op.outputs[slot];
        }
    }
    findEmptyParts(plan);
    for (std::size_t t = 0; t < m_update.size(); ++t)
        if (m_update[t])
            m_replaced[static_cast<std::size_t>(m_update[t].index)] = {static_cast<std::int32_t>(t)};
    if (m_problem.empty())
        m_problem = problemOfSlices(plan);
    for (std::int32_t &count : m_summandCount)
        if (count == 0)
            count = 1;
}

/// Parts of attentions that causality or a window leaves nothing to see, if all that they make are summands.
void Specification::findEmptyParts(const ExecutionPlan &plan)
{
    const Graph &graph = *plan.graph;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        const AttentionSequences sequences = attentionSequences(op);
        const std::int32_t batch = plan.batch.operatorDimension[o];
        if (!sequences.areSplittable() || partCount(id) < 2 || batch == sequences.queries
            || batch == sequences.keys)
            continue;
        const auto outer =
            m_once[o] ? std::vector<Range>{} : microBatchRanges(plan.batch, graph, id, 0, batchCuts(plan));
        for (std::int32_t p = 0; p < partCount(id); ++p) {
            const auto &outputs = part(id, p).outputs;
            bool summands = true;
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                summands = summands
                    && (!outputs[slot].tensor || outputs[slot].value.count > 1
                        || (static_cast<std::int32_t>(slot) == probabilitiesOutput(op)
                            && attentionOf(plan, id) == AttentionMode::Fused));
            if (!summands || !seesNothing(op, partBox(op, plan.partitions[o], p, outer).ranges))
                continue;
            m_seesNothing.insert({id, p});
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                if (outputs[slot].tensor)
                    m_empty[{outputs[slot].tensor, summandBase(id, slot) + outputs[slot].value.index}]
                        .push_back(outputs[slot].index);
        }
    }
}

bool Specification::addsNothing(TensorId tensor, const IndexMask &box, std::int32_t summand) const
{
    const auto found = m_empty.find({tensor, summand});
    return found != m_empty.end()
        && std::any_of(found->second.begin(), found->second.end(),
            [&](const IndexMask &empty) { return contains(empty, box); });
}

bool Specification::holdsAs(
    TensorId tensor, const IndexMask &box, const SummandSet &made, const SummandSet &said) const
{
    if (made == said)
        return true;
    if (made.empty())
        return false;
    SummandSet all = said;
    if (all.empty())
        for (std::int32_t summand = 0; summand < summandCount(tensor); ++summand)
            all.push_back(summand);
    return std::includes(all.begin(), all.end(), made.begin(), made.end())
        && std::all_of(all.begin(), all.end(), [&](std::int32_t summand) {
               return std::binary_search(made.begin(), made.end(), summand)
                   || addsNothing(tensor, box, summand);
           });
}

} // namespace planloom
