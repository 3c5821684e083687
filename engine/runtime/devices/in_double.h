#pragma once

#include "engine/lowering/program/execution_plan.h"

namespace planloom {

/// The same instructions with every floating value in Float64, in memory and in kernels: what a plan computes
/// where rounding is next to nothing. Tensors of the result hold no values, since those are of other types:
/// they are loaded by `inFloat32` of the same plan.
ExecutionPlan inDouble(const ExecutionPlan &plan);

/// `plan` without its number formats, and so without a loss scale.
ExecutionPlan inFloat32(ExecutionPlan plan);

} // namespace planloom
