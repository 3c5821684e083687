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

/// How `views`, one of every unit, lie; nothing if they are neither the same nor side by side, all as long as
/// the first, but those at the end of what there is, which have what is left of it, or nothing.
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
            const std::int64_t end = views.back().index.ranges[d].end;
            const std::int64_t begin = a.begin + static_cast<std::int64_t>(u) * a.size();
            if ((shard.dimension >= 0 && shard.dimension != dimension) || end < a.end
                || b != Range{std::min(begin, end), std::min(begin + a.size(), end)})
                return std::nullopt;
            shard = {dimension, end - a.begin};
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

bool Specification::isComplete(TensorId tensor, const SummandSet &summands, const IndexMask &box) const
{
    if (summands.empty() || static_cast<std::int32_t>(summands.size()) == at(tensor).summandCount)
        return true;
    const auto &reach = at(tensor).reach;
    for (std::int32_t summand = 0; summand < at(tensor).summandCount; ++summand) {
        if (std::find(summands.begin(), summands.end(), summand) != summands.end())
            continue;
        if (!reach.contains(summand))
            return false;
        for (const IndexMask &made : reach.at(summand))
            if (const auto both = intersection(made, box); both && elementCount(shapeOf(*both)) > 0)
                return false;
    }
    return true;
}

Specification::Specification(const ExecutionPlan &plan)
    : m_operators(plan.graph->operators.size())
    , m_tensors(plan.graph->tensors.size())
    , m_types(*plan.graph, plan.precisions)
{
    const Graph &graph = *plan.graph;
    const std::vector<Combination> combinations = combinationsOf(graph);
    const std::vector<TensorId> weightTensors = weightTensorsOf(graph);
    for (std::size_t t = 0; t < m_tensors.size(); ++t) {
        m_tensors[t].combination = combinations[t];
        m_tensors[t].weightTensor = weightTensors[t];
    }
    const std::vector<bool> trained = trainedWeights(graph);
    for (std::size_t o = 0; o < m_operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        describe(plan, id);
        for (std::size_t slot = 0; slot < m_operators[o].inputs.size(); ++slot)
            m_operators[o].inputs[slot].staleness =
                stalenessOf(graph.at(id), slot, weightVersionsOf(plan, id), trained);
        noteOutputs(plan, id);
    }
    findEmptyParts(plan);
    for (std::size_t t = 0; t < m_tensors.size(); ++t) {
        if (const TensorId update = m_tensors[t].update)
            m_tensors[static_cast<std::size_t>(update.index)].replaced = {static_cast<std::int32_t>(t)};
        m_tensors[t].summandCount = std::max(m_tensors[t].summandCount, 1);
    }
    noteProblem(problemOfSlices(plan));
}

void Specification::noteProblem(const std::string &problem)
{
    if (m_problem.empty())
        m_problem = problem;
}

