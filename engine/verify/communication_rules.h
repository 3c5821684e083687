#pragma once

#include "engine/verify/content.h"

#include <string>
#include <vector>

namespace planloom {

/// Holds a collective, or a send with its receive, against what its kind means: `sides` in the order of the
/// group, or sender then receiver.
std::string checkCommunication(
    const ExecutionPlan &plan, const Specification &specification, const std::vector<Side> &sides);

} // namespace planloom
