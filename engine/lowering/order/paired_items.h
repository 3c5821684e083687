#pragma once

#include "engine/base/result.h"
#include "engine/lowering/order/order_items.h"
#include "engine/plan/plan.h"
#include "engine/schedule/schedule.h"

#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// Items that run side by side, two by two. The first of a pair leads: it stands for both.
class PairedItems
{
public:
    /// Two items that a row pairs.
    struct PairOfRow {
        std::size_t first = 0;
        std::size_t second = 0;
        RowId row{};
    };

    /// Every item leads itself. @param items  must outlive this
    explicit PairedItems(const OrderItems &items);

    /// Those that a schedule interleaves; blocks that the plan has not got are left out.
    void pairAsIn(const Schedule &schedule);
    /// Those that rows pair: every lane with that of the other stage that is on its devices, or where none is
    /// with the first one, if the row names no lanes.
    /// @return InvalidInput naming a row that pairs nothing, or blocks of different devices, or a block that
    ///   runs beside another one already
    Result<void> pairByRows(const std::vector<InterleavedBlocks> &rows, std::int32_t stageCount);

    std::size_t leaderOf(std::size_t item) const { return m_leaderOf[item]; }
    bool leads(std::size_t item) const { return m_leaderOf[item] == item; }
    bool isPair(std::size_t leader) const { return m_besideOf[leader] != leader; }
    std::size_t besideOf(std::size_t leader) const { return m_besideOf[leader]; } ///< Itself if it is alone.
    const std::vector<PairOfRow> &ofRows() const { return m_ofRows; }

    /// The row of a pair of which one has to wait for the other; nothing if none does.
    /// @param edges  the second item waits for the first
    std::optional<RowId> waitingPair(const std::vector<std::pair<std::size_t, std::size_t>> &edges) const;

private:
    void findPairs(const InterleavedBlocks &row, const ScheduleSetting &setting);
    void addPairs(const InterleavedBlocks &row, std::size_t lane, std::size_t otherLane,
        const std::vector<std::int32_t> &slices);
    Result<void> join(const PairOfRow &pair);

    const OrderItems &m_items;
    std::vector<std::size_t> m_leaderOf; ///< By item.
    std::vector<std::size_t> m_besideOf; ///< By leader.
    std::vector<PairOfRow> m_ofRows{};
};

} // namespace planloom
