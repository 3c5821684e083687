#include "engine/lowering/order/order_rows.h"
#include "engine/base/words.h"
#include "engine/table/table.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace planloom {

namespace {

class Sorter
{
public:
    Sorter(const Plan &plan, const std::vector<BlockInfo> &blocks,
        const std::vector<std::vector<std::int32_t>> &blocksOf,
        const std::vector<std::vector<RunPlace>> *places)
        : m_plan(plan)
        , m_blocks(blocks)
        , m_blocksOf(blocksOf)
        , m_places(places)
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
        // Of operators in several lanes some may be in one block. Orders inside blocks are the same whether
        // places are known or not: blocks are made in them.
        const Blocks &blocks = blocksOf(seconds.front());
        const bool inside = order.microBatchOffset == 0
            && std::any_of(
                blocksOf(firsts.front()).begin(), blocksOf(firsts.front()).end(), [&](std::int32_t block) {
                    return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
                });
        if (!inside
            && m_places) { // all of one side before all of the other: the last of it, the first of that
            order.first = *std::max_element(firsts.begin(), firsts.end(), [&](OperatorId a, OperatorId b) {
                return placeIn(blocksOf(a).back(), a).last < placeIn(blocksOf(b).back(), b).last;
            });
            order.second = *std::min_element(seconds.begin(), seconds.end(), [&](OperatorId a, OperatorId b) {
                return placeIn(blocksOf(a).front(), a).first < placeIn(blocksOf(b).front(), b).first;
            });
            return add(order);
        }
        const std::size_t count = inside ? std::max(firsts.size(), seconds.size()) : 1;
        for (std::size_t i = 0; i < count; ++i) {
            order.first = firsts[std::min(i, firsts.size() - 1)];
            order.second = seconds[std::min(i, seconds.size() - 1)];
            TRY_VOID(add(order));
        }
        return {};
    }

    /// Blocks of one part of the stage in the order in which they run, lane by lane.
    Result<std::vector<Blocks>> lanesIn(OperatorId op, const BlockPart &part, RowId row) const
    {
        std::map<std::int32_t, Blocks> byLane;
        for (const std::int32_t block : blocksOf(op)) {
            const BlockInfo &info = m_blocks[static_cast<std::size_t>(block)];
            if (part.holds(info.lane, info.slice))
                byLane[info.lane].push_back(block);
        }
        std::vector<Blocks> lanes;
        for (auto &[lane, blocks] : byLane)
            lanes.push_back(std::move(blocks));
        if (!lanes.empty())
            return lanes;
        const BlockInfo &any = m_blocks[static_cast<std::size_t>(blocksOf(op).front())];
        return Error{ErrorCode::InvalidInput,
            "operator '" + m_plan.graph->at(op).name + "' runs nothing" + toString(part) + ": its stage has "
                + counted(any.lanes, "lane") + " and " + counted(any.slices, "slice"),
            "lanes and slices are numbered from 0", placeOf(row, "rule")};
    }

    Result<void> add(const OrderConstraint &order)
    {
        TRY(const auto firsts, lanesIn(order.first, order.part, order.row));
        TRY(const auto seconds, lanesIn(order.second, order.secondPart, order.row));
        const bool laneByLane =
            order.part.lane < 0 && order.secondPart.lane < 0 && firsts.size() == seconds.size();
        for (std::size_t i = 0; i < firsts.size(); ++i)
            for (std::size_t j = 0; j < seconds.size(); ++j)
                if (!laneByLane || i == j)
                    TRY_VOID(add(order, firsts[i], seconds[j]));
        return {};
    }

    /// Orders the slices of one lane before those of another, or of the same.
    Result<void> add(const OrderConstraint &order, const Blocks &firsts, const Blocks &seconds)
    {
        if (firsts.size() > 1 && firsts == seconds && order.microBatchOffset == 0) {
            for (const std::int32_t block : firsts)
                m_result.inside[static_cast<std::size_t>(block)].push_back(order);
            return {};
        }
        // What is sliced runs before something once its last slice has, and behind it if its first is.
        const std::int32_t first = firsts.back();
        const std::int32_t second = seconds.front();
        const BlockInfo &before = m_blocks[static_cast<std::size_t>(first)];
        const BlockInfo &behind = m_blocks[static_cast<std::size_t>(second)];
        if (first == second && order.microBatchOffset == 0) {
            m_result.inside[static_cast<std::size_t>(first)].push_back(order);
        } else if (isPass(before.kind) && isPass(behind.kind)) {
            BlockDependency dependency{first, second, order.microBatchOffset, order.row, order.microBatch};
            if (m_places) {
                dependency.behind = markBehind(first, order.first);
                dependency.before = markBefore(second, order.second);
            }
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

    /// Where in the list of a block's places an operator is; in a coshard region, or run again, several
    /// times.
    struct Occurrences {
        std::size_t first = 0;
        std::size_t last = 0;
    };

    Occurrences placeIn(std::int32_t block, OperatorId op)
    {
        const auto b = static_cast<std::size_t>(block);
        if (b >= m_places->size())
            return {};
        const auto [known, isNew] = m_knownPlaces.try_emplace(block);
        if (isNew)
            for (std::size_t i = 0; i < (*m_places)[b].size(); ++i)
                known->second.try_emplace((*m_places)[b][i].op, Occurrences{i, i}).first->second.last = i;
        const auto found = known->second.find(op);
        return found == known->second.end() ? Occurrences{} : found->second;
    }

    /// The mark where what follows an operator begins; -1 where nothing does.
    std::int32_t markBehind(std::int32_t block, OperatorId op)
    {
        if (static_cast<std::size_t>(block) >= m_places->size())
            return -1;
        const auto &places = (*m_places)[static_cast<std::size_t>(block)];
        for (std::size_t last = placeIn(block, op).last, i = last; i < places.size(); ++i)
            if (places[i].mark != places[last].mark)
                return places[i].mark;
        return -1;
    }

    /// The mark where an operator begins; -1 where it is the first.
    std::int32_t markBefore(std::int32_t block, OperatorId op)
    {
        if (static_cast<std::size_t>(block) >= m_places->size()
            || (*m_places)[static_cast<std::size_t>(block)].empty())
            return -1;
        const auto &places = (*m_places)[static_cast<std::size_t>(block)];
        const std::int32_t mark = places[placeIn(block, op).first].mark;
        return mark == places.front().mark ? -1 : mark;
    }

    const Plan &m_plan;
    const std::vector<BlockInfo> &m_blocks;
    const std::vector<std::vector<std::int32_t>> &m_blocksOf;
    const std::vector<std::vector<RunPlace>> *m_places = nullptr;
    std::map<std::int32_t, std::unordered_map<OperatorId, Occurrences>> m_knownPlaces{}; ///< By block.
    SortedOrders m_result{};
    std::set<BlockDependency> m_known{};
};

} // namespace

Result<SortedOrders> sortOrders(const Plan &plan, const std::vector<BlockInfo> &blocks,
    const std::vector<std::vector<std::int32_t>> &blocksOf, const std::vector<std::vector<RunPlace>> *places)
{
    return Sorter(plan, blocks, blocksOf, places).run();
}

} // namespace planloom
