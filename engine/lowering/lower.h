#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/order/sequence.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"

#include <memory>
#include <stop_token>

namespace planloom {

class PathMemory;

/// Carries a plan out: SuperScaler's three phases (arXiv:2301.08984, section 3), in two halves, since what a
/// person moves most is the order.
///
/// 1. `materialize`: every operator becomes its parts, on their devices (`engine/lowering/transform.h`), and
///    between what is made and what is needed stand the communications that mend it, cheapest first by
///    `costs` (`engine/lowering/layout/materialize.h`). Sorted by block, whatever the order of blocks.
/// 2. `sequence`: one global order of (block, micro-batch) (`engine/lowering/order/sequence.h`).
///
/// @return InvalidInput naming the operator or row that cannot be carried out (micro-batches that do not
/// divide,
///   an order against the data flow); Cancelled if stopped
/// O(instructions). Thread-safe: reads nothing but its arguments.
Result<ExecutionPlan> lower(
    const Plan &plan, const Cluster &cluster, const CostModel &costs, std::stop_token stop = {});

/// By the cluster's own figures.
Result<ExecutionPlan> lower(const Plan &plan, const Cluster &cluster, std::stop_token stop = {});

/// The first half alone.
/// @param paths  of this cluster and these costs, where it is to find those of other plans, and leaves its
/// own; may be null
Result<MaterializedPlan> materialize(const Plan &plan, const Cluster &cluster, const CostModel &costs,
    std::stop_token stop = {}, std::shared_ptr<PathMemory> paths = {});

} // namespace planloom
