#include "engine/search/partition/halos.h"

#include <algorithm>

namespace planloom {

namespace {

/// Two of a group that are furthest from each other.
GroupShape pairIn(GroupShape group)
{
    group.ranks = std::min(group.ranks, 2);
    group.nodes = std::min(group.nodes, 2);
    for (std::int32_t &level : group.outer)
        level = std::min(level, 2);
    return group;
}

bool overlap(const std::vector<Range> &pieces)
{
    for (std::size_t a = 0; a < pieces.size(); ++a)
        for (std::size_t b = a + 1; b < pieces.size(); ++b)
            if (std::max(pieces[a].begin, pieces[b].begin) < std::min(pieces[a].end, pieces[b].end))
                return true;
    return false;
}

} // namespace

HaloTime haloTime(const std::vector<Range> &held, const std::vector<Range> &wanted, std::int64_t lineBytes,
    const CostModel &costs, const GroupShape &group, std::int32_t deviceClass)
{
    if (held == wanted)
        return {};
    const GroupShape pair = pairIn(group);
    const auto copy = [&](std::int64_t lines) { return costs.copy(Bytes{lines * lineBytes}, deviceClass); };
    std::vector<HaloTime> times(held.size());
    std::int64_t all = 0;
    std::int64_t most = 0;
    for (std::size_t to = 0; to < wanted.size(); ++to) {
        int pieces = 0;
        for (std::size_t from = 0; from < held.size(); ++from) {
            const std::int64_t lines =
                std::min(held[from].end, wanted[to].end) - std::max(held[from].begin, wanted[to].begin);
            if (lines <= 0)
                continue;
            ++pieces;
            if (lines < held[from].size())
                times[from].copied += copy(lines);
            if (from == to)
                continue;
            const double seconds = costs.collective(CollectiveKind::SendRecv, Bytes{lines * lineBytes}, pair);
            times[from].sent += seconds;
            times[to].sent += seconds;
        }
        if (pieces > 1)
            times[to].copied += copy(wanted[to].size());
        all += held[to].size();
        most = std::max(most, wanted[to].size());
    }
    HaloTime least = *std::max_element(times.begin(), times.end(),
        [](const HaloTime &a, const HaloTime &b) { return a.sent + a.copied < b.sent + b.copied; });
    if (overlap(held))
        return least;
    const HaloTime gathered{
        costs.collective(CollectiveKind::AllGather, Bytes{all * lineBytes}, group), copy(most)};
    return gathered.sent + gathered.copied < least.sent + least.copied ? gathered : least;
}

} // namespace planloom
