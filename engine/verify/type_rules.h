#pragma once

#include "engine/verify/content.h"

#include <string>
#include <vector>

namespace planloom {

/// Holds the types of one instruction's buffers against what the plan's precisions ask for. For instructions
/// that `checkLocal` has found right.
/// @return why they are wrong; empty if they are right
std::string checkBufferTypes(const ExecutionPlan &plan, const Specification &specification, const Side &side);

/// The same for a collective, or a send with its receive, after `checkCommunication`.
std::string checkSentTypes(
    const ExecutionPlan &plan, const Specification &specification, const std::vector<Side> &sides);

/// Holds a persistent buffer's memory kind against its type: copies of weights that the optimizer alone reads
/// are its own. @return as above
std::string checkMemoryKind(const ExecutionPlan &plan, const StorageTypes &types, const BufferInfo &buffer);

} // namespace planloom
