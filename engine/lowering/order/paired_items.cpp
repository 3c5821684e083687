#include "engine/lowering/order/paired_items.h"

#include "engine/lowering/order/block_setting.h"
#include "engine/table/table.h"

#include <algorithm>
#include <numeric>

namespace planloom {

PairedItems::PairedItems(const OrderItems &items)
    : m_items(items)
    , m_leaderOf(items.count())
    , m_besideOf(items.count())
{
    std::iota(m_leaderOf.begin(), m_leaderOf.end(), std::size_t{0});
    std::iota(m_besideOf.begin(), m_besideOf.end(), std::size_t{0});
}

void PairedItems::pairAsIn(const Schedule &schedule)
{
    for (const auto &[first, second] : schedule.interleaved)
        if (const auto a = m_items.find(first), b = m_items.find(second); a && b) {
            m_leaderOf[*b] = *a;
            m_besideOf[*a] = *b;
        }
}

Result<void> PairedItems::pairByRows(const std::vector<InterleavedBlocks> &rows, std::int32_t stageCount)
{
    if (rows.empty())
        return {};
    const ScheduleSetting setting =
        settingOf(m_items.allBlocks(), static_cast<std::int32_t>(m_items.microBatches()), stageCount);
    for (const InterleavedBlocks &row : rows)
        findPairs(row, setting);
    for (const InterleavedBlocks &row : rows)
        if (std::none_of(
                m_ofRows.begin(), m_ofRows.end(), [&](const PairOfRow &pair) { return pair.row == row.row; }))
            return Error{ErrorCode::InvalidInput,
                std::string("no stage that is named has both a ") + nameOf(row.first) + " and a "
                    + nameOf(row.second) + " block",
                "name passes, stages and lanes that the plan has", placeOf(row.row, "rule")};
    for (const PairOfRow &pair : m_ofRows)
        TRY_VOID(join(pair));
    return {};
}

void PairedItems::findPairs(const InterleavedBlocks &row, const ScheduleSetting &setting)
{
    const auto lanesOf = [&](StageId stage) {
        const auto s = static_cast<std::size_t>(stage.index);
        return setting.laneRanks.empty() ? std::vector{setting.rankOf[s]} : setting.laneRanks[s];
    };
    const auto firsts = lanesOf(row.firstStage);
    const auto seconds = lanesOf(row.secondStage);
    for (std::size_t lane = 0; lane < firsts.size(); ++lane) {
        if (row.firstLane >= 0 && static_cast<std::size_t>(row.firstLane) != lane)
            continue;
        const auto same = std::find(seconds.begin(), seconds.end(), firsts[lane]);
        const auto other = row.secondLane >= 0 ? row.secondLane
            : same == seconds.end()            ? 0
                                               : same - seconds.begin();
        addPairs(row, lane, static_cast<std::size_t>(other), setting.slices);
    }
}

void PairedItems::addPairs(const InterleavedBlocks &row, std::size_t lane, std::size_t otherLane,
    const std::vector<std::int32_t> &slices)
{
    const BlockKey one{row.firstStage, row.first, 0, static_cast<std::int32_t>(lane)};
    const BlockKey other{row.secondStage, row.second, 0, static_cast<std::int32_t>(otherLane)};
    const auto microBatches = static_cast<std::int32_t>(m_items.microBatches());
    for (std::int32_t i = 0; i < microBatches; ++i) {
        const std::int32_t j = i + row.microBatchOffset;
        if (j < 0 || j >= microBatches)
            continue;
        const Schedule two =
            inSlices({.ranks = {{{one, i}, {other, j}}}, .interleaved = {{{one, i}, {other, j}}}}, slices);
        for (const auto &[first, second] : two.interleaved)
            if (const auto a = m_items.find(first), b = m_items.find(second); a && b)
                m_ofRows.push_back({*a, *b, row.row});
    }
}

Result<void> PairedItems::join(const PairOfRow &pair)
{
    const auto refuse = [&](std::string message, std::string advice) {
        return Error{
            ErrorCode::InvalidInput, std::move(message), std::move(advice), placeOf(pair.row, "rule")};
    };
    const auto &own = m_items.blockOf(pair.first).devices;
    const auto &others = m_items.blockOf(pair.second).devices;
    if (std::none_of(own.begin(), own.end(),
            [&](DeviceId d) { return std::find(others.begin(), others.end(), d) != others.end(); }))
        return refuse("the " + wordsOf(m_items, pair.first) + " and the " + wordsOf(m_items, pair.second)
                + " run on different devices",
            "name stages that share a device");
    for (const std::size_t item : {pair.first, pair.second})
        if (!leads(item) || isPair(item))
            return refuse("the " + wordsOf(m_items, item) + " runs side by side with another block already",
                "choose another offset, or a schedule that interleaves nothing");
    m_leaderOf[pair.second] = pair.first;
    m_besideOf[pair.first] = pair.second;
    return {};
}

std::optional<RowId> PairedItems::waitingPair(
    const std::vector<std::pair<std::size_t, std::size_t>> &edges) const
{
    std::vector<std::vector<std::size_t>> next(m_items.count());
    for (const auto &[from, to] : edges)
        next[from].push_back(to);
    const auto reaches = [&](std::size_t from, std::size_t to) {
        std::vector<bool> seen(m_items.count(), false);
        std::vector<std::size_t> open{from};
        while (!open.empty()) {
            const std::size_t item = open.back();
            open.pop_back();
            if (item == to)
                return true;
            for (const std::size_t each : next[item])
                if (!seen[each]) {
                    seen[each] = true;
                    open.push_back(each);
                }
        }
        return false;
    };
    for (const PairOfRow &pair : m_ofRows)
        if (reaches(pair.first, pair.second) || reaches(pair.second, pair.first))
            return pair.row;
    return std::nullopt;
}

} // namespace planloom
