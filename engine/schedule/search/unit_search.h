#pragma once

#include "engine/schedule/search/block_starts.h"
#include "engine/schedule/search/period_search.h"
#include "engine/schedule/search/placement.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// A steady state that repeats after several micro-batches, which may start at different phases of it.
struct RepeatingUnit {
    RepeatingUnit() = default;
    RepeatingUnit(std::int32_t count, std::int64_t length, std::vector<std::int64_t> starts)
        : microBatches(count)
        , period(length)
        , start(std::move(starts))
    {
    }
    /// Of one micro-batch.
    RepeatingUnit(PeriodicSchedule steady)
        : RepeatingUnit(1, steady.period, std::move(steady.start))
    {
    }

    std::int32_t microBatches = 1;
    std::int64_t period = 0; ///< Of all of them.
    /// By block and micro-batch of the unit, block by block; of what runs once it says nothing.
    std::vector<std::int64_t> start{};
    friend bool operator==(const RepeatingUnit &, const RepeatingUnit &) = default;
};

/// Whether the first takes less time for each micro-batch.
bool isShorter(const RepeatingUnit &one, const RepeatingUnit &other);

/// Several micro-batches of a placement as one: a copy of every block for each of them, in their order, block
/// by block. Of a placement without options.
Placement inUnits(const Placement &placement, std::int32_t microBatches);

/// Units of this many micro-batches are tried.
constexpr std::int32_t kMostInUnit = 4;

/// The unit of several micro-batches that takes the least time for each, where a short search finds one that
/// takes less than `steady`, whose micro-batches all start at the same phase. Tessel's repetends are such
/// units (HPCA '24, section 4); where memory or dependencies leave queues idle, some have less of that than
/// one.
/// @param placement  without options, or with their choices carried out (`withOptions`)
/// @return nothing where the busiest queue has no idle time, or none was found
std::optional<RepeatingUnit> findUnit(
    const Placement &placement, const PeriodicSchedule &steady, const ScheduleLimits &limits);

/// The first `microBatches` of a steady state as they stand, which repeats with every one of them or after
/// several: a valid schedule. What runs once is added by `addOnce`, and may overlap others.
std::vector<BlockStart> unroll(
    const Placement &placement, const RepeatingUnit &unit, std::int32_t microBatches);

} // namespace planloom
