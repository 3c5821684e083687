#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/order/sequence.h"

namespace planloom {

/// Gives the blocks of a pipeline the durations that their instructions have, one by one, as the simulator
/// books them, in place of estimates from operators alone: passes what one device computes and the
/// collectives that it waits for in between, transfers what a device sends. What is ordered by these stays
/// in order when it runs (received_runs.h). Passes are as long on all of their devices, or nearly so: the
/// first stands for all. Plans without transfers stay as they are.
/// O(instructions of the devices that are looked at)
void measureBlocks(MaterializedPlan &materialized, const Cluster &cluster, const CostModel &costs);

} // namespace planloom
