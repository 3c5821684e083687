#include "engine/traces/trace_analysis.h"

#include "engine/base/in_parallel.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// What a rank makes others wait, as a share of the window, from which on it is a straggler.
constexpr double kStragglerShare = 0.1;

CollectiveTimes timesOf(const Trace &trace, const TraceAnalysis &analysis, std::uint32_t index)
{
    const JoinedCollective &collective = analysis.joined.collectives[index];
    CollectiveTimes times{.collective = index};
    times.firstArrival = std::numeric_limits<std::int64_t>::max();
    times.lastArrival = std::numeric_limits<std::int64_t>::min();
    times.end = times.lastArrival;
    for (std::uint32_t i = collective.begin; i < collective.end; ++i) {
        const JoinedMember &member = analysis.joined.members[i];
        const TraceEvent &event = trace.ranks[member.rank].events[member.event];
        const std::int64_t start = event.start + analysis.clocks.offset[member.rank];
        times.firstArrival = std::min(times.firstArrival, start);
        times.end = std::max(times.end, start + event.duration);
        if (start > times.lastArrival) {
            times.lastArrival = start;
            times.lastRank = trace.ranks[member.rank].rank;
        }
    }
    return times;
}

/// Until when a member waits for the last one, on its own clock: not longer than it is in the collective.
std::int64_t waitEnd(const TraceEvent &event, std::int64_t lastArrival, std::int64_t offset)
{
    return std::clamp(lastArrival - offset, event.start, event.end());
}

void addToGroups(TraceAnalysis &analysis)
{
    std::map<std::pair<std::uint32_t, TraceKind>, GroupTimes> groups;
    for (const CollectiveTimes &times : analysis.collectives) {
        const JoinedCollective &collective = analysis.joined.collectives[times.collective];
        GroupTimes &sum = groups[{collective.group, collective.kind}];
        ++sum.count;
        sum.bytes += std::max<std::int64_t>(0, collective.bytes);
        sum.transfer += std::max<std::int64_t>(0, times.transfer());
        sum.waited += times.waited;
        ++sum.cameLast[times.lastRank];
    }
    for (auto &[key, sum] : groups) {
        std::tie(sum.group, sum.kind) = key;
        analysis.groups.push_back(std::move(sum));
    }
    std::stable_sort(
        analysis.groups.begin(), analysis.groups.end(), [](const GroupTimes &a, const GroupTimes &b) {
            return a.transfer + a.waited > b.transfer + b.waited;
        });
}

} // namespace

std::vector<NameTimes> timesByName(const std::vector<const RankTrace *> &ranks)
{
    std::map<std::pair<TraceKind, std::string>, NameTimes> names;
    for (const RankTrace *rank : ranks) {
        std::unordered_map<std::uint64_t, NameTimes *> known; // by kind and index of the name
        for (const TraceEvent &event : rank->events) {
            if (event.kind == TraceKind::Annotation || event.kind == TraceKind::Step)
                continue;
            NameTimes *&sum = known[std::uint64_t{event.name} << 8U | static_cast<std::uint64_t>(event.kind)];
            if (!sum)
                sum = &names[{event.kind, rank->nameOfEvent(event)}];
            ++sum->count;
            sum->nanoseconds += event.duration;
        }
    }
    std::vector<NameTimes> made;
    for (auto &[key, sum] : names) {
        std::tie(sum.kind, sum.name) = key;
        made.push_back(std::move(sum));
    }
    std::stable_sort(made.begin(), made.end(),
        [](const NameTimes &a, const NameTimes &b) { return a.nanoseconds > b.nanoseconds; });
    return made;
}

std::optional<TraceAnalysis> analyseTrace(const Trace &trace, const std::stop_token &stop)
{
    TraceAnalysis analysis;
    analysis.joined = joinCollectives(trace);
    if (stop.stop_requested())
        return {};
    analysis.clocks = alignClocks(trace, analysis.joined);
    analysis.ranks.resize(trace.ranks.size());
    std::vector<std::vector<Stretch>> waits(trace.ranks.size());
    std::vector<std::pair<std::int64_t, std::int64_t>> madeWait(trace.ranks.size()); // nanoseconds, times
    for (std::uint32_t c = 0; c < analysis.joined.collectives.size(); ++c) {
        const JoinedCollective &collective = analysis.joined.collectives[c];
        if (collective.end - collective.begin < 2)
            continue;
        CollectiveTimes times = timesOf(trace, analysis, c);
        std::size_t last = 0;
        for (std::uint32_t i = collective.begin; i < collective.end; ++i) {
            const JoinedMember &member = analysis.joined.members[i];
            const TraceEvent &event = trace.ranks[member.rank].events[member.event];
            const std::int64_t until = waitEnd(event, times.lastArrival, analysis.clocks.offset[member.rank]);
            times.waited += until - event.start;
            if (until > event.start)
                waits[member.rank].emplace_back(event.start, until);
            if (trace.ranks[member.rank].rank == times.lastRank)
                last = member.rank;
        }
        madeWait[last].first += times.waited;
        ++madeWait[last].second;
        analysis.collectives.push_back(times);
    }
    inParallel(trace.ranks.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t r = begin; r < end && !stop.stop_requested(); ++r)
            analysis.ranks[r] = timesOf(trace.ranks[r], std::move(waits[r]));
    });
    if (stop.stop_requested())
        return {};
    for (std::size_t r = 0; r < trace.ranks.size(); ++r)
        std::tie(analysis.ranks[r].madeWait, analysis.ranks[r].cameLast) = madeWait[r];
    addToGroups(analysis);
    std::stable_sort(analysis.collectives.begin(), analysis.collectives.end(),
        [](const CollectiveTimes &a, const CollectiveTimes &b) { return a.duration() > b.duration(); });
    std::vector<const RankTrace *> all;
    for (const RankTrace &rank : trace.ranks)
        all.push_back(&rank);
    analysis.names = timesByName(all);
    return analysis;
}

std::optional<std::size_t> stragglerOf(const TraceAnalysis &analysis)
{
    if (analysis.ranks.size() < 2)
        return {};
    std::vector<std::int64_t> made;
    double window = 0;
    std::size_t worst = 0;
    for (std::size_t r = 0; r < analysis.ranks.size(); ++r) {
        made.push_back(analysis.ranks[r].madeWait);
        window += static_cast<double>(analysis.ranks[r].window) / static_cast<double>(analysis.ranks.size());
        if (made[r] > made[worst])
            worst = r;
    }
    const std::int64_t most = made[worst];
    std::sort(made.begin(), made.end());
    const std::int64_t middle = made[(made.size() - 1) / 2];
    // Of all that wait for it together: each of them a part.
    const double each = static_cast<double>(most) / static_cast<double>(analysis.ranks.size() - 1);
    if (each < kStragglerShare * window || static_cast<double>(most) < 2.0 * static_cast<double>(middle))
        return {};
    return worst;
}

} // namespace planloom
