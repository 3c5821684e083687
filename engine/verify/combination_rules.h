#pragma once

#include "engine/verify/content.h"

#include <string>

namespace planloom {

/// Holds how an instruction combines summands against how its tensor's parts make up its value. What combines
/// none says nothing of it. Parts that have to be weighed come from kernels and merges, and into a Weigh or
/// another merge, alone.
/// @return why it is wrong; empty if it is right
std::string checkCombination(const ExecutionPlan &plan, const Specification &specification, const Side &side);

/// Holds a Weigh against its meaning: one part as its operator made it, or several merged, the log-sum-exp of
/// those, that of all parts over the same rows, and summands of the same numbers.
std::string checkWeigh(const ExecutionPlan &plan, const Specification &specification, const Side &side);

/// Holds a Merge against its meaning: two parts of the same rows that share none, each with its own
/// log-sum-exp, and both of them together.
std::string checkMerge(const ExecutionPlan &plan, const Specification &specification, const Side &side);

} // namespace planloom
