#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace planloom {

/// Writes `timeline` as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open: a process for
/// each device, a thread for each of its queues that has spans, a slice for each span, an arrow from each
/// send to its receive, a counter for the memory of each kind. Times in microseconds with three decimals.
///
/// Rows that name no instruction of `plan` are left out. Streams; O(spans + memory points).
/// @return false if `stream` failed
bool writePerfetto(std::ostream &stream, const ExecutionPlan &plan, const Timeline &timeline);

// What writers of such traces write alike.

/// A string of JSON.
std::string quotedForTrace(std::string_view text);
/// "12.345" for 12,345 nanoseconds, which are not negative.
std::string microsecondsForTrace(std::int64_t nanoseconds);

} // namespace planloom
