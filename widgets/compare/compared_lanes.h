#pragma once

#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Devices that are alike in both plans, as one lane of a comparison.
struct ComparedLane {
    std::vector<DeviceId> devices{}; ///< Ascending.
    std::string title{}; ///< "GPU 0-3"
    std::int32_t a =
        -1; ///< Index into the first scene's lanes, of the first device; -1 if it has no such device.
    std::int32_t b = -1;
    QueueSet queues{}; ///< Of either plan: both have the same tracks.
    friend bool operator==(const ComparedLane &, const ComparedLane &) = default;
};

/// Every device of either scene is in one lane; those that share a symmetry class in both share a lane.
/// Either may be null.
std::vector<ComparedLane> comparedLanes(const TimelineScene *a, const TimelineScene *b);

} // namespace planloom
