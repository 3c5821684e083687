#include "widgets/scene/running_now.h"

#include <algorithm>

namespace planloom {

std::vector<RunningSpan> runningAt(const TimelineScene &scene, double nanoseconds)
{
    std::vector<RunningSpan> running;
    const SpanColumns &spans = scene.timeline->spans;
    const auto look = [&](LaneRows rows) {
        const auto first = spans.start.begin();
        const auto found = std::upper_bound(first + static_cast<std::ptrdiff_t>(rows.begin),
            first + static_cast<std::ptrdiff_t>(rows.end), nanoseconds,
            [](double time, std::int64_t start) { return time < static_cast<double>(start); });
        // Those without a length that begin with the next one stand before it.
        for (auto row = static_cast<std::size_t>(found - first); row-- > rows.begin;) {
            const auto duration = static_cast<double>(spans.duration[row]);
            const double since = nanoseconds - static_cast<double>(spans.start[row]);
            if (since < duration)
                running.push_back({row, since / duration});
            if (duration > 0)
                break;
        }
    };
    for (const DeviceLane &lane : scene.lanes) {
        look(lane.compute);
        for (const LaneTrack &track : lane.tracks)
            look(track.rows);
    }
    return running;
}

std::vector<std::int64_t> blockMoments(const TimelineScene &scene)
{
    std::vector<std::int64_t> moments;
    std::vector<std::int32_t> known; // classes of devices with equal lanes
    for (const DeviceLane &lane : scene.lanes) {
        if (lane.symmetryClass >= 0) {
            const auto place = std::lower_bound(known.begin(), known.end(), lane.symmetryClass);
            if (place != known.end() && *place == lane.symmetryClass)
                continue;
            known.insert(place, lane.symmetryClass);
        }
        for (const TimelineBlock &block : lane.blocks)
            if (block.end > block.begin)
                moments.push_back(block.begin);
    }
    moments.push_back(scene.timeline->step.count());
    std::sort(moments.begin(), moments.end());
    moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
    return moments;
}

} // namespace planloom
