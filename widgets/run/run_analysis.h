#pragma once

#include "engine/analyse/span_errors.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/run.h"
#include "engine/simulate/timeline.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// The device that holds the others up, in a sentence; empty if there is none: its kernels take at least half
/// as long again, held against their prediction, as those of the device in the middle. Measured may be part
/// of a step. O(spans).
std::string stragglerOf(const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured);

/// Spans of one step, by device.
using StepSpans = std::vector<std::vector<LiveSpan>>;

/// The mean of several steps: every instruction's mean start and duration, over the steps that have it. Those
/// of `steps` that are empty are passed by. O(spans log spans).
StepSpans meanOf(const std::vector<const StepSpans *> &steps);

/// The step that took longest; 0 for none. The first of several is passed by: it warms up.
std::size_t worstStep(const std::vector<double> &stepSeconds);

} // namespace planloom
