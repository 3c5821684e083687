#include "widgets/compare/compared_lanes.h"

#include "engine/base/words.h"
#include "engine/hardware/device_word.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

namespace {

/// Devices without a class of their own kind are alone in theirs.
std::int32_t classOf(const TimelineScene *scene, std::size_t device)
{
    if (!scene || device >= scene->lanes.size())
        return -1;
    const std::int32_t symmetryClass = scene->lanes[device].symmetryClass;
    return symmetryClass >= 0 ? symmetryClass : -2 - static_cast<std::int32_t>(device);
}

} // namespace

std::vector<ComparedLane> comparedLanes(const TimelineScene *a, const TimelineScene *b)
{
    const std::size_t devices = std::max(a ? a->lanes.size() : 0, b ? b->lanes.size() : 0);
    std::vector<ComparedLane> lanes;
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> byClass;
    for (std::size_t d = 0; d < devices; ++d) {
        const auto [place, isNew] = byClass.emplace(std::pair{classOf(a, d), classOf(b, d)}, lanes.size());
        if (isNew) {
            ComparedLane lane;
            lane.a = a && d < a->lanes.size() ? static_cast<std::int32_t>(d) : -1;
            lane.b = b && d < b->lanes.size() ? static_cast<std::int32_t>(d) : -1;
            lanes.push_back(std::move(lane));
        }
        lanes[place->second].devices.push_back(DeviceId{static_cast<std::int32_t>(d)});
    }
    for (ComparedLane &lane : lanes) {
        lane.title = deviceWord(a ? a->cluster : b->cluster) + " " + rangesOf(lane.devices, kFewRuns);
        if (lane.a >= 0)
            lane.queues = a->lanes[static_cast<std::size_t>(lane.a)].queues();
        if (lane.b >= 0)
            lane.queues = lane.queues | b->lanes[static_cast<std::size_t>(lane.b)].queues();
    }
    return lanes;
}

} // namespace planloom
