#include "engine/simulate/timeline.h"

namespace planloom {

double bubbleRatio(const Timeline &timeline)
{
    const std::int64_t available = timeline.step.count() * static_cast<std::int64_t>(timeline.busy.size());
    if (available <= 0)
        return 0;
    std::int64_t idle = available;
    for (const Nanoseconds busy : timeline.busy)
        idle -= busy.count();
    return static_cast<double>(idle) / static_cast<double>(available);
}

} // namespace planloom
