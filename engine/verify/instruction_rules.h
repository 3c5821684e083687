#pragma once

#include "engine/verify/content.h"

#include <string>

namespace planloom {

/// Holds one instruction that no other device takes part in against the specification.
/// @return why it is wrong; empty if it is right
std::string checkLocal(const ExecutionPlan &plan, const Specification &specification, const Side &side);

} // namespace planloom
