#pragma once

#include "engine/traces/collectives.h"
#include "engine/traces/trace.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// How the clocks of ranks are set against each other.
struct ClockAlignment {
    /// By index into `Trace::ranks`: nanoseconds to add to its times.
    std::vector<std::int64_t> offset{};
    /// By index: collectives that its offset follows from; 0 leaves its clock as it is.
    std::vector<std::int64_t> evidence{};
    /// Nanoseconds by which the ends of one collective lie apart from their middle when aligned, in the
    /// median: how far times of two ranks can be compared.
    std::int64_t residual = 0;
    bool isAdjusted = false; ///< Some offset is not 0.
    friend bool operator==(const ClockAlignment &, const ClockAlignment &) = default;
};

/// Estimates offsets from collectives that no member can leave before all have come (all-reduce, all-gather,
/// reduce-scatter, all-to-all, barrier), which therefore end nearly together. Medians, so that single ends
/// that are far off don't matter; ranks that share no collective are set against each other through those
/// that do. A clock that is off by less than collectives' ends scatter is left as it is. O(members log
/// members)
ClockAlignment alignClocks(const Trace &trace, const JoinedCollectives &joined);

} // namespace planloom
