#include "engine/schedule/search/makespan_search.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/least_value.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace planloom {

namespace {

using Queue = std::pair<std::int32_t, std::int32_t>; ///< Device and queue.

void sortByStart(std::vector<BlockStart> &starts)
{
    std::sort(starts.begin(), starts.end(), [](const BlockStart &a, const BlockStart &b) {
        return std::tie(a.start, a.block, a.microBatch) < std::tie(b.start, b.block, b.microBatch);
    });
}

/// Dispatches blocks in time, the first of an order first.
class Dispatcher
{
public:
    Dispatcher(const Placement &placement, const std::vector<BlockStart> &like, std::int32_t microBatches)
        : m_placement(placement)
        , m_order(like)
        , m_held(at(placement.devices), 0)
    {
        sortByStart(m_order);
        std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> place;
        for (std::size_t i = 0; i < m_order.size(); ++i)
            place[{m_order[i].block, m_order[i].microBatch}] = i;
        m_next.resize(m_order.size());
        m_waiting.assign(m_order.size(), 0);
        m_readyAt.assign(m_order.size(), 0);
        for (const PlacementEdge &edge : placement.edges)
            for (std::size_t i = 0; i < m_order.size(); ++i)
                if (m_order[i].block == edge.after)
                    forEachRunBefore(
                        placement, edge, m_order[i].microBatch, microBatches, [&](std::int32_t before) {
                            m_next[place.at({edge.before, before})].push_back(i);
                            ++m_waiting[i];
                        });
        for (std::size_t i = 0; i < m_order.size(); ++i)
            if (m_waiting[i] == 0)
                m_ready.insert(i);
    }

    /// @return nothing where blocks that hold memory wait for others that find none
    std::vector<BlockStart> dispatch()
    {
        std::vector<BlockStart> starts;
        std::int64_t now = 0;
        while (starts.size() < m_order.size()) {
            giveBack(now);
            std::int64_t next = m_gives.empty() ? kNever : m_gives.top().first;
            for (auto it = m_ready.begin(); it != m_ready.end();) {
                const std::size_t i = *it;
                const std::int64_t from = std::max(m_readyAt[i], freeAt(i));
                if (from > now || !fits(i)) {
                    next = from > now ? std::min(next, from) : next;
                    ++it;
                    continue;
                }
                it = m_ready.erase(it);
                starts.push_back({m_order[i].block, m_order[i].microBatch, now});
                start(i, now);
                it = m_ready.begin(); // what it gave back may let others start
                next = m_gives.empty() ? kNever : m_gives.top().first;
            }
            if (next == kNever)
                break;
            now = std::max(next, now);
        }
        return starts.size() < m_order.size() ? std::vector<BlockStart>{} : starts;
    }

private:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

    const PlacementBlock &blockOf(std::size_t i) const { return m_placement.blocks[at(m_order[i].block)]; }

    std::int64_t freeAt(std::size_t i) const
    {
        std::int64_t free = 0;
        for (const std::int32_t device : blockOf(i).devices)
            if (const auto found = m_freeAt.find({device, blockOf(i).queue}); found != m_freeAt.end())
                free = std::max(free, found->second);
        return free;
    }

    static bool isLate(const PlacementBlock &block) { return block.memory < 0 && block.givesBackAtEnd; }
    static std::int64_t takenBy(const PlacementBlock &block)
    {
        return block.workspace + (isLate(block) ? 0 : block.memory);
    }

    bool fits(std::size_t i) const
    {
        const PlacementBlock &block = blockOf(i);
        return takenBy(block) <= 0 || m_placement.memoryLimit.empty()
            || std::all_of(block.devices.begin(), block.devices.end(), [&](std::int32_t device) {
                   return m_held[at(device)] + takenBy(block) <= m_placement.memoryLimit[at(device)];
               });
    }

    void start(std::size_t i, std::int64_t now)
    {
        const PlacementBlock &block = blockOf(i);
        for (const std::int32_t device : block.devices) {
            m_freeAt[{device, block.queue}] = now + block.time;
            m_held[at(device)] += takenBy(block);
        }
        if (isLate(block) || block.workspace > 0)
            m_gives.emplace(now + block.time, i);
        for (const std::size_t each : m_next[i]) {
            m_readyAt[each] = std::max(m_readyAt[each], now + block.time);
            if (--m_waiting[each] == 0)
                m_ready.insert(each);
        }
    }

