#pragma once

#include "engine/graph/graph.h"

#include <functional>
#include <vector>

namespace planloom {

/// Of forward operators whose outputs are dropped together those that a backward pass runs again: what makes
/// something that is wanted, and what that is made from.
/// @param operators  in their order, as the result
/// @param isWanted  of an operator's output: whether something reads it that is not run again itself
/// O(operators x their tensors).
std::vector<OperatorId> runAgain(const Graph &graph, const std::vector<OperatorId> &operators,
    const std::function<bool(OperatorId maker, TensorId output)> &isWanted);

} // namespace planloom
