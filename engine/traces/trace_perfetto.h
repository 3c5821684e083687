#pragma once

#include "engine/traces/clocks.h"
#include "engine/traces/trace.h"

#include <ostream>

namespace planloom {

/// Writes all ranks on one clock as Chrome trace JSON, which ui.perfetto.dev opens: a process for each rank,
/// a thread for each of its lanes. Times begin with the first event. Streams; O(events)
/// @return false if `stream` failed
bool writeTracePerfetto(std::ostream &stream, const Trace &trace, const ClockAlignment &clocks);

} // namespace planloom
