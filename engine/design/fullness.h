#pragma once

#include "engine/design/make_plan.h"

namespace planloom {

/// Of the device that is fullest at its peak, as a share of the memory it has; 0 before `PlanGrade::Timed`,
/// and where no device says what it has.
double fullnessOf(const PlanAnswer &answer);

} // namespace planloom
