#include "engine/lowering/order/order_communication.h"

#include "engine/table/table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace planloom {

namespace {

bool movesRuns(const CommunicationOrder &order)
{
    return order.part != CommunicationPart::Gathers;
}

const BlockInfo &blockAt(const MaterializedPlan &materialized, std::int32_t block)
{
    return materialized.blocks[static_cast<std::size_t>(block)];
}

/// Gradients of the weights that operators read, or make gradients of.
std::set<TensorId> gradientsOf(const Graph &graph, const std::vector<OperatorId> &operators)
{
    std::set<TensorId> weights;
    const auto isWeight = [&](TensorId tensor) {
        return tensor && graph.at(tensor).role == TensorRole::Weight;
    };
    for (const OperatorId id : operators) {
        for (const TensorId input : graph.at(id).inputs)
            if (isWeight(input))
                weights.insert(input);
        for (const TensorId output : graph.at(id).outputs)
            if (output && isWeight(graph.at(output).of))
                weights.insert(graph.at(output).of);
    }
    std::set<TensorId> gradients;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        if (graph.tensors[t].role == TensorRole::Gradient && weights.contains(graph.tensors[t].of))
            gradients.insert(TensorId{static_cast<std::int32_t>(t)});
    return gradients;
}

/// The blocks that one side of an order is about, ascending: those with something to run.
std::vector<std::int32_t> blocksOf(const MaterializedPlan &materialized, const Graph &graph,
    CommunicationPart part, const std::vector<OperatorId> &operators)
{
    std::set<std::int32_t> passes;
    for (const OperatorId op : operators)
        for (const std::int32_t block : materialized.blocksOf[static_cast<std::size_t>(op.index)])
            passes.insert(block);
    std::set<std::int32_t> blocks;
    switch (part) {
    case CommunicationPart::None:
    case CommunicationPart::Gathers:
        blocks = std::move(passes);
        break;
    case CommunicationPart::Sends:
        for (std::size_t b = 0; b < materialized.blocks.size(); ++b)
            if (materialized.blocks[b].kind == SegmentKind::Transfer
                && passes.contains(materialized.blocks[b].source))
                blocks.insert(static_cast<std::int32_t>(b));
        break;
    case CommunicationPart::Reductions: {
        const std::set<TensorId> gradients = gradientsOf(graph, operators);
        for (const ReductionPlace &reduction : materialized.reductions)
            if (std::any_of(reduction.gradients.begin(), reduction.gradients.end(),
                    [&](TensorId gradient) { return gradients.contains(gradient); }))
                blocks.insert(reduction.block);
        break;
    }
    }
    std::vector<std::int32_t> result;
    for (const std::int32_t block : blocks)
        if (!blockAt(materialized, block).devices.empty())
            result.push_back(block);
    return result;
}

bool shareDevices(const BlockInfo &a, const BlockInfo &b)
{
    return std::any_of(a.devices.begin(), a.devices.end(), [&](DeviceId device) {
        return std::find(b.devices.begin(), b.devices.end(), device) != b.devices.end();
    });
}

Error refused(const CommunicationOrder &order, std::string message, std::string advice)
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), placeOf(order.row, "rule")};
}

/// The runs of a step as a graph: what must come before what, sorted anew with as little moved as possible.
class RunSorter
{
public:
    RunSorter(const MaterializedPlan &materialized, const Plan &plan, std::vector<BlockRun> order)
        : m_materialized(materialized)
        , m_plan(plan)
        , m_order(std::move(order))
        , m_next(m_order.size())
        , m_waiting(m_order.size(), 0)
    {
        for (std::size_t i = 0; i < m_order.size(); ++i)
            m_runs[{m_order[i].block, m_order[i].microBatch}].push_back(i);
    }

    Result<std::vector<BlockRun>> run()
    {
        linkDataFlow();
        for (const CommunicationOrder &order : m_plan.communicationOrders)
            if (movesRuns(order))
                TRY_VOID(link(order));
        return sorted();
    }

private:
    using Edge = std::pair<std::size_t, std::size_t>;

    const BlockInfo &blockOf(std::size_t run) const { return blockAt(m_materialized, m_order[run].block); }

    void link(std::size_t from, std::size_t to)
    {
        m_next[from].push_back(to);
        ++m_waiting[to];
    }

    /// Every device computes in its order; transfers stand between their source and their target; a reduction
    /// behind what its devices computed before it; updates behind all that did.
    void linkDataFlow()
    {
        std::map<DeviceId, std::size_t> computed; // by device: its last run that computes
        std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> sent; // by target
        std::vector<std::size_t> once; // reductions and updates so far
        for (std::size_t i = 0; i < m_order.size(); ++i) {
            const BlockInfo &block = blockOf(i);
            if (block.kind == SegmentKind::Transfer) {
                if (const auto source = m_runs.find({block.source, m_order[i].microBatch});
                    source != m_runs.end())
                    for (const std::size_t run : source->second)
                        link(run, i);
                sent[{block.target, m_order[i].microBatch}].push_back(i);
                continue;
            }
            for (const DeviceId device : block.devices)
                if (const auto before = computed.find(device); before != computed.end())
                    link(before->second, i);
            if (block.kind == SegmentKind::Optimizer)
                for (const std::size_t run : once)
                    link(run, i);
            if (block.kind == SegmentKind::Optimizer || block.kind == SegmentKind::Reduce)
                once.push_back(i);
            if (block.kind == SegmentKind::Reduce)
                continue;
            for (const DeviceId device : block.devices)
                computed[device] = i;
            if (const auto arrived = sent.find({m_order[i].block, m_order[i].microBatch});
                arrived != sent.end())
                for (const std::size_t transfer : arrived->second)
                    link(transfer, i);
        }
    }

