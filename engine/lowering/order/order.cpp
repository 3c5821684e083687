#include "engine/lowering/order/order.h"

#include "engine/lowering/order/bent_ranks.h"
#include "engine/lowering/order/block_setting.h"
#include "engine/lowering/order/held_micro_batches.h"
#include "engine/lowering/order/order_items.h"
#include "engine/lowering/order/paired_items.h"
#include "engine/lowering/order/paired_pieces.h"
#include "engine/lowering/order/received_runs.h"
#include "engine/schedule/play_blocks.h"
#include "engine/schedule/schedule.h"
#include "engine/table/table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace planloom {

namespace {

/// What `orderBlocks` is asked.
struct OrderQuestion {
    const std::vector<BlockInfo> &blocks;
    const std::vector<BlockDependency> &dependencies;
    std::int32_t microBatches;
    std::int32_t stageCount;
    ScheduleKind schedule;
    const std::vector<std::int32_t> &inFlight;
    const std::vector<InterleavedBlocks> &interleaved;
    const Schedule &listed;

    bool rowsOrder() const
    {
        return std::any_of(dependencies.begin(), dependencies.end(),
            [](const BlockDependency &dependency) { return dependency.row.valid(); });
    }
};

/// What waits for what, before anything runs.
struct OrderLinks {
    std::vector<BlockPlayer<double>::Link> links{}; ///< Of items that lead.
    /// Of data and rows, between all items; where rows pair some.
    std::vector<std::pair<std::size_t, std::size_t>> edges{};
    std::map<std::size_t, std::vector<PieceOrder>> insidePairs{}; ///< What rows order in them, by leader.
};

/// Finds those.
class LinkFinder
{
public:
    LinkFinder(const OrderQuestion &asked, const OrderItems &items, const PairedItems &pairs)
        : m_asked(asked)
        , m_items(items)
        , m_pairs(pairs)
    {
    }

    OrderLinks find(const Schedule &followed)
    {
        for (const auto &[earlier, later] : transferOrder(m_asked.blocks))
            if (const std::int32_t from = m_items.positionOf(earlier), to = m_items.positionOf(later);
                from >= 0 && to >= 0)
                for (std::int32_t i = 0; i < m_asked.microBatches; ++i)
                    link(m_items.itemAt(from, i), m_items.itemAt(to, i));
        const BlockDependency *before = nullptr;
        for (const BlockDependency &dependency : m_asked.dependencies) {
            const std::int32_t from = m_items.positionOf(dependency.earlier);
            const std::int32_t to = m_items.positionOf(dependency.later);
            if (from < 0 || to < 0 || (from == to && dependency.offset == 0))
                continue;
            if (dependency.groupSize > 0) {
                addGroups(dependency, from, to);
                continue;
            }
            // What rows ask of several pieces of the same blocks, whole blocks are asked once.
            add(dependency, from, to, before && isSameForBlocks(*before, dependency));
            before = &dependency;
        }
        addRanks(followed);
        return std::move(m_result);
    }

private:
    void link(std::size_t from, std::size_t to)
    {
        m_result.links.emplace_back(static_cast<std::int32_t>(m_pairs.leaderOf(from)),
            static_cast<std::int32_t>(m_pairs.leaderOf(to)));
    }

    /// Whether two dependencies say the same of blocks that do not run side by side.
    static bool isSameForBlocks(const BlockDependency &a, BlockDependency b)
    {
        b.behind = a.behind;
        b.before = a.before;
        return a == b;
    }

    void addGroups(const BlockDependency &dependency, std::int32_t from, std::int32_t to)
    {
        const std::int32_t size = dependency.groupSize;
        for (std::int32_t i = 0; i < m_asked.microBatches; ++i)
            for (std::int32_t j = (i / size + dependency.offset) * size, k = 0; k < size; ++k)
                if (j + k < m_asked.microBatches)
                    link(m_items.itemAt(from, i), m_items.itemAt(to, j + k));
    }

