#pragma once

#include "engine/runtime/run.h"
#include "engine/runtime/run_folder.h"

namespace planloom {

/// Runs `request` in a rank process: all CPU devices as threads. Events go as frames of JSON to `socket`; a
/// "cancel" frame from there stops the run, and the end of the stream ends the process.
/// @param counters  one per device, in memory shared with the supervisor
/// @return the process's exit status: 0, or 1 after an "error" event
int rankMain(const RunRequest &request, int socket, DeviceProgress *counters);

} // namespace planloom
