#pragma once

#include "engine/base/ids.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace planloom {

/// Plays runs of blocks, one after the other: what is ready, when each could start, and which of them comes
/// next. A run starts once all that it waits for has ended and all queues that it takes are free; it is over
/// when its caller says so. Who may run at all, and who goes first of those that could start at the same
/// time, are the caller's rules.
///
///     BlockPlayer<double> player(runs, links, queueSets);
///     while (const auto next = player.next(priorityOf, mayRun))
///         player.run(*next, player.startOf(*next) + secondsOf(*next));
///
/// @tparam Time  of a clock that begins at 0
template<typename Time> class BlockPlayer
{
public:
    struct Run {
        std::int32_t queues = 0; ///< Index of the set of queues that it takes.
        /// What it waits for besides links: each a `release`. One that nobody releases never runs.
        std::int32_t waitingFor = 0;
    };
    using Link = std::pair<std::int32_t, std::int32_t>; ///< The second run waits for the first.

    /// @param queueSets  queues count from 0
    BlockPlayer(std::vector<Run> runs, const std::vector<Link> &links,
        std::vector<std::vector<std::int32_t>> queueSets)
        : m_runs(std::move(runs))
        , m_readyAt(m_runs.size(), Time{})
        , m_queueSets(std::move(queueSets))
        , m_begin(m_runs.size() + 1, 0)
        , m_waiters(links.size())
    {
        for (const auto &[from, to] : links) {
            ++m_begin[at(from) + 1];
            ++m_runs[at(to)].waitingFor;
        }
        std::partial_sum(m_begin.begin(), m_begin.end(), m_begin.begin());
        std::vector<std::int32_t> place(m_begin.begin(), m_begin.end() - 1);
        for (const auto &[from, to] : links)
            m_waiters[at(place[at(from)]++)] = to;
        std::int32_t queues = 0;
        for (const auto &set : m_queueSets)
            for (const std::int32_t queue : set)
                queues = std::max(queues, queue + 1);
        m_freeAt.assign(at(queues), Time{});
        for (std::size_t run = 0; run < m_runs.size(); ++run)
            if (m_runs[run].waitingFor == 0)
                m_ready.push_back(run);
    }

    bool isWaiting(std::size_t run) const { return m_runs[run].waitingFor > 0; }

    /// Of a run that is ready: when it could start.
    Time startOf(std::size_t run) const
    {
        Time start = m_readyAt[run];
        for (const std::int32_t queue : m_queueSets[at(m_runs[run].queues)])
            start = std::max(start, m_freeAt[at(queue)]);
        return start;
    }

    /// Of what is ready and may run: what could start first (anything, where time does not count), of those
    /// the one of least priority, of those the one that has been ready for longest. Nothing where nothing may
    /// run. O(what is ready)
    template<typename PriorityOf, typename MayRun>
    std::optional<std::size_t> next(
        const PriorityOf &priorityOf, const MayRun &mayRun, bool timeCounts = true) const
    {
        std::optional<std::size_t> best;
        Time bestStart{};
        std::decay_t<decltype(priorityOf(std::size_t{}))> bestPriority{};
        for (const std::size_t run : m_ready) {
            // What is no better needs no look at the rules.
            const Time start = timeCounts ? startOf(run) : Time{};
            if (best && (start > bestStart || (start == bestStart && priorityOf(run) >= bestPriority)))
                continue;
            if (!mayRun(run))
                continue;
            best = run;
            bestStart = start;
            bestPriority = priorityOf(run);
        }
        return best;
    }

    /// Runs what is ready, until `end`: its queues are busy till then, and what waits for it waits no more.
    void run(std::size_t run, Time end)
    {
        m_ready.erase(std::find(m_ready.begin(), m_ready.end(), run));
        for (const std::int32_t queue : m_queueSets[at(m_runs[run].queues)])
            m_freeAt[at(queue)] = end;
        for (std::int32_t i = m_begin[run]; i < m_begin[run + 1]; ++i) {
            const std::size_t waiter = at(m_waiters[at(i)]);
            m_readyAt[waiter] = std::max(m_readyAt[waiter], end);
            release(waiter);
        }
    }

    /// The run waits for one thing less.
    void release(std::size_t run)
    {
        if (--m_runs[run].waitingFor == 0)
            m_ready.push_back(run);
    }

private:
    std::vector<Run> m_runs;
    std::vector<Time> m_readyAt; ///< By run.
    std::vector<std::vector<std::int32_t>> m_queueSets;
    std::vector<std::int32_t> m_begin; ///< By run, and one more: its first waiter.
    std::vector<std::int32_t> m_waiters; ///< In the order of the links.
    std::vector<Time> m_freeAt{}; ///< By queue.
    std::vector<std::size_t> m_ready{}; ///< In the order in which they came to be.
};

} // namespace planloom
