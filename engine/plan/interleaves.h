#pragma once

#include "engine/plan/plan.h"

namespace planloom {

/// Whether the schedule or rows of a plan may run two blocks side by side.
bool mayInterleave(const Plan &plan);

} // namespace planloom
