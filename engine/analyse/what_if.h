#pragma once

#include "engine/analyse/dependencies.h"
#include "engine/simulate/timeline.h"

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// What a step would come to if some of its spans took no time, all else as it is: no work in the world makes
/// it shorter than that by these spans alone.
struct WhatIf {
    std::int64_t before = 0; ///< Nanoseconds: the step.
    std::int64_t after = 0;
    std::int64_t own = 0; ///< Of the spans, over all devices.
    std::size_t spans = 0;
    /// Of a device that then ends last; the others wait for it. -1 without spans.
    std::int32_t lastDevice = -1;
    friend bool operator==(const WhatIf &, const WhatIf &) = default;
};

/// Runs the step again: each span starts once all that it needs has ended, as long after it as it did
/// (measured spans wait for more than is known), and a communication of which an end is among `rows` takes no
/// time at any end.
/// @param rows  of the spans, ascending
/// @return all zero if stopped, or if the dependencies are of another timeline. O(spans + dependencies): not
/// for the GUI thread
WhatIf stepWithout(const Timeline &timeline, const TimelineDependencies &dependencies,
    const std::vector<std::size_t> &rows, std::stop_token stop = {});

} // namespace planloom
