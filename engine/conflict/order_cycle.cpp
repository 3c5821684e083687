#include "engine/conflict/order_cycle.h"

#include "engine/plan/interleaves.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace planloom {

namespace {

/// What must run before what: edges that rows ask for have a row, others -1.
class OrderGraph
{
public:
    explicit OrderGraph(std::size_t count)
        : m_next(count)
    {
    }

    std::size_t add()
    {
        m_next.emplace_back();
        return m_next.size() - 1;
    }
    void link(std::size_t from, std::size_t to, std::int32_t row) { m_next[from].push_back({to, row}); }

    /// The rows of a cycle with few rows, ascending; empty without a cycle.
    std::vector<RowId> cycle() const
    {
        const std::vector<bool> left = onCycles();
        std::vector<RowId> best;
        int tries = 0;
        for (std::size_t from = 0; from < m_next.size() && tries < kMostStarts; ++from) {
            if (!left[from])
                continue;
            for (const auto &[to, row] : m_next[from]) {
                if (row < 0 || !left[to] || ++tries > kMostStarts)
                    continue;
                auto rows = wayBack(to, from, left);
                if (!rows)
                    continue;
                rows->insert(RowId{row});
                if (best.empty() || rows->size() < best.size())
                    best.assign(rows->begin(), rows->end());
            }
        }
        return best;
    }

private:
    static constexpr int kMostStarts = 64;
    struct Edge {
        std::size_t to = 0;
        std::int32_t row = -1;
    };

    /// Those that stand on a cycle, or between two.
    std::vector<bool> onCycles() const
    {
        std::vector<std::vector<std::size_t>> before(m_next.size());
        for (std::size_t i = 0; i < m_next.size(); ++i)
            for (const Edge &edge : m_next[i])
                before[edge.to].push_back(i);
        std::vector<bool> left(m_next.size(), true);
        const auto peel = [&](const auto &in, const auto &out) {
            std::vector<std::size_t> waiting(m_next.size());
            std::vector<std::size_t> ready;
            for (std::size_t i = 0; i < m_next.size(); ++i) {
                waiting[i] = in(i);
                if (waiting[i] == 0)
                    ready.push_back(i);
            }
            while (!ready.empty()) {
                const std::size_t i = ready.back();
                ready.pop_back();
                left[i] = false;
                out(i, [&](std::size_t to) {
                    if (--waiting[to] == 0)
                        ready.push_back(to);
                });
            }
        };
        peel([&](std::size_t i) { return before[i].size(); },
            [&](std::size_t i, const auto &visit) {
                for (const Edge &edge : m_next[i])
                    visit(edge.to);
            });
        peel([&](std::size_t i) { return m_next[i].size(); },
            [&](std::size_t i, const auto &visit) {
                for (const std::size_t from : before[i])
                    visit(from);
            });
        return left;
    }

    /// The rows of the path from `from` to `to` that takes the fewest steps by rows.
    std::optional<std::set<RowId>> wayBack(
        std::size_t from, std::size_t to, const std::vector<bool> &left) const
    {
        struct Step {
            std::size_t before = 0;
            std::int32_t row = -1;
            std::int32_t rows = std::numeric_limits<std::int32_t>::max();
        };
        std::map<std::size_t, Step> reached{{from, {from, -1, 0}}};
        std::deque<std::size_t> open{from};
        while (!open.empty() && open.front() != to) {
            const std::size_t at = open.front();
            open.pop_front();
            const std::int32_t rows = reached.at(at).rows;
            for (const Edge &edge : m_next[at]) {
                if (!left[edge.to])
                    continue;
                Step &step = reached[edge.to];
                const std::int32_t sum = rows + (edge.row >= 0 ? 1 : 0);
                if (step.rows <= sum)
                    continue;
                step = {at, edge.row, sum};
                if (edge.row >= 0)
                    open.push_back(edge.to);
                else
                    open.push_front(edge.to);
            }
        }
        if (!reached.contains(to))
            return std::nullopt;
        std::set<RowId> rows;
        for (std::size_t at = to; at != from; at = reached.at(at).before)
            if (const std::int32_t row = reached.at(at).row; row >= 0)
                rows.insert(RowId{row});
        return rows;
    }