    void add(const BlockDependency &dependency, std::int32_t from, std::int32_t to, bool again)
    {
        for (std::int32_t i = 0; i < m_asked.microBatches; ++i) {
            const std::int32_t j = i + dependency.offset;
            if (j < 0 || j >= m_asked.microBatches
                || (dependency.microBatch >= 0 && dependency.microBatch != i))
                continue;
            const std::size_t a = m_items.itemAt(from, i);
            const std::size_t b = m_items.itemAt(to, j);
            const std::size_t leader = m_pairs.leaderOf(a);
            if (dependency.row && leader == m_pairs.leaderOf(b)) {
                m_result.insidePairs[leader].push_back(
                    {a == leader, dependency.behind, dependency.before, dependency.row});
            } else if (!again) {
                link(a, b);
                if (!m_pairs.ofRows().empty())
                    m_result.edges.emplace_back(a, b);
            }
        }
    }

    void addRanks(const Schedule &followed)
    {
        std::vector<std::vector<std::size_t>> ranks; // items that lead, in the schedule's order
        for (const auto &rank : followed.ranks) {
            auto &order = ranks.emplace_back();
            for (const ScheduledBlock &next : rank)
                if (const auto item = m_items.find(next);
                    item && (order.empty() || order.back() != m_pairs.leaderOf(*item)))
                    order.push_back(m_pairs.leaderOf(*item));
        }
        const bool rowsOrder = m_asked.rowsOrder();
        if (rowsOrder && !ranks.empty()) { // rows come before templates
            std::set<std::size_t> seen; // blocks on all ranks stand in the order of the first
            for (auto &rank : ranks)
                std::erase_if(rank, [&](std::size_t item) { return !seen.insert(item).second; });
            std::vector<std::vector<std::int32_t>> next(m_items.count());
            for (const auto &[from, to] : m_result.links)
                next[static_cast<std::size_t>(from)].push_back(to);
            ranks = bentRanks(ranks, next);
        }
        for (const auto &rank : ranks)
            for (std::size_t i = 1; i < rank.size(); ++i)
                link(rank[i - 1], rank[i]);
        // Where nobody says otherwise, no micro-batch overtakes another: a stage that may hold no more would
        // wait with the later one for a stage that waits with the earlier one.
        if (ranks.empty() && !rowsOrder && m_pairs.ofRows().empty()
            && m_asked.schedule != ScheduleKind::Sequential)
            for (std::size_t item = 1; item < m_items.count(); ++item)
                if (m_items.microBatchOf(item) > 0)
                    link(item - 1, item);
    }

    const OrderQuestion &m_asked;
    const OrderItems &m_items;
    const PairedItems &m_pairs;
    OrderLinks m_result{};
};

/// Plays all items by the rules of the schedule.
class OrderPlay
{
public:
    OrderPlay(const OrderQuestion &asked, const OrderItems &items, const PairedItems &pairs,
        const Schedule &followed)
        : m_asked(asked)
        , m_items(items)
        , m_pairs(pairs)
        , m_followed(followed)
        , m_links(LinkFinder(asked, items, pairs).find(followed))
        , m_held(items,
              {asked.stageCount, asked.inFlight,
                  asked.schedule == ScheduleKind::OneFOneB && followed.ranks.empty()})
        , m_received(asked.blocks, asked.microBatches)
        , m_player(playerOf(asked, items, pairs, m_links))
        , m_isDone(items.count(), false)
    {
        for (std::size_t p = 0; p < items.positions(); ++p) {
            const SegmentKind kind = items.at(p).kind;
            m_forwardLeft += isBackward(kind) || kind == SegmentKind::Transfer ? 0 : asked.microBatches;
        }
        for (std::size_t item = 0; item < items.count(); ++item) {
            m_priorities.push_back(priorityOf(item));
            m_left += pairs.leads(item) ? 1 : 0;
        }
    }

