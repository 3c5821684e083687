#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/table/kinds/order/block_order.h"

namespace planloom {

/// The order in which a plan's devices run their blocks, as a `schedule` row lists it: devices that run the
/// same are one rank, and blocks that run side by side are interleaved. O(schedule)
Schedule listedScheduleOf(const ExecutionPlan &plan);

} // namespace planloom