    std::vector<std::vector<Edge>> m_next{};
};

class CycleFinder
{
public:
    CycleFinder(const Plan &plan, const SelectorIndex &index, const BatchInfo &batch)
        : m_plan(plan)
        , m_index(index)
        , m_batch(batch)
        , m_graph(*plan.graph)
        , m_interleaves(mayInterleave(plan))
    {
    }

    std::vector<RowId> find()
    {
        if (m_plan.orders.empty())
            return {};
        for (const OrderConstraint &order : m_plan.orders)
            sort(order);
        if (!m_againstStep.empty())
            return {m_againstStep.front()};
        if (auto rows = insideBlocks(); !rows.empty())
            return rows;
        return betweenBlocks();
    }

private:
    /// 0 before all micro-batches, 1 in each of them, 2 behind them.
    int phaseOf(OperatorId op) const
    {
        if (m_graph.at(op).direction == Direction::Optimizer)
            return 2;
        return m_batch.oncePerStep[static_cast<std::size_t>(op.index)] ? 0 : 1;
    }
    StageId stageOf(OperatorId op) const
    {
        return m_plan.decisions[static_cast<std::size_t>(op.index)].stage;
    }
    /// Of a micro-batch: forward blocks by stage, then backward ones.
    std::size_t blockOf(OperatorId op) const
    {
        const auto stage = static_cast<std::size_t>(std::max(stageOf(op).index, 0));
        return stage
            + (m_graph.at(op).direction == Direction::Backward ? static_cast<std::size_t>(m_plan.stageCount)
                                                               : 0);
    }
    /// Its stage runs as a whole, in one pass for each direction.
    bool isWhole(OperatorId op) const
    {
        const OperatorDecision &decision = m_plan.decisions[static_cast<std::size_t>(op.index)];
        return sliceCount(decision.partition) == 1 && laneCount(decision.partition) == 1
            && !(decision.splitBackward && m_graph.at(op).direction == Direction::Backward);
    }

    /// Of blocks that run side by side, rows order pieces: neither has to wait for all of the other.
    bool mayRunBeside(OperatorId a, OperatorId b) const
    {
        if (!m_interleaves || blockOf(a) == blockOf(b))
            return false;
        const auto &devices = m_plan.decisions[static_cast<std::size_t>(a.index)].devices;
        const auto &others = m_plan.decisions[static_cast<std::size_t>(b.index)].devices;
        return std::any_of(devices.begin(), devices.end(),
            [&](DeviceId device) { return std::find(others.begin(), others.end(), device) != others.end(); });
    }

    void sort(const OrderConstraint &order)
    {
        const int first = phaseOf(order.first);
        const int second = phaseOf(order.second);
        if (first != 1 || second != 1) {
            if (first > second)
                m_againstStep.push_back(order.row);
            else if (first == second && order.microBatchOffset == 0)
                m_inside.push_back(order);
            return;
        }
        if (!isWhole(order.first) || !isWhole(order.second) || !order.part.isAll()
            || !order.secondPart.isAll())
            return;
        if (order.allWithAll)
            m_together[order.row].push_back(order);
        else if (blockOf(order.first) == blockOf(order.second) && order.microBatchOffset == 0)
            m_inside.push_back(order);
        else
            m_between.push_back(order);
    }

    /// Edges of the data flow that stay in one block, and the rows inside it.
    std::vector<RowId> insideBlocks() const
    {
        if (m_inside.empty() && m_together.empty())
            return {};
        OrderGraph graph(m_graph.operators.size());
        for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
            const OperatorId op{static_cast<std::int32_t>(o)};
            for (const OperatorId producer : producersOf(op))
                if (phaseOf(producer) == phaseOf(op)
                    && (phaseOf(op) != 1 || blockOf(producer) == blockOf(op)))
                    graph.link(static_cast<std::size_t>(producer.index), o, -1);
        }
        for (const OrderConstraint &order : m_inside)
            graph.link(at(order.first), at(order.second), order.row.index);
        for (const auto &[row, orders] : m_together) {
            if (orders.front().microBatchOffset != 0)
                continue;
            std::map<std::size_t, std::size_t> joints; // by block: behind every first, before every second
            for (const OrderConstraint &order : orders)
                if (const std::size_t block = blockOf(order.first); !joints.contains(block))
                    joints.emplace(block, graph.add());
            for (const OrderConstraint &order : orders) {
                graph.link(at(order.first), joints.at(blockOf(order.first)), row.index);
                if (const auto joint = joints.find(blockOf(order.second)); joint != joints.end())
                    graph.link(joint->second, at(order.second), -1);
            }
        }
        return graph.cycle();
    }