    void giveBack(std::int64_t now)
    {
        for (; !m_gives.empty() && m_gives.top().first <= now; m_gives.pop())
            for (const std::int32_t device : blockOf(m_gives.top().second).devices)
                m_held[at(device)] +=
                    blockOf(m_gives.top().second).memory - takenBy(blockOf(m_gives.top().second));
    }

    const Placement &m_placement;
    std::vector<BlockStart> m_order{};
    std::vector<std::vector<std::size_t>> m_next{};
    std::vector<std::int32_t> m_waiting{};
    std::vector<std::int64_t> m_readyAt{};
    std::set<std::size_t> m_ready{};
    std::map<Queue, std::int64_t> m_freeAt{};
    std::vector<std::int64_t> m_held{};
    using Give = std::pair<std::int64_t, std::size_t>;
    std::priority_queue<Give, std::vector<Give>, std::greater<>> m_gives{};
};

} // namespace

// The steady state of a device that gives back before it takes can stand on gives that no warm-up has: its
// schedule is not valid.
void takeBetter(const Placement &placement, std::int32_t microBatches, std::vector<BlockStart> starts,
    MakespanAnswer &best)
{
    if (starts.empty() || !violationsOf(placement, microBatches, starts).empty())
        return;
    const auto measure = [&](const std::vector<BlockStart> &each) {
        const ScheduleFigures figures = figuresOf(placement, each);
        return std::tuple(figures.makespan,
            *std::max_element(figures.peakMemory.begin(), figures.peakMemory.end()), figures.inFlight);
    };
    const auto its = measure(starts);
    if (!best.starts.empty() && measure(best.starts) <= its)
        return;
    sortByStart(starts);
    best.starts = std::move(starts);
    best.makespan = std::get<0>(its);
}

namespace {

/// On every queue of every device: the shortest way to one of its blocks, all its work, and the shortest way
/// on.
/// @param once  what runs once counts as work of its queue, not only on the way on
std::int64_t busiestBound(
    const Placement &placement, const ChainLengths &chains, std::int32_t microBatches, bool once)
{
    struct Load {
        std::int64_t head = std::numeric_limits<std::int64_t>::max();
        std::int64_t work = 0; ///< Of all micro-batches.
        std::int64_t tail = std::numeric_limits<std::int64_t>::max();
    };
    std::map<Queue, Load> loads;
    for (std::size_t b = 0; b < placement.blocks.size(); ++b) {
        const PlacementBlock &block = placement.blocks[b];
        for (const std::int32_t device : block.devices) {
            if (block.once && !once)
                continue;
            Load &load = loads[{device, block.queue}];
            load.head = std::min(load.head, chains.upTo[b] - block.time);
            load.tail = std::min(load.tail, chains.from[b] - block.time);
            load.work += block.time * (block.once ? 1 : microBatches);
        }
    }
    std::int64_t bound = 0;
    for (const auto &[queue, load] : loads)
        bound = std::max(bound, load.head + load.work + load.tail);
    return bound;
}

} // namespace

std::int64_t makespanBound(const Placement &placement, std::int32_t microBatches)
{
    const ChainLengths chains = chainLengths(placement);
    return std::max({*std::max_element(chains.from.begin(), chains.from.end()),
        busiestBound(placement, chains, microBatches, false),
        busiestBound(placement, chains, microBatches, true)});
}

