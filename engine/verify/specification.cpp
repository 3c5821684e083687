#include "engine/verify/specification.h"

#include "engine/graph/partition.h"

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

/// The dimension along which `next`, unit 1's view, lies just behind `first`, unit 0's; -1 if they are the
/// same, nothing if they differ in another way.
std::optional<std::int32_t> shardOf(const TensorView &first, const TensorView &next)
{
    if (first == next)
        return -1;
    if (first.value != next.value)
        return std::nullopt;
    std::int32_t dimension = -1;
    for (std::size_t d = 0; d < first.index.ranges.size(); ++d) {
        const Range &a = first.index.ranges[d];
        const Range &b = next.index.ranges[d];
        if (a == b)
            continue;
        if (dimension >= 0 || b.begin != a.end || b.size() != a.size())
            return std::nullopt;
        dimension = static_cast<std::int32_t>(d);
    }
    return dimension;
}

} // namespace

Specification::Specification(const ExecutionPlan &plan)
    : m_types(*plan.graph, plan.precisions)
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

    for (std::size_t o = 0; o < operators; ++o) {
        const Operator &op = graph.operators[o];
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
        const PartViews next = partViews(graph, op, partition, shards > 1 ? 1 : 0, first);
        const auto noteShard = [&](const TensorView &a, const TensorView &b,
                                   std::vector<std::int32_t> &list) {
            const auto shard = shardOf(a, b);
            if (!shard && m_problem.empty())
                m_problem = "the units' shares of " + op.name + " do not lie side by side";
            list.push_back(shard.value_or(-1));
        };
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            noteShard(m_parts[o][0].inputs[slot], next.inputs[slot], m_inputShards[o]);
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            noteShard(m_parts[o][0].outputs[slot], next.outputs[slot], m_outputShards[o]);
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
            m_made[tensor] = true;
            if (op.direction == Direction::Optimizer && graph.tensors[tensor].of)
                // States carry the weight they belong to; which of them this one follows is told by the
                // slots.
                m_update[static_cast<std::size_t>(op.inputs[slot == 0 ? 0 : slot + 1].index)] =
                    op.outputs[slot];
        }
    }
    for (std::size_t t = 0; t < m_update.size(); ++t)
        if (m_update[t])
            m_replaced[static_cast<std::size_t>(m_update[t].index)] = {static_cast<std::int32_t>(t)};
    for (std::int32_t &count : m_summandCount)
        if (count == 0)
            count = 1;
}

} // namespace planloom
