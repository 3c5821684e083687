#include "engine/design/fullness.h"

#include <algorithm>

namespace planloom {

double fullnessOf(const PlanAnswer &answer)
{
    double fullest = 0;
    for (std::size_t d = 0; d < answer.summary.devices.size(); ++d) {
        const double room = memoryOf(answer.cluster, answer.execution->units, static_cast<std::int32_t>(d));
        if (room > 0)
            fullest = std::max(fullest, static_cast<double>(answer.summary.devices[d].peak.count) / room);
    }
    return fullest;
}

} // namespace planloom
