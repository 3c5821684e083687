#pragma once

#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// A stretch of time on some devices.
struct TimelineBox {
    double begin = 0; ///< Nanoseconds.
    double end = 0;
    std::vector<DeviceId> devices{}; ///< Ascending.
    bool enclosed = true; ///< Only spans that lie in it whole; else all that it touches.
    friend bool operator==(const TimelineBox &, const TimelineBox &) = default;
};

/// The operators of the compute spans in a box, ascending, each once. O(spans in the box): not for the GUI
/// thread.
/// @return nothing once `stop` is requested
std::vector<OperatorId> operatorsIn(
    const TimelineScene &scene, const TimelineBox &box, std::stop_token stop = {});

} // namespace planloom
