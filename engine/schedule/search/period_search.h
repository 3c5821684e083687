#pragma once

#include "engine/schedule/search/block_starts.h"
#include "engine/schedule/search/option_search.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// A steady state: block b of micro-batch n starts at start[b] + n period. What lies start[b] / period
/// periods in is its *stage* k in the modulo schedule, what remains its phase.
struct PeriodicSchedule {
    std::int64_t period = 0;
    std::vector<std::int64_t> start{}; ///< By block; the least is 0. Of what runs once it says nothing.
    friend bool operator==(const PeriodicSchedule &, const PeriodicSchedule &) = default;
};

struct PeriodAnswer {
    std::optional<PeriodicSchedule> schedule{}; ///< The best that was found.
    OptionChoices choices{}; ///< That it is for; empty where there is none.
    std::int64_t bound = 0; ///< No period is shorter.
    bool none = false; ///< It is proven that there is no steady state.
    bool proven() const { return schedule && schedule->period == bound; }
};

/// The shortest period in which a micro-batch can follow another for ever, as a modulo schedule (Rau, MICRO
/// 1994; for pipelines: Tessel, HPCA '24, whose repetend is one): from the busiest queue and the longest
/// cycle of dependencies and memory upwards. Of schedules with this period, one that ends a micro-batch early
/// and holds little memory, as far as the limits let it look; with no more options than a short search finds
/// it to need. The bound is one of all choices of options.
PeriodAnswer findPeriod(OptionSearch &search, const ScheduleLimits &limits);

/// The same order on every queue, with every block as early as it lets: what warm-up and cool-down need not
/// wait for. Memory of a device is taken and given back in the same order, over all its queues.
/// @param starts  a valid schedule
std::vector<BlockStart> asEarlyAsOrdered(const Placement &placement, std::vector<BlockStart> starts);

} // namespace planloom
