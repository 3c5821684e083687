#pragma once

#include "engine/base/units.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// One device's figures, as the command line prints them.
struct DeviceSummary {
    Bytes peak{};
    double busySeconds = 0;
    double bubble = 0; ///< Share of the step that its compute stream is idle.
    double exposedCommunicationSeconds = 0;
    Bytes sent{}; ///< In one step, over all kinds.
    friend bool operator==(const DeviceSummary &, const DeviceSummary &) = default;
};

/// A timeline in a few figures.
struct TimelineSummary {
    double stepSeconds = 0;
    double bubble = 0; ///< As `bubbleRatio`.
    Bytes largestPeak{};
    Bytes sent{}; ///< By all devices.
    std::int32_t classes = 0; ///< Devices with timelines of their own.
    std::vector<DeviceSummary> devices{};
    friend bool operator==(const TimelineSummary &, const TimelineSummary &) = default;
};

TimelineSummary summaryOf(const Timeline &timeline);

} // namespace planloom
