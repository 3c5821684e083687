#pragma once

#include "engine/lowering/program/execution_plan.h"

namespace planloom {

/// The same step with every device of every scale unit written out, to be run: micro-batch i of unit u is
/// number i x units + u of all, and runs on that unit's devices alone.
///
/// It says of each forward and backward operator where unit 0 runs it, since that differs from micro-batch to
/// micro-batch: `verify` takes the plan before it is written out. O(instructions of all devices).
ExecutionPlan expandUnits(const ExecutionPlan &plan);

} // namespace planloom
