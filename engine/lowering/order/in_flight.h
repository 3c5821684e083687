#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// By stage: the most micro-batches that a device holds between its forward and its last backward segment of
/// the stage (that of weight gradients, where it has one); 0 where no device runs both. O(schedule).
std::vector<std::int32_t> mostInFlight(const ExecutionPlan &plan);

/// In-flight rows of `plan` that `execution`, lowered from it, could not keep, because other rows left
/// nothing else to run: with a sentence for the row, rows ascending.
std::vector<std::pair<RowId, std::string>> liftedLimits(const Plan &plan, const ExecutionPlan &execution);

} // namespace planloom
