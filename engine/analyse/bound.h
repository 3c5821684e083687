#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/execution_plan.h"

namespace planloom {

/// Seconds that no plan of this step on as many devices can be below, by `CostModel::leastKernel`: all
/// operators' work, divided over the devices (as suits classes of different speed) without rest, replicas,
/// communication, waiting or launches. 0 if the model knows of no least time.
///
/// Parts of an operator together do at least the whole's FLOPs and move at least its bytes, so the sum of
/// max(FLOPs / rate, bytes / bandwidth) over operators bounds the devices' busy time from below.
/// O(operators).
double stepBound(const ExecutionPlan &plan, const CostModel &costs);

} // namespace planloom
