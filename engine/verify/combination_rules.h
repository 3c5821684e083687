#pragma once

#include "engine/verify/instruction_rules.h"

#include <string>

namespace planloom {

/// Holds how an instruction combines summands against how its tensor's parts make up its value. What combines
/// none says nothing of it. Parts that have to be weighed come from kernels, and into a Weigh, alone.
/// @return why it is wrong; empty if it is right
std::string checkCombination(const ExecutionPlan &plan, const Specification &specification, const Side &side);

/// Holds a Weigh against its meaning: one part as its operator made it, the log-sum-exp of that part, that of
/// all parts over the same rows, and a summand of the same number.
std::string checkWeigh(const ExecutionPlan &plan, const Specification &specification, const Side &side);

} // namespace planloom