    /// In the order in which they start; of those that start together, transfers first.
    Result<std::vector<BlockRun>> play()
    {
        for (; m_left > 0; --m_left) {
            const auto next = findNext();
            if (!next)
                return stuck();
            TRY_VOID(run(*next));
        }
        // By time, so that the order of communication is the order in which it becomes possible. Blocks were
        // chosen in an order that respects every dependency, and time never runs backwards along one.
        const auto isTransfer = [&](const Event &event) {
            return m_asked.blocks[static_cast<std::size_t>(event.run.block)].kind == SegmentKind::Transfer;
        };
        if (m_asked.schedule != ScheduleKind::Sequential)
            std::stable_sort(m_events.begin(), m_events.end(), [&](const Event &a, const Event &b) {
                return a.time != b.time ? a.time < b.time : isTransfer(a) && !isTransfer(b);
            });
        std::vector<BlockRun> order;
        for (const Event &event : m_events)
            order.push_back(event.run);
        return order;
    }

private:
    /// Rules that give way, one after the other, where they leave nothing to run.
    enum class GivesWay : std::uint8_t {
        Nothing,
        Arrivals, ///< That what arrives waits for what came before it.
        ForwardFirst, ///< GPipe's, that backward blocks wait for all forward blocks.
        Limits, ///< Of what is in flight.
    };
    struct Event {
        double time;
        BlockRun run;
    };
    using Priority = std::array<double, 3>;

    /// Every device computes in one queue, and sends and receives in another one for each pass.
    static BlockPlayer<double> playerOf(const OrderQuestion &asked, const OrderItems &items,
        const PairedItems &pairs, const OrderLinks &links)
    {
        std::vector<std::vector<std::int32_t>> queueSets(items.positions());
        for (std::size_t p = 0; p < queueSets.size(); ++p) {
            const BlockInfo &block = items.at(p);
            const std::int32_t queue = block.kind != SegmentKind::Transfer ? 0
                : goesBack(block, asked.blocks)                            ? 2
                                                                           : 1;
            for (const DeviceId device : block.devices)
                queueSets[p].push_back(3 * device.index + queue);
        }
        std::vector<BlockPlayer<double>::Run> runs(items.count());
        for (std::size_t item = 0; item < items.count(); ++item) {
            auto set = items.positionOfItem(item);
            if (!pairs.leads(item)) {
                runs[item].waitingFor = 1; // for ever: its leader runs
            } else if (pairs.isPair(item)) {
                const auto &others = queueSets[items.positionOfItem(pairs.besideOf(item))];
                std::vector<std::int32_t> both = queueSets[set];
                both.insert(both.end(), others.begin(), others.end());
                set = queueSets.size();
                queueSets.push_back(std::move(both));
            }
            runs[item].queues = static_cast<std::int32_t>(set);
        }
        return {std::move(runs), links.links, std::move(queueSets)};
    }

    /// Smaller is earlier among items that could start at the same time.
    Priority priorityOf(std::size_t item) const
    {
        const BlockInfo &block = m_items.blockOf(item);
        const auto microBatch = static_cast<double>(m_items.microBatchOf(item));
        const bool backward = isBackward(block.kind);
        if (m_asked.schedule == ScheduleKind::Sequential)
            return {microBatch, block.rank, 0.0};
        if (block.kind == SegmentKind::Transfer)
            return {-1.0, microBatch, block.rank}; // it takes no block's time
        if (block.kind == SegmentKind::WeightGradient)
            return {2.0, microBatch, block.rank}; // nobody waits for it
        return {m_asked.schedule == ScheduleKind::GPipe ? (backward ? 1.0 : 0.0) : (backward ? 0.0 : 1.0),
            microBatch, block.rank};
    }

    bool mayRun(std::size_t item, GivesWay given) const
    {
        const SegmentKind kind = m_items.blockOf(item).kind;
        const bool backward = isBackward(kind);
        if (m_asked.schedule == ScheduleKind::GPipe && backward && m_forwardLeft > 0
            && given < GivesWay::ForwardFirst)
            return false;
        if (kind == SegmentKind::Transfer) {
            const BlockRun run = m_items.runOf(item);
            return given >= GivesWay::Arrivals || m_received.mayArrive(run.block, run.microBatch);
        }
        const std::size_t beside = m_pairs.besideOf(item);
        const bool letsGo =
            beside != item && isBackward(m_items.blockOf(beside).kind) && m_held.shareLane(item, beside);
        return backward || letsGo || given >= GivesWay::Limits || m_held.mayHold(item);
    }

