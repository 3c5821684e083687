#pragma once

#include "widgets/scene/timeline_lanes.h"

#include <vector>

namespace planloom {

/// A stretch of a lane in which it works, in pixels.
struct BusyStretch {
    double x0 = 0;
    double x1 = 0;
    friend bool operator==(const BusyStretch &, const BusyStretch &) = default;
};

/// Where `rows` run, in order: stretches that are at least `gap` pixels apart; idle time shorter than that is
/// bridged. Of what is cut into several, only those that reach into [0, width). O(log rows) where all of it
/// is one stretch, else as `foldSpans`.
std::vector<BusyStretch> busyStretches(const SpanColumns &spans, const std::vector<BusyBefore> &before,
    LaneRows rows, const TimeAxis &axis, double width, double gap);

} // namespace planloom
