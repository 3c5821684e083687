#pragma once

#include "engine/runtime/communicator.h"

#include <string>
#include <vector>

namespace planloom {

/// What is wrong with the members' buffers of one collective; empty if they fit. Reads all of them, so that
/// all members agree. O(members^2).
std::string misfit(const std::vector<CollectiveCall> &slots);

} // namespace planloom