    std::optional<std::size_t> findNext() const
    {
        std::optional<std::size_t> next;
        for (const GivesWay given :
            {GivesWay::Nothing, GivesWay::Arrivals, GivesWay::ForwardFirst, GivesWay::Limits})
            if (!next)
                next =
                    m_player.next([this](std::size_t item) -> const Priority & { return m_priorities[item]; },
                        [&](std::size_t item) { return mayRun(item, given); },
                        m_asked.schedule != ScheduleKind::Sequential);
        return next;
    }

    Result<void> run(std::size_t leader)
    {
        const double start = m_player.startOf(leader);
        double end = start + m_items.blockOf(leader).seconds;
        note(leader);
        std::vector<BlockRun> runs{m_items.runOf(leader)};
        if (const std::size_t beside = m_pairs.besideOf(leader); beside != leader) {
            end += m_items.blockOf(beside).seconds;
            note(beside);
            TRY(runs,
                pairedPieces(m_asked.blocks, runs[0], m_items.runOf(beside), m_links.insidePairs[leader]));
        }
        for (const BlockRun &run : runs)
            m_events.push_back({start, run});
        m_player.run(leader, end);
        return {};
    }

    void note(std::size_t item)
    {
        const BlockRun run = m_items.runOf(item);
        const SegmentKind kind = m_items.blockOf(item).kind;
        m_isDone[item] = true;
        m_received.ran(run.block, run.microBatch);
        if (kind == SegmentKind::Transfer)
            return;
        m_held.ran(item);
        m_forwardLeft -= isBackward(kind) ? 0 : 1;
    }

    /// Whether some runs of the block are left.
    bool isLeft(std::int32_t block) const
    {
        const std::int32_t position = m_items.positionOf(block);
        for (std::int32_t i = 0; position >= 0 && i < m_asked.microBatches; ++i)
            if (!m_isDone[m_items.itemAt(position, i)])
                return true;
        return false;
    }

    /// Why nothing may run though not all has.
    Error stuck() const
    {
        const auto refuse = [](std::string message, std::string advice, std::string where = "plan") {
            return Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), std::move(where)};
        };
        const auto isAny = [](const BlockDependency &dependency) { return dependency.groupSize > 0; };
        for (const BlockDependency &dependency : m_asked.dependencies)
            if (dependency.row && isLeft(dependency.earlier) && isLeft(dependency.later)) {
                const std::string message =
                    "this order runs against the data flow or against another order row";
                const std::string where = placeOf(dependency.row, "rule");
                return !m_followed.interleaved.empty()
                    ? refuse(message + ", or against blocks that " + nameOf(m_asked.schedule)
                            + " runs side by side",
                        "remove the row, turn it around, or choose another schedule", where)
                    : refuse(message, "remove the row, or turn it around", where);
            }
        if (const auto row = m_pairs.waitingPair(m_links.edges))
            return refuse("these blocks cannot run side by side: one of them waits for the other",
                "choose another micro-batch offset", placeOf(*row, "rule"));
        for (const PairedItems::PairOfRow &pair : m_pairs.ofRows())
            if (m_player.isWaiting(pair.first))
                return refuse(
                    "these blocks cannot run side by side: the schedule, or what other rows pair, runs a "
                    "block between them that one of them waits for",
                    "choose another micro-batch offset, or another schedule", placeOf(pair.row, "rule"));
        if (std::any_of(m_asked.dependencies.begin(), m_asked.dependencies.end(), isAny))
            return refuse(std::string("the schedule ") + nameOf(m_asked.schedule)
                    + " runs micro-batches ahead of the updates that they wait for",
                "keep more versions of the weights, update less often, or use the schedule 1f1b");
        if (m_asked.schedule == ScheduleKind::Listed)
            return refuse("the listed schedule stops: its ranks wait for one another before " + firstLeft(),
                "list every block behind those that it reads");
        return {ErrorCode::Internal, "the blocks of this plan wait for each other", {}, "plan"};
    }

    /// Of a listed schedule: the first block of each rank that has not run.
    std::string firstLeft() const
    {
        std::string places;
        for (const auto &rank : m_asked.listed.ranks) {
            const auto left = std::find_if(rank.begin(), rank.end(),
                [&](const ScheduledBlock &block) { return !m_isDone[*m_items.find(block)]; });
            if (left != rank.end())
                places += (places.empty() ? "" : ", ") + toString(*left);
        }
        return places;
    }

    const OrderQuestion &m_asked;
    const OrderItems &m_items;
    const PairedItems &m_pairs;
    const Schedule &m_followed;
    OrderLinks m_links;
    HeldMicroBatches m_held;
    ReceivedRuns m_received;
    BlockPlayer<double> m_player;
    std::vector<Priority> m_priorities{}; ///< By item.
    std::vector<bool> m_isDone; ///< By item.
    std::int32_t m_forwardLeft = 0; ///< That have not run.
    std::int32_t m_left = 0; ///< Items that lead and have not run.
    std::vector<Event> m_events{};
};

