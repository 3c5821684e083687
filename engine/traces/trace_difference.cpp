#include "engine/traces/trace_difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

using NameKey = std::pair<TraceKind, std::string>;

/// Steps of all ranks together; 0 if one has none.
std::int64_t stepCount(const std::vector<const RankTrace *> &ranks)
{
    std::int64_t count = 0;
    for (const RankTrace *rank : ranks) {
        const auto steps = static_cast<std::int64_t>(stepsIn(*rank).size());
        if (steps == 0)
            return 0;
        count += steps;
    }
    return count;
}

/// Events of one rank by name, each in order of time.
std::map<NameKey, std::vector<const TraceEvent *>> sequencesOf(const RankTrace &rank)
{
    std::map<NameKey, std::vector<const TraceEvent *>> sequences;
    for (const TraceEvent &event : rank.events)
        if (event.kind != TraceKind::Annotation && event.kind != TraceKind::Step)
            sequences[{event.kind, rank.nameOfEvent(event)}].push_back(&event);
    for (auto &[key, events] : sequences)
        std::stable_sort(events.begin(), events.end(),
            [](const TraceEvent *a, const TraceEvent *b) { return a->start < b->start; });
    return sequences;
}

void align(
    const RankTrace &a, const RankTrace &b, TraceDifference &made, std::vector<EventDifference> &events)
{
    const auto sequencesA = sequencesOf(a);
    const auto sequencesB = sequencesOf(b);
    for (const auto &[key, ofA] : sequencesA) {
        const auto found = sequencesB.find(key);
        const std::size_t both = found == sequencesB.end() ? 0 : std::min(ofA.size(), found->second.size());
        made.aligned += static_cast<std::int64_t>(both);
        made.onlyA += static_cast<std::int64_t>(ofA.size() - both);
        for (std::size_t i = 0; i < both; ++i)
            if (ofA[i]->duration != found->second[i]->duration)
                events.push_back({key.second, key.first, a.rank, b.rank, static_cast<std::int64_t>(i),
                    ofA[i]->duration, found->second[i]->duration});
    }
    for (const auto &[key, ofB] : sequencesB) {
        const auto found = sequencesA.find(key);
        made.onlyB += static_cast<std::int64_t>(
            ofB.size() - (found == sequencesA.end() ? 0 : std::min(ofB.size(), found->second.size())));
    }
}

/// The furthest apart first; equal ones by kind and name.
void sortByDelta(std::vector<NameDifference> &list)
{
    std::sort(list.begin(), list.end(), [](const NameDifference &a, const NameDifference &b) {
        return std::tuple(-std::abs(a.delta()), a.kind, a.name)
            < std::tuple(-std::abs(b.delta()), b.kind, b.name);
    });
}

} // namespace

TraceDifference differenceOf(
    const std::vector<const RankTrace *> &a, const std::vector<const RankTrace *> &b, std::size_t most)
{
    TraceDifference made;
    const std::int64_t stepsA = stepCount(a);
    const std::int64_t stepsB = stepCount(b);
    made.isPerStep = stepsA > 0 && stepsB > 0;
    std::map<NameKey, NameDifference> names;
    std::map<TraceKind, NameDifference> kinds;
    const auto collect = [&](const std::vector<const RankTrace *> &ranks, std::int64_t steps, bool isA) {
        const double share = ranks.empty()
            ? 0
            : 1.0 / static_cast<double>(made.isPerStep ? steps : static_cast<std::int64_t>(ranks.size()));
        for (const NameTimes &each : timesByName(ranks))
            for (NameDifference *sum : {&names[{each.kind, each.name}], &kinds[each.kind]}) {
                (isA ? sum->countA : sum->countB) += each.count;
                (isA ? sum->a : sum->b) += static_cast<double>(each.nanoseconds) * 1e-9 * share;
            }
    };
    collect(a, stepsA, true);
    collect(b, stepsB, false);
    for (auto &[key, sum] : names) {
        std::tie(sum.kind, sum.name) = key;
        made.names.push_back(std::move(sum));
    }
    for (auto &[kind, sum] : kinds) {
        sum.kind = kind;
        made.kinds.push_back(std::move(sum));
    }
    sortByDelta(made.names);
    sortByDelta(made.kinds);
    std::vector<EventDifference> events;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        align(*a[i], *b[i], made, events);
    const auto end = events.begin() + static_cast<std::ptrdiff_t>(std::min(most, events.size()));
    std::partial_sort(
        events.begin(), end, events.end(), [](const EventDifference &x, const EventDifference &y) {
            return std::tuple(-std::abs(x.b - x.a), x.kind, x.name, x.rankA, x.ordinal)
                < std::tuple(-std::abs(y.b - y.a), y.kind, y.name, y.rankA, y.ordinal);
        });
    events.erase(end, events.end());
    made.events = std::move(events);
    return made;
}

} // namespace planloom
