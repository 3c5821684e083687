#pragma once

#include "engine/base/units.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// One device's figures, as the command line prints them.
struct DeviceSummary {
    Bytes peak{};
    Bytes hostPeak{}; ///< In host memory.
    double busySeconds = 0;
    double bubble = 0; ///< Share of the step that its compute queue is idle.
    double exposedCommunicationSeconds = 0;
    Bytes sent{}; ///< In one step, over all kinds.
    friend bool operator==(const DeviceSummary &, const DeviceSummary &) = default;
};

/// What all devices send in one step by one kind of instruction.
struct KindTraffic {
    InstructionKind kind{};
    std::int64_t count = 0;
    Bytes bytes{};
    friend bool operator==(const KindTraffic &, const KindTraffic &) = default;
};

/// A timeline in a few figures.
struct TimelineSummary {
    double stepSeconds = 0;
    double bubble = 0; ///< As `bubbleRatio`.
    double exposedCommunicationSeconds = 0; ///< Mean over the devices, as in a waterfall (`StepParts`).
    Bytes largestPeak{};
    Bytes largestHostPeak{}; ///< Of one device, in host memory.
    Bytes sent{}; ///< By all devices.
    std::int32_t classes = 0; ///< Devices with timelines of their own.
    std::vector<DeviceSummary> devices{};
    std::vector<LevelTraffic> links{}; ///< As the timeline's.
    std::vector<KindTraffic> kinds{}; ///< In the order of InstructionKind; only those that send.
    friend bool operator==(const TimelineSummary &, const TimelineSummary &) = default;
};

/// The most that one device sends in one step.
Bytes mostSent(const TimelineSummary &summary);

/// Needs no spans. O(devices + rows of traffic)
TimelineSummary summaryOf(const Timeline &timeline);

} // namespace planloom
