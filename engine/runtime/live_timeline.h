#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/run.h"
#include "engine/simulate/timeline.h"

#include <vector>

namespace planloom {

/// Spans of one step as a timeline, while they arrive or once all have: what a run has measured. Sorted as
/// timelines are; one queue after the other. Memory curves are empty. Spans that name no instruction of
/// `plan` are left out: they come from another process.
/// @param byDevice  one entry for each device of the plan; all of one step
/// @param step      the step's duration; 0 takes the end of the last span
Timeline timelineOfSpans(
    const ExecutionPlan &plan, const std::vector<std::vector<LiveSpan>> &byDevice, Nanoseconds step);

} // namespace planloom
