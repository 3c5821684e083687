#pragma once

#include "engine/base/result.h"
#include "engine/runtime/devices/device_executor.h"
#include "engine/runtime/machine/machine_profile.h"

#include <stop_token>
#include <vector>

namespace planloom {

/// A step of a plan as CPU devices of one machine would do it.
struct Rehearsal {
    std::vector<DeviceMeasure> devices{}; ///< As if it had been measured.
    double seconds = 0; ///< From its start to its end.
    double coreSeconds = 0; ///< That cores work on it, together.
};

/// Goes through a step as `runOnCpu` does, without computing anything: the same memory, the same waits, the
/// same work left to other devices, and threads of one pool, one for each core of `profile`, that take what
/// may start and help each other with its loops. Only the times are the profile's.
///
///     two devices, two threads           d0  [linear    ][gelu][all-reduce]     each on a thread of its own;
///                                        d1  [linear    ][gelu][          ]
///     two devices, one of them waiting   d0  [linr][gel]  ...                   both threads help
///                                        d1             .  .  .  .
///
/// A kernel is work that at most so many threads can share: what cores work on it, by what it takes alone.
/// Threads without a kernel of their own help the first that has room for them.
/// @param plan  with one scale unit
/// @param sharesValues  as `RunOptions::shareValues`
/// @return as `planMemory`; InvalidInput for a plan that cannot go on; Cancelled
/// O(instructions (devices + cores))
Result<Rehearsal> rehearse(
    const ExecutionPlan &plan, const MachineProfile &profile, bool sharesValues, std::stop_token stop = {});

} // namespace planloom
