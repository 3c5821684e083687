#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/processes/process_world.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// What a run that goes on no more waits for, in a sentence.
struct Stall {
    std::string text{};
    std::int32_t rank = -1; ///< That does not answer; -1 if all do.
    std::int32_t device = -1; ///< That holds the others up.
};

/// After how many seconds without any progress a step of so long hangs: `least`, or a multiple of what it
/// takes. The same rule on all kinds of devices. @param predictedStepSeconds  0 if unknown
double stallLimit(double least, double predictedStepSeconds);

/// "rank 1 (devices 2 and 3)"; only the devices where there is one rank.
std::string nameOfRank(const RankLayout &layout, std::int32_t rank);

/// Finds who holds a run up: a rank that does not answer; else a member that has not come to a collective
/// where others wait, or a peer that has not sent what is waited for; else whoever is least far.
/// @param issued  by device, as `DeviceProgress::issued`
/// @param silent  by rank: it shows no sign of life
/// O(schedule of all devices).
Stall findStall(const ExecutionPlan &plan, const RankLayout &layout, const std::vector<std::int64_t> &issued,
    const std::vector<bool> &silent);

} // namespace planloom
