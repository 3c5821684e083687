#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/verify/verify.h"

#include <optional>

namespace planloom {

/// Holds the lists of a plan against one another before anything follows its indices: one legal partition and
/// one device of the plan for every part of every operator; groups, buffers, instructions and schedules that
/// name what is there; segments of a kind and stage that fit what they do; memory counted as what its tensor
/// is. The plan's graph and batch must have been checked before (`checkGraph`, `checkBatch`).
/// @return the first thing that is wrong; nothing if all is well
/// O(operators x parts + instructions + schedule entries).
std::optional<VerifyFailure> checkStructure(const ExecutionPlan &plan);

} // namespace planloom
