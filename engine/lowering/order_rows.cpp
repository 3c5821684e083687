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
    Sorter(const Plan &plan, const std::vector<BlockInfo> &blocks,
        const std::vector<std::vector<std::int32_t>> &blocksOf)
        : m_plan(plan)
        , m_blocks(blocks)
        , m_blocksOf(blocksOf)
    {
        m_result.inside.resize(blocks.size());
    }

    Result<SortedOrders> run()
    {
        std::map<RowId, Sides> together;
        for (const OrderConstraint &order : m_plan.orders) {
            if (order.allWithAll) {
                together[order.row].add(order, blocksOf(order.first), blocksOf(order.second));
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
    using Blocks = std::vector<std::int32_t>;

    /// The two sides of a row that orders all with all, by block.
    struct Sides {
        std::map<Blocks, std::vector<OperatorId>> first{};
        std::map<Blocks, std::vector<OperatorId>> second{};
        OrderConstraint row{};

        void add(const OrderConstraint &order, const Blocks &firstBlock, const Blocks &secondBlock)
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

    const Blocks &blocksOf(OperatorId op) const { return m_blocksOf[static_cast<std::size_t>(op.index)]; }

    Result<void> addAll(
        OrderConstraint order, const std::vector<OperatorId> &firsts, const std::vector<OperatorId> &seconds)
    {
        const bool inside =
            blocksOf(firsts.front()) == blocksOf(seconds.front()) && order.microBatchOffset == 0;
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
        // What is sliced runs before something once its last slice has, and behind it if its first is.
        const Blocks &firsts = blocksOf(order.first);
        if (firsts.size() > 1 && firsts == blocksOf(order.second) && order.microBatchOffset == 0) {
            for (const std::int32_t block : firsts)
                m_result.inside[static_cast<std::size_t>(block)].push_back(order);
            return {};
        }
        const std::int32_t first = firsts.back();
        const std::int32_t second = blocksOf(order.second).front();
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
    const std::vector<std::vector<std::int32_t>> &m_blocksOf;
    SortedOrders m_result{};
    std::set<BlockDependency> m_known{};
};

} // namespace

Result<SortedOrders> sortOrders(const Plan &plan, const std::vector<BlockInfo> &blocks,
    const std::vector<std::vector<std::int32_t>> &blocksOf)
{
    return Sorter(plan, blocks, blocksOf).run();
}

} // namespace planloom
