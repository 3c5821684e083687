#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cluster.h"
#include "engine/plan/plan.h"
#include "engine/simulate/summary.h"
#include "engine/simulate/timeline.h"
#include "engine/table/table.h"

#include <optional>
#include <string>
#include <vector>

namespace planloom {

struct BrokenLimit {
    RowId row{};
    /// "device 0 needs 63.2 GiB at its peak, the row allows 40.0 GiB", ResourceLimit; InvalidInput where it
    /// names links that the cluster does not have.
    Error error{};
    std::int64_t needed = 0; ///< What would have to be allowed, in the row's unit.
};
/// The limit rows of `table` that are on and that `timeline` breaks, in order. Devices and links are those
/// that need the most. O(rows x (devices + traffic)).
std::vector<BrokenLimit> brokenLimits(const ConstraintTable &table, const Timeline &timeline);

/// By row: what a limit row that holds was measured at, "peak 31.0 GiB of 40.0 GiB" or "step 41.0 ms of 50.0
/// ms"; empty for other rows, rows that are off, and limits that are broken.
std::vector<std::string> limitRemarks(const ConstraintTable &table, const Timeline &timeline);

/// What some device needs at least, however the model is split over `devices`, with the number formats and
/// the offloads of `plan`: its share of weights and optimizer states. O(operators + tensors)
Bytes leastMemory(const Plan &plan, std::int32_t devices);

/// How a plan's devices stand to the memory that each has.
struct MemoryUse {
    std::int32_t device = -1; ///< Whose peak is the largest share of its own memory; -1 without devices.
    Bytes peak{}; ///< Of that device.
    Bytes memory{}; ///< That it has.
    std::int32_t over = 0; ///< Devices whose peak is above their memory.
};
/// @param units  of the plan. O(devices)
MemoryUse memoryUse(const TimelineSummary &summary, const Cluster &cluster, const ScaleUnits &units);

/// Why what the devices offload does not fit into their host's memory, each its share of it: the first of
/// them. Nothing if it does, or if the cluster does not say how much there is.
/// @param units  of the plan. O(devices)
std::optional<Error> hostOverflow(
    const TimelineSummary &summary, const Cluster &cluster, const ScaleUnits &units);

} // namespace planloom
