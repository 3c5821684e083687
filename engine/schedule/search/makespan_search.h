#pragma once

#include "engine/schedule/search/block_starts.h"
#include "engine/schedule/search/option_search.h"
#include "engine/schedule/search/period_search.h"
#include "engine/schedule/search/unit_search.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// A schedule of some micro-batches.
struct MakespanAnswer {
    std::vector<BlockStart> starts{}; ///< By start, then block; empty if none was found.
    OptionChoices choices{}; ///< That they are for; empty where nothing is decided.
    std::int64_t makespan = 0;
    std::int64_t bound = 0; ///< None is shorter.
    bool none = false; ///< It is proven that there is no schedule.
    bool proven() const { return !starts.empty() && makespan == bound; }
};

/// What no schedule of so many micro-batches is shorter than: on every queue of every device, the shortest
/// way to one of its blocks, all its work, with what runs once and without, and the shortest way on.
std::int64_t makespanBound(const Placement &placement, std::int32_t microBatches);

/// The shortest schedule that comes of steady states: from the order of each, and from every block starting
/// as soon as it can.
MakespanAnswer makespanOf(
    const Placement &placement, const std::vector<RepeatingUnit> &steady, std::int32_t microBatches);

/// Takes the shorter of two schedules, then that which holds less, then that with fewer micro-batches in
/// flight. What is not valid is not taken. Of a placement without options.
void takeBetter(const Placement &placement, std::int32_t microBatches, std::vector<BlockStart> starts,
    MakespanAnswer &best);

/// So many blocks, over all micro-batches, are searched in full.
constexpr std::int64_t kMostSearchedStarts = 240;

/// Betters a schedule of so many micro-batches, and its bound, by searching all schedules, periodic or not,
/// and all choices of options; nothing where there are too many blocks for that.
/// @param best  may have no starts
void searchMakespan(
    OptionSearch &search, std::int32_t microBatches, const ScheduleLimits &limits, MakespanAnswer &best);

} // namespace planloom
