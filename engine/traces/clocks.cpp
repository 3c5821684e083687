#include "engine/traces/clocks.h"

#include "engine/traces/trace_builder.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <utility>

namespace planloom {

namespace {

constexpr int kRounds = 4; ///< Of refinement behind the first estimate.
constexpr std::size_t kMostDifferences = 512; ///< Of one pair of ranks: a median needs no more.

/// An offset moved on, within what keeps all sums of times in 64 bits.
std::int64_t moved(std::int64_t offset, std::int64_t by)
{
    constexpr std::int64_t kMost = kMostTraceTime;
    return std::clamp(offset + std::clamp(by, -2 * kMost, 2 * kMost), -kMost, kMost);
}

bool endsTogether(TraceKind kind)
{
    return kind == TraceKind::AllReduce || kind == TraceKind::AllGather || kind == TraceKind::ReduceScatter
        || kind == TraceKind::AllToAll || kind == TraceKind::Barrier;
}

/// The lower one in the middle; `values` are reordered, and not empty.
std::int64_t medianOf(std::vector<std::int64_t> &values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

class Aligning
{
public:
    Aligning(const Trace &trace, const JoinedCollectives &joined)
        : m_trace(trace)
        , m_joined(joined)
    {
        for (const JoinedCollective &each : joined.collectives)
            if (each.end - each.begin > 1 && (endsTogether(each.kind) || each.kind == TraceKind::Send))
                (endsTogether(each.kind) ? m_used : m_messages).push_back(&each);
        if (m_used.empty())
            std::swap(m_used, m_messages);
        m_made.offset.assign(trace.ranks.size(), 0);
        m_made.evidence.assign(trace.ranks.size(), 0);
    }

    ClockAlignment align()
    {
        if (m_used.empty())
            return std::move(m_made);
        const std::int64_t before = residual();
        estimate();
        for (int round = 0; round < kRounds; ++round)
            refine();
        shareClocks();
        m_made.residual = residual();
        settle(before);
        return std::move(m_made);
    }

private:
    std::int64_t endOf(const JoinedMember &member) const
    {
        return m_trace.ranks[member.rank].events[member.event].end() + m_made.offset[member.rank];
    }

    /// Of each rank the others that it shares some of these with, and by how much their ends are apart.
    using Neighbours = std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>>;
    Neighbours neighboursBy(const std::vector<const JoinedCollective *> &shared) const
    {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> differences;
        for (const JoinedCollective *each : shared) {
            const JoinedMember &first = m_joined.members[each->begin];
            for (std::uint32_t i = each->begin + 1; i < each->end; ++i) {
                const JoinedMember &other = m_joined.members[i];
                auto &list = differences[{first.rank, other.rank}];
                if (list.size() < kMostDifferences)
                    list.push_back(endOf(first) - endOf(other));
            }
        }
        Neighbours neighbours(m_trace.ranks.size());
        for (auto &[pair, list] : differences) {
            const std::int64_t difference = medianOf(list);
            neighbours[pair.first].emplace_back(pair.second, difference);
            neighbours[pair.second].emplace_back(pair.first, -difference);
        }
        return neighbours;
    }

    /// From rank to rank along shared collectives; where these end, along messages, whose two ends are
    /// together as well, but less so.
    void estimate()
    {
        const Neighbours neighbours = neighboursBy(m_used);
        const Neighbours byMessages = neighboursBy(m_messages);
        std::vector<bool> known(m_trace.ranks.size(), false);
        std::queue<std::uint32_t> open;
        std::queue<std::uint32_t> later; // whose messages have not been looked at
        const auto go = [&](std::uint32_t rank, const Neighbours &along) {
            for (const auto &[other, difference] : along[rank])
                if (!known[other]) {
                    known[other] = true;
                    m_made.offset[other] = moved(m_made.offset[rank], difference);
                    open.push(other);
                }
        };
        for (std::uint32_t root = 0; root < known.size(); ++root) {
            if (known[root])
                continue;
            known[root] = true;
            open.push(root);
            while (!open.empty() || !later.empty()) {
                const bool isFirst = !open.empty();
                std::queue<std::uint32_t> &from = isFirst ? open : later;
                const std::uint32_t rank = from.front();
                from.pop();
                if (isFirst)
                    later.push(rank);
                go(rank, isFirst ? neighbours : byMessages);
            }
        }
    }

    std::int64_t middleOf(const JoinedCollective &each) const
    {
        std::vector<std::int64_t> ends;
        for (std::uint32_t i = each.begin; i < each.end; ++i)
            ends.push_back(endOf(m_joined.members[i]));
        return medianOf(ends);
    }

    /// Moves each rank by the median of what its ends are away from the middle of each collective.
    void refine()
    {
        std::vector<std::vector<std::int64_t>> away(m_trace.ranks.size());
        for (const JoinedCollective *each : m_used) {
            const std::int64_t middle = middleOf(*each);
            for (std::uint32_t i = each->begin; i < each->end; ++i) {
                const JoinedMember &member = m_joined.members[i];
                away[member.rank].push_back(middle - endOf(member));
            }
        }
        for (std::size_t r = 0; r < away.size(); ++r) {
            m_made.evidence[r] = static_cast<std::int64_t>(away[r].size());
            if (!away[r].empty())
                m_made.offset[r] = moved(m_made.offset[r], medianOf(away[r]));
        }
    }

    /// Ranks of one machine have one clock: what they differ by are ends, not clocks.
    void shareClocks()
    {
        std::map<std::string, std::vector<std::int64_t>> hosts;
        for (std::size_t r = 0; r < m_trace.ranks.size(); ++r)
            hosts[m_trace.ranks[r].host].push_back(m_made.offset[r]);
        hosts.erase("");
        for (auto &[host, offsets] : hosts) {
            const std::int64_t shared = medianOf(offsets);
            for (std::size_t r = 0; r < m_trace.ranks.size(); ++r)
                if (m_trace.ranks[r].host == host)
                    m_made.offset[r] = shared;
        }
    }

    std::int64_t residual() const
    {
        std::vector<std::int64_t> away;
        for (const JoinedCollective *each : m_used) {
            const std::int64_t middle = middleOf(*each);
            for (std::uint32_t i = each->begin; i < each->end; ++i)
                away.push_back(std::abs(middle - endOf(m_joined.members[i])));
        }
        return medianOf(away);
    }

    /// Times of the first rank stay. Clocks that agreed as well before are left alone: what is measured then
    /// are ends, not clocks.
    void settle(std::int64_t before)
    {
        const std::int64_t first = m_made.offset.front();
        std::int64_t most = 0;
        for (std::int64_t &offset : m_made.offset) {
            offset = moved(offset, -first);
            most = std::max(most, std::abs(offset));
        }
        if (most <= 4 * std::max<std::int64_t>(m_made.residual, 1000)) {
            std::fill(m_made.offset.begin(), m_made.offset.end(), 0);
            m_made.residual = before;
            most = 0;
        }
        m_made.isAdjusted = most > 0;
    }

    const Trace &m_trace;
    const JoinedCollectives &m_joined;
    std::vector<const JoinedCollective *> m_used{}; ///< Whose members end together.
    std::vector<const JoinedCollective *> m_messages{};
    ClockAlignment m_made{};
};

} // namespace

ClockAlignment alignClocks(const Trace &trace, const JoinedCollectives &joined)
{
    if (trace.ranks.empty())
        return {};
    return Aligning(trace, joined).align();
}

} // namespace planloom