    /// Runs of a side's block for one micro-batch of the plan; of what runs once in a step, its only ones.
    std::vector<std::size_t> runsOf(std::int32_t block, std::int32_t microBatch) const
    {
        const SegmentKind kind = blockAt(m_materialized, block).kind;
        const auto found =
            m_runs.find({block, isPass(kind) || kind == SegmentKind::Transfer ? microBatch : 0});
        return found == m_runs.end() ? std::vector<std::size_t>{} : found->second;
    }

    Result<void> link(const CommunicationOrder &order)
    {
        const Graph &graph = *m_plan.graph;
        const auto mine = blocksOf(m_materialized, graph, order.part, order.first);
        const auto theirs = blocksOf(m_materialized, graph, order.secondPart, order.second);
        if (mine.empty())
            return refused(order,
                order.part == CommunicationPart::Sends
                    ? "the selected operators' stages send nothing"
                    : "no gradients of the selected operators are reduced behind their backward pass",
                "remove the row, or select others");
        if (theirs.empty())
            return refused(order,
                order.secondPart == CommunicationPart::None ? "the second selection runs nowhere"
                    : order.secondPart == CommunicationPart::Sends
                    ? "the stages of the second selection send nothing"
                    : "no gradients of the second selection are reduced",
                "remove the row, or select others");
        const bool once =
            order.part == CommunicationPart::Reductions || order.secondPart == CommunicationPart::Reductions;
        if (once && m_plan.updates > 1)
            return refused(order, "a step of several updates reduces the gradients of each as soon as it can",
                "remove the row, or update once in a step");
        bool meet = false;
        bool any = false;
        for (const std::int32_t a : mine)
            for (const std::int32_t b : theirs) {
                if (a == b && order.microBatchOffset == 0) {
                    if (order.part == CommunicationPart::Reductions)
                        return refused(order, "both selections have gradients in one bucket, reduced at once",
                            "select layers that lie further apart");
                    continue;
                }
                any = true;
                meet = meet || shareDevices(blockAt(m_materialized, a), blockAt(m_materialized, b));
                for (std::int32_t i = 0; i < m_plan.microBatches; ++i) {
                    const std::int32_t j = once ? i : i + order.microBatchOffset;
                    if ((order.microBatch >= 0 && i != order.microBatch) || j < 0 || j >= m_plan.microBatches)
                        continue;
                    // A reduction's only run counts as one of the last micro-batch.
                    if (once && order.before && order.microBatch < 0 && i + 1 < m_plan.microBatches)
                        continue;
                    for (const std::size_t x : runsOf(a, i))
                        for (const std::size_t y : runsOf(b, j))
                            m_asked.emplace_back(order.before ? Edge{x, y} : Edge{y, x}, &order);
                }
            }
        if (any && !meet)
            return refused(order, "no device runs both: nothing holds one up for the other",
                "order communication by what its own devices run");
        return {};
    }

    Result<std::vector<BlockRun>> sorted()
    {
        for (const auto &[edge, order] : m_asked)
            link(edge.first, edge.second);
        std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
        for (std::size_t i = 0; i < m_order.size(); ++i)
            if (m_waiting[i] == 0)
                ready.push(i);
        std::vector<BlockRun> result;
        result.reserve(m_order.size());
        while (!ready.empty()) {
            const std::size_t i = ready.top();
            ready.pop();
            result.push_back(m_order[i]);
            for (const std::size_t next : m_next[i])
                if (--m_waiting[next] == 0)
                    ready.push(next);
        }
        if (result.size() == m_order.size())
            return result;
        for (const auto &[edge, order] : m_asked)
            if (m_waiting[edge.first] > 0 && m_waiting[edge.second] > 0)
                return refused(*order, "this order runs against the data flow or against another row",
                    "remove the row, or turn it around");
        return Error{ErrorCode::Internal, "the runs of this plan wait for each other", {}, "plan"};
    }

    const MaterializedPlan &m_materialized;
    const Plan &m_plan;
    std::vector<BlockRun> m_order;
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> m_runs{}; ///< Slices of each.
    std::vector<std::vector<std::size_t>> m_next;
    std::vector<std::int32_t> m_waiting;
    std::vector<std::pair<Edge, const CommunicationOrder *>> m_asked{};
};

} // namespace

Result<std::vector<BlockRun>> orderCommunication(
    const MaterializedPlan &materialized, const Plan &plan, std::vector<BlockRun> order)
{
    if (std::none_of(plan.communicationOrders.begin(), plan.communicationOrders.end(), movesRuns))
        return order;
    return RunSorter(materialized, plan, std::move(order)).run();
}

std::vector<std::int32_t> waitingBlocks(const MaterializedPlan &materialized, const Plan &plan)
{
    std::set<std::int32_t> waiting;
    for (const CommunicationOrder &order : plan.communicationOrders) {
        if (!movesRuns(order) || order.before || order.secondPart != CommunicationPart::None)
            continue;
        const auto blocks = blocksOf(materialized, *plan.graph, order.part, order.first);
        waiting.insert(blocks.begin(), blocks.end());
    }
    return {waiting.begin(), waiting.end()};
}

} // namespace planloom