/// Its parts, and how they lie in all units and micro-batches.
void Specification::describe(const ExecutionPlan &plan, OperatorId id)
{
    const Graph &graph = *plan.graph;
    const auto o = static_cast<std::size_t>(id.index);
    const Operator &op = graph.at(id);
    const Partition &partition = plan.partitions[o];
    OperatorSpecification &own = m_operators[o];
    own.oncePerStep = op.direction == Direction::Optimizer || plan.batch.oncePerStep[o];
    own.inputs.resize(op.inputs.size());
    own.outputs.resize(op.outputs.size());
    std::vector<Range> first;
    std::vector<Range> last;
    if (!own.oncePerStep) {
        first = microBatchRanges(plan.batch, graph, id, 0, batchCuts(plan));
        last = microBatchRanges(plan.batch, graph, id, batchCuts(plan) - 1, batchCuts(plan));
    }
    const auto parts = static_cast<std::int32_t>(plan.placement[o].size());
    const std::int32_t shards = unitParts(partition);
    own.parts.reserve(static_cast<std::size_t>(parts));
    for (std::int32_t p = 0; p < parts; ++p) {
        PartViews views = partViews(graph, op, partition, p * shards, first);
        own.parts.push_back({std::move(views.inputs), std::move(views.outputs)});
    }
    std::vector<PartViews> byUnit; // of part 0
    for (std::int32_t unit = 0; unit < shards; ++unit)
        byUnit.push_back(partViews(graph, op, partition, unit, first));
    const auto noteShards = [&](std::vector<TensorView> PartViews::*views,
                                std::vector<SlotSpecification> &slots) {
        for (std::size_t slot = 0; slot < slots.size(); ++slot) {
            std::vector<TensorView> ofSlot;
            for (const PartViews &unit : byUnit)
                ofSlot.push_back((unit.*views)[slot]);
            const auto shard = shardOf(ofSlot);
            if (!shard)
                noteProblem("the units' shares of " + op.name + " do not lie side by side");
            slots[slot].shard = shard.value_or(ShardSpecification{});
        }
    };
    noteShards(&PartViews::inputs, own.inputs);
    noteShards(&PartViews::outputs, own.outputs);
    // They share the work out: what they make is theirs alone, or a summand.
    for (SlotSpecification &made : own.outputs)
        made.shard.partial = shards > 1 && made.shard.dimension < 0;
    const PartViews later = partViews(graph, op, partition, 0, last);
    const auto noteMoves = [&](const std::vector<TensorId> &tensors, const std::vector<TensorView> &before,
                               const std::vector<TensorView> &after, std::vector<SlotSpecification> &slots) {
        for (std::size_t slot = 0; slot < slots.size(); ++slot)
            if (tensors[slot] && !movesWithTensor(plan, before[slot], after[slot], slots[slot].moves))
                noteProblem(
                    "micro-batches of " + op.name + " do not match those of " + graph.at(tensors[slot]).name);
    };
    noteMoves(op.inputs, own.parts[0].inputs, later.inputs, own.inputs);
    noteMoves(op.outputs, own.parts[0].outputs, later.outputs, own.outputs);
}

/// What it makes of its tensors.
void Specification::noteOutputs(const ExecutionPlan &plan, OperatorId id)
{
    const Operator &op = plan.graph->at(id);
    OperatorSpecification &own = m_operators[static_cast<std::size_t>(id.index)];
    const bool inSlices = sliceCount(plan.partitions[static_cast<std::size_t>(id.index)]) > 1;
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (!op.outputs[slot])
            continue;
        TensorSpecification &tensor = m_tensors[static_cast<std::size_t>(op.outputs[slot].index)];
        const std::int32_t base = tensor.summandCount;
        own.outputs[slot].summandBase = base;
        tensor.summandCount += own.parts[0].outputs[slot].value.count;
        tensor.isMade = true;
        // A summand whose parts do not together hold all that the parts of others do is zero in what they
        // leave out.
        for (const PartSpecification &part : own.parts)
            if (inSlices)
                tensor.reach[base + part.outputs[slot].value.index].push_back(part.outputs[slot].index);
        // States carry the weight they belong to; which of them this one follows is told by the slots.
        if (op.direction == Direction::Optimizer && plan.graph->at(op.outputs[slot]).of)
            m_tensors[static_cast<std::size_t>(op.inputs[slot == 0 ? 0 : slot + 1].index)].update =
                op.outputs[slot];
    }
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
        const auto outer = at(id).oncePerStep ? std::vector<Range>{}
                                              : microBatchRanges(plan.batch, graph, id, 0, batchCuts(plan));
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
                    m_tensors[static_cast<std::size_t>(outputs[slot].tensor.index)]
                        .empty[at(id).outputs[slot].summandBase + outputs[slot].value.index]
                        .push_back(outputs[slot].index);
        }
    }
}

bool Specification::addsNothing(TensorId tensor, const IndexMask &box, std::int32_t summand) const
{
    const auto found = at(tensor).empty.find(summand);
    return found != at(tensor).empty.end()
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
        for (std::int32_t summand = 0; summand < at(tensor).summandCount; ++summand)
            all.push_back(summand);
    return std::includes(all.begin(), all.end(), made.begin(), made.end())
        && std::all_of(all.begin(), all.end(), [&](std::int32_t summand) {
               return std::binary_search(made.begin(), made.end(), summand)
                   || addsNothing(tensor, box, summand);
           });
}

} // namespace planloom
