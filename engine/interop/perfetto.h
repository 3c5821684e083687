#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <ostream>

namespace planloom {

/// Writes `timeline` as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open: a process for
/// each device, a thread for each of its queues that has spans, a slice for each span, an arrow from each
/// send to its receive, a counter for the memory of each kind. Times in microseconds with three decimals.
///
/// Rows that name no instruction of `plan` are left out. Streams; O(spans + memory points).
/// @return false if `stream` failed
bool writePerfetto(std::ostream &stream, const ExecutionPlan &plan, const Timeline &timeline);

} // namespace planloom
