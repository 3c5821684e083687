#pragma once

#include "engine/runtime/processes/process_world.h"
#include "engine/runtime/run.h"

#include <cstdint>
#include <stop_token>

namespace planloom {

/// As `runOnCpu`, in one of several processes: runs the devices of `rank`, of which the others run theirs by
/// the same call. Whatever their number, what comes out is the same bits as in one process.
///
/// Rank 0 puts the outcome together and hears of steps; the others get an outcome without values, and events
/// of their own devices' spans. The first error of any rank ends all of them, and is the error of each.
/// @param plan  of one scale unit (expand_units.h), with as many devices as `world`
/// @param options  `threads` are those of this rank; 0: its share of the cores
Result<RunOutcome> runRankOnCpu(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events,
    ProcessWorld &world, std::int32_t rank, std::stop_token stop = {});

} // namespace planloom
