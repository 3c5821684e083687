#pragma once

#include "widgets/scene/timeline_scene.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// One span that runs at some moment.
struct RunningSpan {
    std::size_t row = 0; ///< Of the timeline's spans.
    double share = 0; ///< How much of it is done, in [0, 1).
    friend bool operator==(const RunningSpan &, const RunningSpan &) = default;
};

/// All that runs at `nanoseconds`: by device, and by queue of each. A span runs from its start until just
/// before its end; one that takes no time never does. O(devices x queues x log spans), whatever the number of
/// spans.
std::vector<RunningSpan> runningAt(const TimelineScene &scene, double nanoseconds);

/// The moments at which a step is read block by block: when some device begins a block, ascending, each once,
/// and the step's end. O(blocks log blocks)
std::vector<std::int64_t> blockMoments(const TimelineScene &scene);

} // namespace planloom
