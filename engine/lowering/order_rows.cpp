#include "engine/lowering/order_rows.h"

#include "engine/table/table.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

class Sorter
{
public:
    Sorter(const Plan &plan, const std::vector<BlockInfo> &blocks, const std::vector<std::int32_t> &blockOf)
        : m_plan(plan)
        , m_blocks(blocks)
        , m_blockOf(blockOf)
    {
        m_result.inside.resize(blocks.size());
    }

    Result<SortedOrders> run()
    {
        std::map<RowId, Sides> together;
        for (const OrderConstraint &order : m_plan.orders) {
            if (order.allWithAll) {
                together[order.row].add(order, blockOf(order.first), blockOf(order.second));
                continue;
            }
            TRY_VOID(add(order));
        }
        for (const auto &[row, sides] : together) {
            for (const auto &[first, firsts] : sides.first) {
                for (const auto &[second, seconds] : sides.second) {
                    TRY_VOID(addAll(sides.row, firsts, seconds));
                }
            }
        }
        return std::move(m_result);
    }

private:
    /// The two sides of a row that orders all with all, by block.
    struct Sides {
        std::map<std::int32_t, std::vector<OperatorId>> first{};
        std::map<std::int32_t, std::vector<OperatorId>> second{};
        OrderConstraint row{};

        void add(const OrderConstraint &order, std::int32_t firstBlock, std::int32_t secondBlock)
        {
            row = order;
            append(first[firstBlock], order.first);
            append(second[secondBlock], order.second);
        }
        static void append(std::vector<OperatorId> &operators, OperatorId op)
        {
            if (operators.empty() || operators.back() != op) // the last of the shorter side is repeated
                operators.push_back(op);
        }
    };

    std::int32_t blockOf(OperatorId op) const { return m_blockOf[static_cast<std::size_t>(op.index)]; }

    Result<void> addAll(
        OrderConstraint order, const std::vector<OperatorId> &firsts, const std::vector<OperatorId> &seconds)
    {
        const bool inside =
            blockOf(firsts.front()) == blockOf(seconds.front()) && order.microBatchOffset == 0;
        const std::size_t count = inside ? std::max(firsts.size(), seconds.size()) : 1;
        for (std::size_t i = 0; i < count; ++i) {
            order.first = firsts[std::min(i, firsts.size() - 1)];
            order.second = seconds[std::min(i, seconds.size() - 1)];
            TRY_VOID(add(order));
        }
        return {};
    }

    Result<void> add(const OrderConstraint &order)
    {
        const std::int32_t first = blockOf(order.first);
        const std::int32_t second = blockOf(order.second);
        const BlockInfo &before = m_blocks[static_cast<std::size_t>(first)];
        const BlockInfo &behind = m_blocks[static_cast<std::size_t>(second)];
        if (first == second && order.microBatchOffset == 0) {
            m_result.inside[static_cast<std::size_t>(first)].push_back(order);
        } else if (isPass(before.kind) && isPass(behind.kind)) {
            const BlockDependency dependency{
                first, second, order.microBatchOffset, order.row, order.microBatch};
            if (m_known.insert(dependency).second)
                m_result.between.push_back(dependency);
        } else if (before.rank > behind.rank) {
            const Graph &graph = *m_plan.graph;
            return Error{ErrorCode::InvalidInput,
                "operator '" + graph.at(order.first).name + "' cannot run before '"
                    + graph.at(order.second).name + "': one of them runs once per step, at its other end",
                "remove the row, or turn it around", placeOf(order.row, "rule")};
        }
        return {};
    }

    const Plan &m_plan;
    const std::vector<BlockInfo> &m_blocks;
    const std::vector<std::int32_t> &m_blockOf;
    SortedOrders m_result{};
    std::set<BlockDependency> m_known{};
};

} // namespace

Result<SortedOrders> sortOrders(
    const Plan &plan, const std::vector<BlockInfo> &blocks, const std::vector<std::int32_t> &blockOf)
{
    return Sorter(plan, blocks, blockOf).run();
}

} // namespace planloom
