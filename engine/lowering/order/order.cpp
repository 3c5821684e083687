#include "engine/lowering/order/order.h"

#include "engine/lowering/order/bent_ranks.h"
#include "engine/lowering/order/block_setting.h"
#include "engine/lowering/order/paired_pieces.h"
#include "engine/lowering/order/received_runs.h"
#include "engine/schedule/schedule.h"
#include "engine/table/table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>

namespace planloom {

namespace {

bool oncePerStep(SegmentKind kind)
{
    return kind == SegmentKind::Prologue || kind == SegmentKind::Reduce || kind == SegmentKind::Optimizer;
}

/// One (block, micro-batch) on its way into the order.
struct Item {
    std::int32_t waitingFor = 0;
    double readyAt = 0;
};

/// Which items wait for which. There are many, with few each: they lie one after the other.
class Waiters
{
public:
    using Link = std::pair<std::int32_t, std::int32_t>; ///< The second waits for the first.

    Waiters(std::size_t items, const std::vector<Link> &links)
        : m_begin(items + 1, 0)
        , m_waiters(links.size())
    {
        for (const auto &[from, to] : links)
            ++m_begin[static_cast<std::size_t>(from) + 1];
        std::partial_sum(m_begin.begin(), m_begin.end(), m_begin.begin());
        std::vector<std::int32_t> place(m_begin.begin(), m_begin.end() - 1);
        for (const auto &[from, to] : links)
            m_waiters[static_cast<std::size_t>(place[static_cast<std::size_t>(from)]++)] = to;
    }

