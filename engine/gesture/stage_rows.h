#pragma once

#include "engine/gesture/gesture.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// By operator: the pipeline stage that rows which are on give it; -1 where none does. Empty without stage
/// rows.
std::vector<std::int32_t> stagesByRow(const GestureContext &context);

/// The stage whose operators run on (some of) these devices most, in the plan; invalid without a plan.
StageId stageOn(const GestureContext &context, const std::vector<DeviceId> &devices);

} // namespace planloom
