#pragma once

#include "engine/base/result.h"
#include "engine/lowering/execution_plan.h"

#include <cstdint>
#include <memory>

namespace planloom {

/// The model in one piece on one device, in `microBatches`: what a run is compared with.
Result<ExecutionPlan> unpartitionedPlan(const GraphSnapshot &graph, std::int32_t microBatches, bool wholeBatches);

/// The unpartitioned plan that does the same step as `plan`: with the whole batch at once where that is the same, in as
/// many micro-batches where something (batch norm's statistics) differs from one to the other.
Result<std::shared_ptr<const ExecutionPlan>> referenceOf(const ExecutionPlan &plan);

} // namespace planloom
