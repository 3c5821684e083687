#pragma once

#include "engine/runtime/processes/process_world.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/runtime/run.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace planloom {

/// What a rank writes into memory shared with the supervisor to show that it lives.
struct RankPulse {
    std::atomic<std::int64_t> beats{0}; ///< Grows at least twice a second.
};

/// What a rank process is started with.
struct RankStart {
    const RunRequest &request; ///< Its plan has one scale unit.
    std::int32_t rank = 0;
    ProcessWorld *world = nullptr; ///< Null in a run of one process.
    int socket = -1; ///< Joined with the supervisor.
    DeviceProgress *counters = nullptr; ///< One per device of the plan, in memory shared with the supervisor.
    RankPulse *pulse = nullptr; ///< This rank's.
};

/// Runs the devices of one rank, as threads. Events go as frames of JSON to the socket, rank 0's being those
/// of the run; a "cancel" frame from there stops it, and the end of the stream ends the process. The first
/// frame, "rank", says which rank this is and what it runs (`runDigest`).
/// @return the process's exit status: 0, or 1 after an "error" event
int rankMain(const RankStart &start);

/// Names plan, steps and seed: two ranks whose digests differ cannot run together. O(plan).
std::string runDigest(const RunRequest &request);

} // namespace planloom
