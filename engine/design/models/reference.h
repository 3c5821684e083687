#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"

#include <memory>

namespace planloom {

/// The unpartitioned plan that does the same step as `plan`, on one device: what a run is compared with. With
/// the whole batch at once where that is the same, in as many micro-batches where something (batch norm's
/// statistics) differs from one to the other. Values of the graph's tensors are those of `plan`.
Result<std::shared_ptr<const ExecutionPlan>> referenceOf(const ExecutionPlan &plan);

} // namespace planloom
