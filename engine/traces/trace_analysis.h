#pragma once

#include "engine/traces/clocks.h"
#include "engine/traces/collectives.h"
#include "engine/traces/rank_times.h"
#include "engine/traces/trace.h"

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// When the members of a collective came and left, in nanoseconds on the first rank's clock.
struct CollectiveTimes {
    std::uint32_t collective = 0; ///< Index into `JoinedCollectives::collectives`.
    std::int64_t firstArrival = 0;
    std::int64_t lastArrival = 0;
    std::int64_t end = 0;
    std::int32_t lastRank = -1; ///< Who came last: its number, not an index.
    std::int64_t waited = 0; ///< What its members waited for the last one, summed over them.

    std::int64_t transfer() const { return end - lastArrival; }
    std::int64_t duration() const { return end - firstArrival; }
    friend bool operator==(const CollectiveTimes &, const CollectiveTimes &) = default;
};

/// Collectives of one kind in one group.
struct GroupTimes {
    std::uint32_t group = 0; ///< Index into `JoinedCollectives::groups`.
    TraceKind kind{};
    std::int64_t count = 0;
    std::int64_t bytes = 0; ///< Of all that say so.
    std::int64_t transfer = 0; ///< Nanoseconds from the last arrival to the end, of all.
    std::int64_t waited = 0; ///< Nanoseconds, summed over members.
    std::map<std::int32_t, std::int64_t> cameLast{}; ///< By rank: how often.
    friend bool operator==(const GroupTimes &, const GroupTimes &) = default;
};

/// Events of one name.
struct NameTimes {
    std::string name{};
    TraceKind kind{};
    std::int64_t count = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const NameTimes &, const NameTimes &) = default;
};

/// What a trace says without a plan.
struct TraceAnalysis {
    JoinedCollectives joined{};
    ClockAlignment clocks{};
    std::vector<CollectiveTimes> collectives{}; ///< Of those with two members or more, the longest first.
    std::vector<GroupTimes> groups{}; ///< By transfer and waiting, the longest first.
    std::vector<RankTimes> ranks{}; ///< By index into `Trace::ranks`.
    std::vector<NameTimes> names{}; ///< What takes time, over all ranks, the longest first.
};

/// @return nothing if stopped. O(events log events), on several threads
std::optional<TraceAnalysis> analyseTrace(const Trace &trace, const std::stop_token &stop = {});

/// What takes time in these ranks by kind and name, the longest first. O(events)
std::vector<NameTimes> timesByName(const std::vector<const RankTrace *> &ranks);

/// The rank that others wait for most, if that is worth a word: more than a tenth of the mean window, and
/// twice what others wait for the rank in the middle. Its index into `TraceAnalysis::ranks`.
std::optional<std::size_t> stragglerOf(const TraceAnalysis &analysis);

} // namespace planloom
