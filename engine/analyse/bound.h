#pragma once

#include "engine/hardware/cluster.h"
#include "engine/lowering/execution_plan.h"

namespace planloom {

/// Seconds that no plan of this step on as many devices can be below, by the same cost model: all operators'
/// work, divided over the devices without rest, replicas, communication, waiting or launches.
///
/// Parts of an operator together do at least the whole's FLOPs and move at least its bytes, so the sum of
/// max(FLOPs / rate, bytes / bandwidth) over operators bounds the devices' busy time from below.
/// O(operators).
double stepBound(const ExecutionPlan &plan, const Cluster &cluster);

} // namespace planloom
