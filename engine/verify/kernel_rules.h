#pragma once

#include "engine/verify/content.h"

#include <string>

namespace planloom {

/// Holds a kernel against the part of the operator that it names: where that part belongs, what it reads and
/// what it makes. @return why it is wrong; empty if it is right
std::string checkKernel(const ExecutionPlan &plan, const Specification &specification, const Side &side);

} // namespace planloom