    std::vector<RowId> betweenBlocks()
    {
        struct Between {
            std::size_t first = 0;
            std::size_t second = 0;
            std::int32_t offset = 0;
            std::int32_t microBatch = -1;
            std::int32_t row = -1;
            auto operator<=>(const Between &) const = default;
        };
        std::set<Between> edges;
        const auto add = [&](const OrderConstraint &order, OperatorId a, OperatorId b) {
            const std::size_t first = blockOf(a);
            const std::size_t second = blockOf(b);
            if ((first != second || order.microBatchOffset != 0) && !mayRunBeside(a, b))
                edges.insert({first, second, order.microBatchOffset, order.microBatch, order.row.index});
        };
        for (const OrderConstraint &order : m_between)
            add(order, order.first, order.second);
        for (const auto &[row, orders] : m_together) {
            std::map<std::size_t, OperatorId> firsts; // by block
            std::map<std::size_t, OperatorId> seconds;
            for (const OrderConstraint &order : orders) {
                firsts.emplace(blockOf(order.first), order.first);
                seconds.emplace(blockOf(order.second), order.second);
            }
            for (const auto &[block, first] : firsts)
                for (const auto &[other, second] : seconds)
                    add(orders.front(), first, second);
        }
        if (edges.empty())
            return {};
        for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
            const OperatorId op{static_cast<std::int32_t>(o)};
            if (phaseOf(op) != 1)
                continue;
            for (const OperatorId producer : producersOf(op))
                if (phaseOf(producer) == 1 && blockOf(producer) != blockOf(op))
                    edges.insert({blockOf(producer), blockOf(op), 0, -1, -1});
        }
        const auto count = static_cast<std::size_t>(m_plan.microBatches);
        OrderGraph graph(2 * static_cast<std::size_t>(m_plan.stageCount) * count);
        for (const Between &edge : edges) {
            for (std::int32_t i = 0; i < m_plan.microBatches; ++i) {
                const std::int32_t later = i + edge.offset;
                if ((edge.microBatch >= 0 && edge.microBatch != i) || later < 0
                    || later >= m_plan.microBatches)
                    continue;
                graph.link(edge.first * count + static_cast<std::size_t>(i),
                    edge.second * count + static_cast<std::size_t>(later), edge.row);
            }
        }
        return graph.cycle();
    }

    std::vector<OperatorId> producersOf(OperatorId op) const
    {
        std::vector<OperatorId> found;
        for (const TensorId input : m_graph.at(op).inputs)
            if (input)
                for (const OperatorId maker : m_index.uses().producers[static_cast<std::size_t>(input.index)])
                    found.push_back(maker);
        return found;
    }

    const Plan &m_plan;
    const SelectorIndex &m_index;
    const BatchInfo &m_batch;
    const Graph &m_graph;
    bool m_interleaves = false; ///< Some blocks may run side by side.
    std::vector<RowId> m_againstStep{};
    std::vector<OrderConstraint> m_inside{};
    std::vector<OrderConstraint> m_between{};
    std::map<RowId, std::vector<OrderConstraint>> m_together{}; ///< Between blocks, all with all.
};

} // namespace

std::vector<RowId> orderCycle(const Plan &plan, const SelectorIndex &index, const BatchInfo &batch)
{
    return CycleFinder(plan, index, batch).find();
}

Error orderCycleError(const Plan &plan, RowId row, bool others)
{
    const auto order = std::find_if(
        plan.orders.begin(), plan.orders.end(), [&](const OrderConstraint &each) { return each.row == row; });
    std::string who = "this row cannot hold";
    if (order != plan.orders.end())
        who = "operator '" + plan.graph->at(order->first).name + "' cannot run before '"
            + plan.graph->at(order->second).name + "'";
    return {others ? ErrorCode::Conflict : ErrorCode::InvalidInput,
        who
            + (others ? ": other order rows and the data flow run the other way"
                      : ": the data flow runs the other way"),
        "remove the row, or turn it around", placeOf(row, "rule")};
}

} // namespace planloom