    std::span<const std::int32_t> of(std::size_t item) const ///< In the order of the links.
    {
        return std::span(m_waiters).subspan(static_cast<std::size_t>(m_begin[item]),
            static_cast<std::size_t>(m_begin[item + 1] - m_begin[item]));
    }

private:
    std::vector<std::int32_t> m_begin; ///< By item, and one more.
    std::vector<std::int32_t> m_waiters;
};

/// Whether two dependencies say the same of blocks that do not run side by side.
bool isSameForBlocks(const BlockDependency &a, BlockDependency b)
{
    b.behind = a.behind;
    b.before = a.before;
    return a == b;
}

/// Two items that a row wants side by side.
struct PairOfRow {
    std::size_t first = 0;
    std::size_t second = 0;
    RowId row{};
};

/// "backward block of stage 1, micro-batch 0"
std::string wordsOf(const BlockInfo &block, std::size_t microBatch)
{
    return std::string(nameOf(block.kind)) + " block of stage " + std::to_string(block.stage.index)
        + ", micro-batch " + std::to_string(microBatch)
        + (block.slices > 1 ? ", slice " + std::to_string(block.slice) : "")
        + (block.lanes > 1 ? ", lane " + std::to_string(block.lane) : "");
}

/// The row of a pair of which one has to wait for the other; nothing if none does.
std::optional<RowId> waitingPair(const std::vector<PairOfRow> &pairs, std::size_t itemCount,
    const std::vector<std::pair<std::size_t, std::size_t>> &edges)
{
    std::vector<std::vector<std::size_t>> next(itemCount);
    for (const auto &[from, to] : edges)
        next[from].push_back(to);
    const auto reaches = [&](std::size_t from, std::size_t to) {
        std::vector<bool> seen(itemCount, false);
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
    for (const PairOfRow &pair : pairs)
        if (reaches(pair.first, pair.second) || reaches(pair.second, pair.first))
            return pair.row;
    return std::nullopt;
}

/// Blocks that run once for each micro-batch, found by what a schedule calls them.
class RepeatedBlocks
{
public:
    RepeatedBlocks(const std::vector<BlockInfo> &blocks, const std::vector<std::int32_t> &repeated)
    {
        for (std::size_t p = 0; p < repeated.size(); ++p) {
            const BlockInfo &block = blocks[static_cast<std::size_t>(repeated[p])];
            if (isPass(block.kind))
                m_places.emplace_back(Name{block.stage, block.slice, block.lane, passOf(block.kind)},
                    static_cast<std::int32_t>(p));
        }
        std::sort(m_places.begin(), m_places.end());
    }

    /// Which of the `repeated` blocks this one is; -1 if none.
    std::int32_t positionOf(const BlockKey &key) const
    {
        // A backward block runs what gradients of inputs ask for, and the other way round.
        const Pass pass = key.pass == Pass::InputGradient ? Pass::Backward : key.pass;
        const Name name{key.stage, key.slice, key.lane, pass};
        const auto found = std::lower_bound(m_places.begin(), m_places.end(), name,
            [](const auto &place, const Name &wanted) { return place.first < wanted; });
        return found == m_places.end() || found->first != name ? -1 : found->second;
    }

private:
    using Name = std::tuple<StageId, std::int32_t, std::int32_t, Pass>;

    static Pass passOf(SegmentKind kind)
    {
        return kind == SegmentKind::Forward       ? Pass::Forward
            : kind == SegmentKind::WeightGradient ? Pass::WeightGradient
                                                  : Pass::Backward;
    }

    std::vector<std::pair<Name, std::int32_t>> m_places{};
};

/// How the template makes its schedule; null for those that only say what goes first, and for listed ones.
Result<Schedule> (*templateOf(ScheduleKind kind))(const ScheduleSetting &)
{
    return kind == ScheduleKind::Listed ? nullptr : scheduleTemplates()[static_cast<std::size_t>(kind)].make;
}

/// Where a listed schedule stops.
template<typename HasRun> Error stuckSchedule(const Schedule &listed, const HasRun &hasRun)
{
    std::string places;
    for (const auto &rank : listed.ranks)
        for (const ScheduledBlock &block : rank)
            if (!hasRun(block)) {
                places += (places.empty() ? "" : ", ") + toString(block);
                break;
            }
    return {ErrorCode::InvalidInput,
        "the listed schedule stops: its ranks wait for one another before " + places,
        "list every block behind those that it reads", "plan"};
}

} // namespace

Result<std::vector<BlockRun>> orderBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dependencies, std::int32_t microBatches, std::int32_t stageCount,
    ScheduleKind schedule, const std::vector<std::int32_t> &inFlightLimits,
    const std::vector<InterleavedBlocks> &interleavedByRows, const Schedule &listed)
{
    std::vector<std::int32_t> repeated;
    std::vector<std::int32_t> position(blocks.size(), -1);
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (!oncePerStep(blocks[b].kind) && !blocks[b].devices.empty()) {
            position[b] = static_cast<std::int32_t>(repeated.size());
            repeated.push_back(static_cast<std::int32_t>(b));
        }
    const auto scheduled = [&](std::int32_t block) { return position[static_cast<std::size_t>(block)]; };

    const std::size_t m = static_cast<std::size_t>(microBatches);
    std::vector<Item> items(repeated.size() * m);
    const RepeatedBlocks byName(blocks, repeated);
    const auto itemOf =
        [&](const ScheduledBlock &block) { // nothing for a stage without operators in this pass
            const std::int32_t p = byName.positionOf(block.block);
            return p < 0 ? std::optional<std::size_t>{}
                         : static_cast<std::size_t>(p) * m + static_cast<std::size_t>(block.microBatch);
        };
    Schedule explicitly = listed;
    std::set<ScheduledBlock> named;
    for (const auto &rank : explicitly.ranks)
        for (const ScheduledBlock &block : rank)
            if (block.microBatch < 0 || block.microBatch >= microBatches || byName.positionOf(block.block) < 0
                || !named.insert(block).second)
                return Error{ErrorCode::InvalidInput,
                    (named.contains(block) ? "the listed schedule has block " + toString(block) + " twice"
                                           : "the listed schedule has block " + toString(block)
                                + ", which the plan has not"),
                    "list the blocks of the plan's " + std::to_string(stageCount) + " stages and "
                        + std::to_string(microBatches) + " micro-batches, each once",
                    "plan"};
    if (const auto make = templateOf(schedule)) {
        const ScheduleSetting setting = settingOf(blocks, microBatches, stageCount);
        TRY(explicitly, make(setting));
        explicitly = inSlices(explicitly, setting.slices);
    }
    const bool rowsOrder = std::any_of(dependencies.begin(), dependencies.end(),
        [](const BlockDependency &dependency) { return dependency.row.valid(); });
    const bool limited = std::any_of(
        inFlightLimits.begin(), inFlightLimits.end(), [](std::int32_t limit) { return limit > 0; });
    if (schedule == ScheduleKind::OneFOneB && !rowsOrder && !limited && interleavedByRows.empty()) {
        const ScheduleSetting setting = settingOf(blocks, microBatches, stageCount);
        if (auto interlaced = interlacedSchedule(setting))
            explicitly = inSlices(*interlaced, setting.slices);
    }
    // Two that are interleaved are one: the first stands for both.
    std::vector<std::size_t> leaderOf(items.size());
    std::iota(leaderOf.begin(), leaderOf.end(), std::size_t{0});
    std::vector<std::size_t> besideOf = leaderOf; // by leader; itself where it runs alone
    std::size_t left = items.size(); // that have not run
    for (const auto &[first, second] : explicitly.interleaved) {
        const auto a = itemOf(first);
        const auto b = itemOf(second);
        if (!a || !b)
            continue;
        leaderOf[*b] = *a;
        besideOf[*a] = *b;
        --left;
    }
    const auto blockOfItem = [&](std::size_t item) -> const BlockInfo & {
        return blocks[static_cast<std::size_t>(repeated[item / m])];
    };
    std::vector<PairOfRow> pairs;
    const ScheduleSetting setting =
        interleavedByRows.empty() ? ScheduleSetting{} : settingOf(blocks, microBatches, stageCount);
    const auto pair = [&](const InterleavedBlocks &rule, BlockKey one, BlockKey other) {
        for (std::int32_t i = 0; i < microBatches; ++i) {
            const std::int32_t j = i + rule.microBatchOffset;
            if (j < 0 || j >= microBatches)
                continue;
            const Schedule two = inSlices(
                {.ranks = {{{one, i}, {other, j}}}, .interleaved = {{{one, i}, {other, j}}}}, setting.slices);
            for (const auto &[first, second] : two.interleaved)
                if (const auto a = itemOf(first), b = itemOf(second); a && b)
                    pairs.push_back({*a, *b, rule.row});
        }
    };
    for (const InterleavedBlocks &rule : interleavedByRows) {
        const auto lanesOf = [&](StageId stage) {
            const auto s = static_cast<std::size_t>(stage.index);
            return setting.laneRanks.empty() ? std::vector{setting.rankOf[s]} : setting.laneRanks[s];
        };
        const auto firsts = lanesOf(rule.firstStage);
        const auto seconds = lanesOf(rule.secondStage);
        // Every lane with that of the other stage that is on its devices; where none is, with the first.
        for (std::size_t lane = 0; lane < firsts.size(); ++lane) {
            if (rule.firstLane >= 0 && static_cast<std::size_t>(rule.firstLane) != lane)
                continue;
            if (rule.secondLane >= 0) {
                pair(rule, {rule.firstStage, rule.first, 0, static_cast<std::int32_t>(lane)},
                    {rule.secondStage, rule.second, 0, rule.secondLane});
                continue;
            }
            const auto same = std::find(seconds.begin(), seconds.end(), firsts[lane]);
            const auto other = same == seconds.end() ? 0 : same - seconds.begin();
            pair(rule, {rule.firstStage, rule.first, 0, static_cast<std::int32_t>(lane)},
                {rule.secondStage, rule.second, 0, static_cast<std::int32_t>(other)});
        }
    }
    for (const InterleavedBlocks &rule : interleavedByRows)
        if (std::none_of(
                pairs.begin(), pairs.end(), [&](const PairOfRow &pair) { return pair.row == rule.row; }))
            return Error{ErrorCode::InvalidInput,
                std::string("no stage that is named has both a ") + nameOf(rule.first) + " and a "
                    + nameOf(rule.second) + " block",
                "name passes, stages and lanes that the plan has", placeOf(rule.row, "rule")};
    for (const auto &[a, b, row] : pairs) {
        const auto refuse = [&](std::string message, std::string advice) {
            return Error{
                ErrorCode::InvalidInput, std::move(message), std::move(advice), placeOf(row, "rule")};
        };
        const std::string first = wordsOf(blockOfItem(a), a % m);
        const std::string second = wordsOf(blockOfItem(b), b % m);
        const auto &devices = blockOfItem(b).devices;
        if (std::none_of(blockOfItem(a).devices.begin(), blockOfItem(a).devices.end(),
                [&](DeviceId d) { return std::find(devices.begin(), devices.end(), d) != devices.end(); }))
            return refuse("the " + first + " and the " + second + " run on different devices",
                "name stages that share a device");
        for (const std::size_t item : {a, b})
            if (leaderOf[item] != item || besideOf[item] != item)
                return refuse(
                    "the " + (item == a ? first : second) + " runs side by side with another block already",
                    "choose another offset, or a schedule that interleaves nothing");
        leaderOf[b] = a;
        besideOf[a] = b;
        --left;
    }
    const auto forBoth = [&](std::size_t leader, const auto &act) {
        act(leader);
        if (besideOf[leader] != leader)
            act(besideOf[leader]);
    };
    std::map<std::size_t, std::vector<PieceOrder>> insidePairs; // what rows order in them, by leader
    std::vector<std::pair<std::size_t, std::size_t>> edges; // of data and rows, where rows pair blocks
    std::vector<Waiters::Link> links;
    const auto link = [&](std::size_t from, std::size_t to) {
        from = leaderOf[from];
        to = leaderOf[to];
        links.emplace_back(static_cast<std::int32_t>(from), static_cast<std::int32_t>(to));
        ++items[to].waitingFor;
    };
    const std::vector<std::pair<std::int32_t, std::int32_t>> sent = transferOrder(blocks);
    for (const auto &[earlier, later] : sent)
        if (const std::int32_t from = scheduled(earlier), to = scheduled(later); from >= 0 && to >= 0)
            for (std::size_t i = 0; i < m; ++i)
                link(static_cast<std::size_t>(from) * m + i, static_cast<std::size_t>(to) * m + i);
    const BlockDependency *before = nullptr;
    for (const BlockDependency &dependency : dependencies) {
        const std::int32_t from = scheduled(dependency.earlier);
        const std::int32_t to = scheduled(dependency.later);
        if (from < 0 || to < 0 || (from == to && dependency.offset == 0))
            continue;
        if (const std::int32_t size = dependency.groupSize; size > 0) {
            for (std::int32_t i = 0; i < microBatches; ++i)
                for (std::int32_t j = (i / size + dependency.offset) * size, k = 0; k < size; ++k)
                    if (j + k < microBatches)
                        link(static_cast<std::size_t>(from) * m + static_cast<std::size_t>(i),
                            static_cast<std::size_t>(to) * m + static_cast<std::size_t>(j + k));
            continue;
        }
        // What rows ask of several pieces of the same blocks, whole blocks are asked once.
        const bool again = before && isSameForBlocks(*before, dependency);
        before = &dependency;
        for (std::int32_t i = 0; i < microBatches; ++i)
            if (const std::int32_t j = i + dependency.offset;
                j >= 0 && j < microBatches && (dependency.microBatch < 0 || dependency.microBatch == i)) {
                const std::size_t a = static_cast<std::size_t>(from) * m + static_cast<std::size_t>(i);
                const std::size_t b = static_cast<std::size_t>(to) * m + static_cast<std::size_t>(j);
                if (dependency.row && leaderOf[a] == leaderOf[b]) {
                    insidePairs[leaderOf[a]].push_back(
                        {a == leaderOf[a], dependency.behind, dependency.before, dependency.row});
                    continue;
                }
                if (again)
                    continue;
                link(a, b);
                if (!pairs.empty())
                    edges.emplace_back(a, b);
            }
    }
    std::vector<std::vector<std::size_t>> ranks; // leaders, in the template's order
    for (const auto &rank : explicitly.ranks) {
        auto &order = ranks.emplace_back();
        for (const ScheduledBlock &next : rank)
            if (const auto item = itemOf(next); item && (order.empty() || order.back() != leaderOf[*item]))
                order.push_back(leaderOf[*item]);
    }
    if (rowsOrder && !ranks.empty()) { // rows come before templates
        std::set<std::size_t> seen; // blocks on all ranks stand in the order of the first
        for (auto &rank : ranks)
            std::erase_if(rank, [&](std::size_t item) { return !seen.insert(item).second; });
        std::vector<std::vector<std::int32_t>> next(items.size());
        for (const auto &[from, to] : links)
            next[static_cast<std::size_t>(from)].push_back(to);
        ranks = bentRanks(ranks, next);
    }
    for (const auto &rank : ranks)
        for (std::size_t i = 1; i < rank.size(); ++i)
            link(rank[i - 1], rank[i]);
    // Where nobody says otherwise, no micro-batch overtakes another: a stage that may hold no more would wait
    // with the later one for a stage that waits with the earlier one.
    if (ranks.empty() && !rowsOrder && pairs.empty() && schedule != ScheduleKind::Sequential)
        for (std::size_t item = 1; item < items.size(); ++item)
            if (item % m > 0)
                link(item - 1, item);
    const Waiters waiters(items.size(), links);
    const auto blockAt = [&](std::size_t item) -> const BlockInfo & {
        return blocks[static_cast<std::size_t>(repeated[item / m])];
    };
    const auto kindOf = [&](std::int32_t p) {
        return blocks[static_cast<std::size_t>(repeated[static_cast<std::size_t>(p)])].kind;
    };
    const auto isBackward = [&](std::int32_t p) { return planloom::isBackward(kindOf(p)); };
    std::int32_t forwardLeft = 0;
    bool anyBackward = false;
    const auto isTransfer = [&](std::size_t p) {
        return kindOf(static_cast<std::int32_t>(p)) == SegmentKind::Transfer;
    };
    for (std::size_t p = 0; p < repeated.size(); ++p) {
        forwardLeft += isBackward(static_cast<std::int32_t>(p)) || isTransfer(p) ? 0 : microBatches;
        anyBackward = anyBackward || isBackward(static_cast<std::int32_t>(p));
    }
    // Every lane of a stage holds micro-batches of its own: what is indexed by stage below is so by both.
    std::int32_t lanes = 1;
    for (const BlockInfo &block : blocks)
        lanes = std::max(lanes, block.lanes);
    const auto holderOf = [lanes](const BlockInfo &block) {
        return static_cast<std::size_t>(block.stage.index * lanes + block.lane);
    };
    const auto stages = static_cast<std::size_t>(std::max(stageCount, 1) * lanes);
    std::vector<std::int32_t> inFlight(stages, 0);
    std::vector<bool> hasBackward(stages, false);
    std::vector<bool> hasWeightGradient(stages, false); // what a stage holds, it holds until then
    for (std::size_t p = 0; p < repeated.size(); ++p) {
        const BlockInfo &block = blocks[static_cast<std::size_t>(repeated[p])];
        const auto stage = holderOf(block);
        hasBackward[stage] = hasBackward[stage] || planloom::isBackward(block.kind);
        hasWeightGradient[stage] = hasWeightGradient[stage] || block.kind == SegmentKind::WeightGradient;
    }
    // By position: what holds a micro-batch until this block is done, too. A lane does until all of its
    // stage's backward blocks are that run on its devices.
    std::vector<std::vector<std::size_t>> letsGoOf(repeated.size());
    std::vector<std::int32_t> backwardLeft(stages * m, 0); // slices until a micro-batch is let go
    for (std::size_t p = 0; p < repeated.size(); ++p) {
        const BlockInfo &block = blocks[static_cast<std::size_t>(repeated[p])];
        if (!planloom::isBackward(block.kind)
            || hasWeightGradient[holderOf(block)] != (block.kind == SegmentKind::WeightGradient))
            continue;
        std::set<std::size_t> holders{holderOf(block)};
        for (const std::int32_t b : repeated) {
            const BlockInfo &forward = blocks[static_cast<std::size_t>(b)];
            if (forward.kind == SegmentKind::Forward && forward.stage == block.stage
                && std::any_of(block.devices.begin(), block.devices.end(), [&](DeviceId device) {
                       return std::binary_search(forward.devices.begin(), forward.devices.end(), device);
                   }))
                holders.insert(holderOf(forward));
        }
        letsGoOf[p].assign(holders.begin(), holders.end());
        for (const std::size_t stage : letsGoOf[p])
            for (std::size_t i = 0; i < m; ++i)
                ++backwardLeft[stage * m + i];
    }
    // Backward blocks that need nothing of their forward block may run before it: those hold nothing.
    std::vector<bool> ranForward(stages * m, false);
    std::vector<bool> ranBackward(stages * m, false);
    const auto mayHold = [&](const BlockInfo &block, std::size_t microBatch) {
        const auto stage = holderOf(block);
        const auto s = static_cast<std::size_t>(block.stage.index);
        if (ranBackward[stage * m + microBatch] || ranForward[stage * m + microBatch])
            return true;
        const std::int32_t limit = s < inFlightLimits.size() ? inFlightLimits[s] : 0;
        if (limit > 0)
            return !hasBackward[stage] || inFlight[stage] < limit;
        return schedule != ScheduleKind::OneFOneB || !explicitly.ranks.empty() || !anyBackward
            || inFlight[stage] < stageCount - block.stage.index;
    };
    std::int32_t deviceCount = 0;
    for (const BlockInfo &block : blocks)
        for (const DeviceId device : block.devices)
            deviceCount = std::max(deviceCount, device.index + 1);
    std::vector<double> freeAt(static_cast<std::size_t>(deviceCount), 0);
    std::vector<double> sentAt = freeAt; // until when what it sends and receives takes
    std::vector<double> sentBackAt = freeAt; // of the backward pass
    const auto freeOf = [&](const BlockInfo &block) -> std::vector<double> & {
        if (block.kind != SegmentKind::Transfer)
            return freeAt;
        return goesBack(block, blocks) ? sentBackAt : sentAt;
    };
    ReceivedRuns received(blocks, microBatches);

    // What the items of a position have in common: they are looked at over and over.
    struct Place {
        const BlockInfo *block = nullptr;
        std::vector<double> *free = nullptr;
        bool backward = false;
        bool transfer = false;
        bool ofWeights = false; ///< Nobody waits for them.
    };
    std::vector<Place> places;
    for (const std::int32_t b : repeated) {
        const BlockInfo &block = blocks[static_cast<std::size_t>(b)];
        places.push_back({&block, &freeOf(block), planloom::isBackward(block.kind),
            block.kind == SegmentKind::Transfer, block.kind == SegmentKind::WeightGradient});
    }
    struct Ready {
        std::size_t item = 0;
        std::size_t position = 0;
        double microBatch = 0;
    };
    // Smaller is earlier among items that could start at the same time.
    const auto priority = [&](const Ready &ready) {
        const Place &place = places[ready.position];
        const double microBatch = ready.microBatch;
        const double rank = place.block->rank;
        if (place.transfer && schedule != ScheduleKind::Sequential)
            return std::array{-1.0, microBatch, rank}; // it takes no block's time
        switch (schedule) {
        case ScheduleKind::Sequential:
            return std::array{microBatch, rank, 0.0};
        case ScheduleKind::GPipe:
            return std::array{place.ofWeights ? 2.0 : place.backward ? 1.0 : 0.0, microBatch, rank};
        default:
            break;
        }
        return std::array{place.ofWeights ? 2.0 : place.backward ? 0.0 : 1.0, microBatch, rank};
    };

    struct Event {
        double time;
        std::int32_t sequence;
        BlockRun run;
    };
    std::vector<Event> events;
    std::int32_t sequence = 0;
    const auto readyItem = [m](std::size_t item) {
        return Ready{item, item / m, static_cast<double>(item % m)};
    };
    std::vector<Ready> ready;
    for (std::size_t i = 0; i < items.size(); ++i)
        if (items[i].waitingFor == 0 && leaderOf[i] == i)
            ready.push_back(readyItem(i));
    std::vector<std::int32_t> ran(repeated.size(), 0);
    std::vector<bool> isDone(items.size(), false);
    const auto isLeft = [&](const BlockDependency &dependency) {
        const std::int32_t from = scheduled(dependency.earlier);
        const std::int32_t to = scheduled(dependency.later);
        return from >= 0 && to >= 0 && ran[static_cast<std::size_t>(from)] < microBatches
            && ran[static_cast<std::size_t>(to)] < microBatches;
    };
    const auto startOf = [&](const Ready &leader) {
        double start = items[leader.item].readyAt;
        const auto waitForDevices = [&start](const Place &place) {
            for (const DeviceId device : place.block->devices)
                start = std::max(start, (*place.free)[static_cast<std::size_t>(device.index)]);
        };
        waitForDevices(places[leader.position]);
        if (const std::size_t beside = besideOf[leader.item]; beside != leader.item)
            waitForDevices(places[beside / m]);
        return start;
    };
    for (; left > 0; --left) {
        std::size_t best = ready.size();
        double bestStart = std::numeric_limits<double>::infinity();
        std::array<double, 3> bestPriority{};
        // First of all rules hold; then that what arrives waits for what came before it gives way; then
        // GPipe's, that backward blocks wait for all forward blocks, to limits of what is in flight; then
        // they do.
        for (const int lifted : {0, 1, 2, 3}) {
            for (std::size_t r = 0; r < ready.size(); ++r) {
                // What is no better needs no look at the rules. Under Sequential, priority alone decides.
                const double start = schedule == ScheduleKind::Sequential ? 0 : startOf(ready[r]);
                if (best != ready.size()
                    && (start > bestStart || (start == bestStart && priority(ready[r]) >= bestPriority)))
                    continue;
                const auto &[item, position, microBatch] = ready[r];
                const Place &place = places[position];
                const BlockInfo &block = *place.block;
                if (schedule == ScheduleKind::GPipe && place.backward && forwardLeft > 0 && lifted < 2)
                    continue;
                if (place.transfer && lifted < 1
                    && !received.mayArrive(repeated[position], static_cast<std::int32_t>(item % m)))
                    continue;
                const bool letsGo = besideOf[item] != item
                    && planloom::isBackward(blockAt(besideOf[item]).kind)
                    && holderOf(blockAt(besideOf[item])) == holderOf(block);
                if (!place.backward && !place.transfer && !letsGo && lifted < 3 && !mayHold(block, item % m))
                    continue;
                best = r;
                bestStart = start;
                bestPriority = priority(ready[r]);
            }
            if (best != ready.size())
                break; // a limit is only lifted where rows leave nothing else to run
        }
        if (best == ready.size()) {
            for (const BlockDependency &dependency : dependencies)
                if (dependency.row && isLeft(dependency)) {
                    const bool pairs = !explicitly.interleaved.empty();
                    return Error{ErrorCode::InvalidInput,
                        std::string("this order runs against the data flow or against another order row")
                            + (pairs ? ", or against blocks that " + std::string(nameOf(schedule))
                                        + " runs side by side"
                                     : ""),
                        pairs ? "remove the row, turn it around, or choose another schedule"
                              : "remove the row, or turn it around",
                        placeOf(dependency.row, "rule")};
                }
            if (const auto row = waitingPair(pairs, items.size(), edges))
                return Error{ErrorCode::InvalidInput,
                    "these blocks cannot run side by side: one of them waits for the other",
                    "choose another micro-batch offset", placeOf(*row, "rule")};
            for (const PairOfRow &pair : pairs)
                if (items[pair.first].waitingFor > 0)
                    return Error{ErrorCode::InvalidInput,
                        "these blocks cannot run side by side: the schedule, or what other rows pair, runs a "
                        "block between them that one of them waits for",
                        "choose another micro-batch offset, or another schedule", placeOf(pair.row, "rule")};
            if (std::any_of(dependencies.begin(), dependencies.end(),
                    [](const BlockDependency &dependency) { return dependency.groupSize > 0; }))
                return Error{ErrorCode::InvalidInput,
                    std::string("the schedule ") + nameOf(schedule)
                        + " runs micro-batches ahead of the updates that they wait for",
                    "keep more versions of the weights, update less often, or use the schedule 1f1b", "plan"};
            if (schedule == ScheduleKind::Listed)
                return stuckSchedule(
                    listed, [&](const ScheduledBlock &block) { return isDone[*itemOf(block)]; });
            return Error{ErrorCode::Internal, "the blocks of this plan wait for each other", {}, "plan"};
        }
        const std::size_t item = ready[best].item;
        const double start = startOf(ready[best]);
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
        double end = start;
        forBoth(item, [&](std::size_t each) { end += blockAt(each).seconds; });
        std::vector<BlockRun> runs;
        forBoth(item, [&](std::size_t each) {
            const std::size_t p = each / m;
            const BlockInfo &block = blockAt(each);
            ++ran[p];
            isDone[each] = true;
            for (const DeviceId device : block.devices)
                freeOf(block)[static_cast<std::size_t>(device.index)] = end;
            received.ran(repeated[p], static_cast<std::int32_t>(each % m));
            runs.push_back({repeated[p], static_cast<std::int32_t>(each % m)});
            if (isTransfer(p))
                return;
            const auto stage = holderOf(block);
            const std::size_t held = stage * m + each % m;
            for (const std::size_t holder : letsGoOf[p])
                if (const std::size_t its = holder * m + each % m; --backwardLeft[its] == 0) {
                    ranBackward[its] = true;
                    inFlight[holder] -= ranForward[its] ? 1 : 0;
                }
            if (!planloom::isBackward(block.kind)) {
                inFlight[stage] += ranBackward[held] || ranForward[held] ? 0 : 1;
                ranForward[held] = true;
                --forwardLeft;
            }
        });
        if (runs.size() > 1) {
            const auto rows = insidePairs.find(item);
            TRY(runs,
                pairedPieces(blocks, runs[0], runs[1],
                    rows == insidePairs.end() ? std::vector<PieceOrder>{} : rows->second));
        }
        for (const BlockRun &run : runs)
            events.push_back({start, sequence++, run});
        for (const std::int32_t next : waiters.of(item)) {
            Item &waiting = items[static_cast<std::size_t>(next)];
            waiting.readyAt = std::max(waiting.readyAt, end);
            if (--waiting.waitingFor == 0)
                ready.push_back(readyItem(static_cast<std::size_t>(next)));
        }
    }
    // By time, so that the order of communication is the order in which it becomes possible. Blocks were
    // chosen in an order that respects every dependency, and time never runs backwards along one.
    if (schedule != ScheduleKind::Sequential)
        std::stable_sort(events.begin(), events.end(), [&](const Event &a, const Event &b) {
            if (a.time != b.time)
                return a.time < b.time;
            const bool transferA =
                blocks[static_cast<std::size_t>(a.run.block)].kind == SegmentKind::Transfer;
            const bool transferB =
                blocks[static_cast<std::size_t>(b.run.block)].kind == SegmentKind::Transfer;
            if (transferA != transferB)
                return transferA;
            return a.sequence < b.sequence;
        });

    std::vector<BlockRun> order;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].kind == SegmentKind::Prologue && !blocks[b].devices.empty())
            order.push_back({static_cast<std::int32_t>(b), 0});
    for (const Event &event : events)
        order.push_back(event.run);
    return order;
}

} // namespace planloom