namespace {

/// Orders in which blocks may go first that need no steady state: the oldest micro-batch, or what the longest
/// chain hangs on; and both with what nobody waits for (gradients of weights) only where nothing else can
/// run.
std::vector<std::vector<BlockStart>> priorities(const Placement &placement, std::int32_t microBatches)
{
    const ChainLengths chains = chainLengths(placement);
    const std::int64_t longest = *std::max_element(chains.from.begin(), chains.from.end());
    std::vector<bool> isLast(placement.blocks.size(), true);
    std::vector<bool> isBehind(placement.blocks.size(), false); // waits for something
    for (const PlacementEdge &edge : placement.edges) {
        isLast[at(edge.before)] = isLast[at(edge.before)] && placement.blocks[at(edge.after)].once;
        isBehind[at(edge.after)] = true;
    }
    const PlacementRuns runs(placement, microBatches);
    std::vector<std::vector<BlockStart>> orders;
    for (const bool lastApart : {false, true})
        for (const bool oldestFirst : {false, true}) {
            auto &order = orders.emplace_back();
            const std::int64_t weight = oldestFirst ? longest + 1 : busiestQueue(placement);
            for (std::size_t b = 0; b < placement.blocks.size(); ++b)
                for (std::int32_t m = 0; m < runs.of(static_cast<std::int32_t>(b)); ++m) {
                    // What runs once behind the micro-batches comes with the last of them.
                    const std::int32_t age = placement.blocks[b].once && isBehind[b] ? microBatches : m;
                    order.push_back({static_cast<std::int32_t>(b), m,
                        age * weight + longest - chains.from[b]
                            + (lastApart && isLast[b] ? (microBatches + 1) * (longest + weight) : 0)});
                }
        }
    return orders;
}

} // namespace

MakespanAnswer makespanOf(
    const Placement &placement, const std::vector<RepeatingUnit> &steady, std::int32_t microBatches)
{
    MakespanAnswer best;
    best.bound = makespanBound(placement, microBatches);
    for (const RepeatingUnit &each : steady) {
        const std::vector<BlockStart> ordered =
            asEarlyAsOrdered(placement, unroll(placement, each, microBatches));
        takeBetter(placement, microBatches, ordered, best);
        takeBetter(placement, microBatches,
            asEarlyAsOrdered(placement, Dispatcher(placement, ordered, microBatches).dispatch()), best);
    }
    for (const auto &order : priorities(placement, microBatches))
        takeBetter(placement, microBatches,
            asEarlyAsOrdered(placement, Dispatcher(placement, order, microBatches).dispatch()), best);
    return best;
}

void searchMakespan(
    OptionSearch &search, std::int32_t microBatches, const ScheduleLimits &limits, MakespanAnswer &best)
{
    const Placement &whole = search.placement();
    if (best.proven() || PlacementRuns(whole, microBatches).count() > kMostSearchedStarts)
        return;
    // Without a steady state: everything one after another, if memory lets that be.
    std::int64_t most = 0;
    for (const PlacementBlock &block : whole.blocks)
        most += block.time * (block.once ? 1 : microBatches);
    for (const MemoryOption &option : whole.options)
        most += (option.time + (option.kind == OptionKind::Offload ? option.backTime : 0)) * microBatches;
    if (!best.starts.empty())
        most = best.makespan - 1;
    const auto holds = [&](std::int64_t makespan) {
        return search.easedProblem().unrolled(microBatches, makespan).propagate();
    };
    const auto attempt = [&](std::int64_t makespan, std::int64_t nodes) {
        const OptionSearch::Question question{.busy = makespan / microBatches,
            .microBatches = microBatches,
            .starts = [=](const StartProblem &problem) -> std::optional<StartSearch> {
                if (makespanBound(problem.placement(), microBatches) > makespan)
                    return std::nullopt;
                return problem.unrolled(microBatches, makespan);
            }};
        ValueAttempt found{search.find(question, limits, nodes), makespan};
        if (found.outcome == SearchOutcome::Found) {
            const Placement &placement = search.problem().placement();
            std::vector<BlockStart> starts;
            const PlacementRuns runs(placement, microBatches);
            for (std::int32_t i = 0; i < runs.count(); ++i)
                starts.push_back({runs.run(i).block, runs.run(i).microBatch, search.starts()[at(i)]});
            starts = asEarlyAsOrdered(placement, std::move(starts));
            found.achieved = figuresOf(placement, starts).makespan;
            MakespanAnswer own{.choices = search.choices()};
            takeBetter(placement, microBatches, std::move(starts), own);
            if (!own.starts.empty() && (best.starts.empty() || own.makespan < best.makespan)) {
                own.bound = best.bound;
                best = std::move(own);
            }
        }
        return found;
    };
    const LeastValue least = leastValue(best.bound, most, limits, holds, attempt);
    if (least.none && best.starts.empty())
        best.none = true;
    best.bound =
        best.starts.empty() ? least.bound : std::min(best.makespan, least.none ? best.makespan : least.bound);
}

} // namespace planloom
