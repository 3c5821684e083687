#pragma once

#include "engine/base/result.h"
#include "engine/lowering/order/sequence.h"
#include "engine/plan/plan.h"

#include <vector>

namespace planloom {

/// Moves sends and reductions in the order of a step to where the plan's `communicationOrders` ask for them.
/// What each device computes stays in its order. Orders of gathers are none of its: they lie inside blocks,
/// which are made with them.
/// O(runs log runs + orders x runs); nothing where there are no such orders
/// @param order  all that runs in a step, cut where reductions start
/// @return InvalidInput naming a row that goes against the data flow, or that orders what no device runs
Result<std::vector<BlockRun>> orderCommunication(
    const MaterializedPlan &materialized, const Plan &plan, std::vector<BlockRun> order);

/// Blocks whose communication has to wait for computations that stand before it in the order: ascending.
std::vector<std::int32_t> waitingBlocks(const MaterializedPlan &materialized, const Plan &plan);

} // namespace planloom
