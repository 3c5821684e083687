#pragma once

#include "engine/design/make_plan.h"
#include "engine/schedule/search/stage_blocks.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <map>
#include <vector>

namespace planloom {

/// Devices that run the same blocks are one: what a placement calls a device.
std::map<DeviceId, std::int32_t> placementDevicesOf(const std::vector<BlockInfo> &blocks);

/// The blocks of a plan as a placement: their durations in nanoseconds, transfers on queues of their own, one
/// each way.
/// Reductions of gradients and updates that take time run once, behind the backward passes of their stages;
/// the reductions on a queue of their own. What a stage holds between its passes is its share of what its
/// devices hold.
/// @param blocks    of a `MaterializedPlan`, with durations that are to be believed
/// @param dataFlow  between them
/// @param held      by device of the plan: bytes of one micro-batch of all stages there; empty: not looked at
/// @param limit     by device: what there is room for beside all else; as long as `held`
StagePlacement placementOfBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dataFlow, const std::vector<std::int64_t> &held,
    const std::vector<std::int64_t> &limit);

/// The blocks of a plan with the durations that its simulation shows: what a block computes, and waits for
/// inside, to the end of its last computation, the median of its micro-batches and the longest of its
/// devices. What it communicates behind that runs beside the next block and makes what is sent late.
/// Transfers may wait for their other end: the shortest counts. Of a step with one update, reductions take
/// what is left of them behind the last block that they wait for, and updates what they compute; of steps
/// with several both take nothing.
/// @param timeline  of `answer`'s execution, with spans
std::vector<BlockInfo> simulatedBlocks(const PlanAnswer &answer, const Timeline &timeline);

/// By block of the plan: what it copies between devices and their hosts, in seconds of the copy queue; the
/// median of its micro-batches and the longest of its devices.
std::vector<double> simulatedCopies(const PlanAnswer &answer, const Timeline &timeline);

/// The queue of such copies in `placementOfBlocks`.
constexpr std::int32_t kPlacementCopies = 4;

} // namespace planloom
