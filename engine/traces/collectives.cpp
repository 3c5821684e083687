#include "engine/traces/collectives.h"

#include "engine/base/words.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// What is the same of one collective on all ranks.
struct JoinKey {
    std::uint32_t group = 0;
    std::int32_t source = -1; ///< Of messages.
    std::int32_t target = -1;
    TraceKind kind{};
    bool isNumbered = false;
    std::int64_t step = -1; ///< Of what has no number.
    std::int64_t number = 0;
    std::int32_t again = 0; ///< The n-th of this number.
    friend auto operator<=>(const JoinKey &, const JoinKey &) = default;
};

struct Participant {
    JoinKey key{};
    std::int64_t start = 0;
    JoinedMember member{};
};

/// Starts of a rank's steps, in order, with their numbers.
std::vector<std::pair<std::int64_t, std::int64_t>> stepsOf(const RankTrace &rank)
{
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;
    for (const TraceEvent &event : rank.events)
        if (event.kind == TraceKind::Step)
            steps.emplace_back(event.start, event.link);
    std::sort(steps.begin(), steps.end());
    return steps;
}

class Joining
{
public:
    explicit Joining(const Trace &trace)
        : m_trace(trace)
    {
    }

    JoinedCollectives join()
    {
        for (std::size_t r = 0; r < m_trace.ranks.size(); ++r)
            collect(static_cast<std::uint32_t>(r));
        std::sort(
            m_participants.begin(), m_participants.end(), [](const Participant &a, const Participant &b) {
                return std::tie(a.key, a.member.rank, a.start) < std::tie(b.key, b.member.rank, b.start);
            });
        for (std::size_t begin = 0; begin < m_participants.size();) {
            std::size_t end = begin;
            while (end < m_participants.size() && m_participants[end].key == m_participants[begin].key)
                ++end;
            take(begin, end);
            begin = end;
        }
        completeGroups();
        return std::move(m_joined);
    }

private:
    /// Groups of one name and the same members are one; a name alone where a trace does not list them.
    std::uint32_t groupOf(const RankTrace &rank, const TraceCollective &collective)
    {
        static const TraceGroup kUnnamed;
        const TraceGroup &group = collective.group == kNoLink ? kUnnamed : rank.groups[collective.group];
        std::vector<std::int32_t> ranks = group.ranks;
        std::sort(ranks.begin(), ranks.end());
        const auto [found, isNew] = m_groups.emplace(
            std::pair(group.name, ranks), static_cast<std::uint32_t>(m_joined.groups.size()));
        if (isNew)
            m_joined.groups.push_back({group.name, group.description, std::move(ranks), group.size});
        return found->second;
    }

    void collect(std::uint32_t index)
    {
        const RankTrace &rank = m_trace.ranks[index];
        const auto steps = stepsOf(rank);
        std::vector<std::uint32_t> events;
        for (std::size_t i = 0; i < rank.events.size(); ++i)
            if (isCommunication(rank.events[i].kind) && rank.events[i].link != kNoLink)
                events.push_back(static_cast<std::uint32_t>(i));
        std::stable_sort(events.begin(), events.end(),
            [&](std::uint32_t a, std::uint32_t b) { return rank.events[a].start < rank.events[b].start; });
        std::map<JoinKey, std::int64_t> next; // number of the next one without a number, or of this number
        for (const std::uint32_t i : events) {
            const TraceEvent &event = rank.events[i];
            const TraceCollective &collective = rank.collectives[event.link];
            JoinKey key{.group = groupOf(rank, collective), .kind = event.kind};
            if (event.kind == TraceKind::Send || event.kind == TraceKind::Recv) {
                key.kind = TraceKind::Send;
                key.source =
                    event.kind == TraceKind::Send && collective.source < 0 ? rank.rank : collective.source;
                key.target =
                    event.kind == TraceKind::Recv && collective.target < 0 ? rank.rank : collective.target;
            }
            // Both ends of a message count it on their own: their numbers in the group are not the same.
            key.isNumbered = collective.sequence >= 0 && key.kind != TraceKind::Send;
            if (key.isNumbered) {
                key.number = collective.sequence;
            } else {
                const auto step = std::upper_bound(
                    steps.begin(), steps.end(), std::pair(event.start, static_cast<std::int64_t>(kNoLink)));
                if (step != steps.begin())
                    key.step = std::prev(step)->second;
            }
            const std::int64_t ordinal = next[key]++;
            if (key.isNumbered)
                key.again = static_cast<std::int32_t>(std::min<std::int64_t>(ordinal, INT32_MAX));
            else
                key.number = ordinal;
            m_participants.push_back({key, event.start, {index, i}});
        }
    }

    void take(std::size_t begin, std::size_t end)
    {
        JoinedCollective made;
        const JoinKey &key = m_participants[begin].key;
        made.kind = key.kind;
        made.group = key.group;
        made.sequence = key.isNumbered ? key.number : -1;
        made.begin = static_cast<std::uint32_t>(m_joined.members.size());
        for (std::size_t i = begin; i < end; ++i) {
            const JoinedMember member = m_participants[i].member;
            if (i > begin && member.rank == m_participants[i - 1].member.rank && key.kind != TraceKind::Send)
                continue; // a rank is in a collective once
            const RankTrace &rank = m_trace.ranks[member.rank];
            const TraceCollective &collective = rank.collectives[rank.events[member.event].link];
            made.bytes = std::max({made.bytes, collective.inBytes, collective.outBytes});
            m_joined.members.push_back(member);
        }
        made.end = static_cast<std::uint32_t>(m_joined.members.size());
        m_joined.alone += made.end - made.begin == 1 ? 1 : 0;
        m_joined.collectives.push_back(made);
    }

    /// What no trace says of a group is what was seen; collectives get the order in which they ran.
    void completeGroups()
    {
        std::vector<std::vector<std::int32_t>> seen(m_joined.groups.size());
        for (const JoinedCollective &each : m_joined.collectives)
            for (std::uint32_t i = each.begin; i < each.end; ++i)
                seen[each.group].push_back(m_trace.ranks[m_joined.members[i].rank].rank);
        for (std::size_t g = 0; g < seen.size(); ++g) {
            JoinedGroup &group = m_joined.groups[g];
            if (group.ranks.empty()) {
                std::sort(seen[g].begin(), seen[g].end());
                seen[g].erase(std::unique(seen[g].begin(), seen[g].end()), seen[g].end());
                group.ranks = std::move(seen[g]);
            }
            if (group.size <= 0)
                group.size = static_cast<std::int32_t>(group.ranks.size());
        }
        const auto startOf = [&](const JoinedCollective &each) {
            const JoinedMember &first = m_joined.members[each.begin];
            return m_trace.ranks[first.rank].events[first.event].start;
        };
        std::stable_sort(m_joined.collectives.begin(), m_joined.collectives.end(),
            [&](const JoinedCollective &a, const JoinedCollective &b) {
                return std::tuple(a.group, startOf(a)) < std::tuple(b.group, startOf(b));
            });
    }

    const Trace &m_trace;
    JoinedCollectives m_joined{};
    std::map<std::pair<std::string, std::vector<std::int32_t>>, std::uint32_t> m_groups{};
    std::vector<Participant> m_participants{};
};

} // namespace

std::string JoinedGroup::words() const
{
    std::string title = !description.empty() && description != "undefined" ? description
        : !name.empty()                                                    ? "group " + name
                                                                           : "no group";
    return title + ": " + rangesOf(ranks, kFewRuns);
}

JoinedCollectives joinCollectives(const Trace &trace)
{
    return Joining(trace).join();
}

} // namespace planloom