/// A listed schedule names every block that it names once, and only those of the plan.
Result<void> checkListed(const OrderQuestion &asked, const OrderItems &items)
{
    std::set<ScheduledBlock> named;
    for (const auto &rank : asked.listed.ranks)
        for (const ScheduledBlock &block : rank) {
            const bool isKnown = items.find(block).has_value();
            if (isKnown && named.insert(block).second)
                continue;
            return Error{ErrorCode::InvalidInput,
                "the listed schedule has block " + toString(block)
                    + (isKnown ? " twice" : ", which the plan has not"),
                "list the blocks of the plan's " + std::to_string(asked.stageCount) + " stages and "
                    + std::to_string(asked.microBatches) + " micro-batches, each once",
                "plan"};
        }
    return {};
}

/// The order of each rank, where the schedule has one.
Result<Schedule> scheduleToFollow(const OrderQuestion &asked)
{
    if (asked.schedule == ScheduleKind::Listed)
        return asked.listed;
    const auto setting = [&] { return settingOf(asked.blocks, asked.microBatches, asked.stageCount); };
    if (const auto make = scheduleTemplates()[static_cast<std::size_t>(asked.schedule)].make) {
        const ScheduleSetting own = setting();
        TRY(const Schedule made, make(own));
        return inSlices(made, own.slices);
    }
    const bool limited = std::any_of(
        asked.inFlight.begin(), asked.inFlight.end(), [](std::int32_t limit) { return limit > 0; });
    if (asked.schedule == ScheduleKind::OneFOneB && !asked.rowsOrder() && !limited
        && asked.interleaved.empty()) {
        const ScheduleSetting own = setting();
        if (const auto interlaced = interlacedSchedule(own))
            return inSlices(*interlaced, own.slices);
    }
    return asked.listed;
}

} // namespace

Result<std::vector<BlockRun>> orderBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dependencies, std::int32_t microBatches, std::int32_t stageCount,
    ScheduleKind schedule, const std::vector<std::int32_t> &inFlight,
    const std::vector<InterleavedBlocks> &interleaved, const Schedule &listed)
{
    const OrderQuestion asked{
        blocks, dependencies, microBatches, stageCount, schedule, inFlight, interleaved, listed};
    const OrderItems items(blocks, microBatches);
    TRY_VOID(checkListed(asked, items));
    TRY(const Schedule followed, scheduleToFollow(asked));
    PairedItems pairs(items);
    pairs.pairAsIn(followed);
    TRY_VOID(pairs.pairByRows(interleaved, stageCount));
    TRY(auto order, OrderPlay(asked, items, pairs, followed).play());
    std::vector<BlockRun> prologues;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].kind == SegmentKind::Prologue && !blocks[b].devices.empty())
            prologues.push_back({static_cast<std::int32_t>(b), 0});
    order.insert(order.begin(), prologues.begin(), prologues.end());
    return order;
}

} // namespace planloom
