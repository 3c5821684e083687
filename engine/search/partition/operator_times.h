#pragma once

#include "engine/search/partition/partition_problem.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What one micro-batch takes of the devices of an axis, operator by operator (forward ones, by index).
/// Communication counts for the operator that waits for it: forward for the first reader, backward for the
/// operator whose outputs' gradients are brought together.
struct OperatorTimes {
    std::vector<double> forward{}; ///< Seconds, with communication.
    std::vector<double> backward{};
    double communication = 0; ///< Of both passes.

    /// Makes operators wait for so long before they run. @param waits  may be empty
    void addWaits(const OperatorTimes &waits);
};

/// @param choice  by forward operator
/// @param shares  by tensor: how much of it a device has, where replicas cut it too; may be empty
OperatorTimes timesOf(const PartitionProblem &problem, const std::vector<std::int32_t> &choice,
    const std::vector<double> &shares = {});

/// Seconds of a backward pass for gradients of weights alone: what a pass of its own may do later, with what
/// it waits for.
/// @param choice  of operator `op`
double apartSeconds(
    const PartitionProblem &problem, std::size_t op, std::int32_t choice, const OperatorTimes &times);

} // namespace planloom
