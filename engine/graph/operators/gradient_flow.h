#pragma once

#include "engine/graph/graph.h"

#include <vector>

namespace planloom {

/// By tensor: true for gradients of weights, and of what the forward pass makes of weights alone (one in
/// another shape, positions that were looked up). All other gradients are those of some operator's input.
///
/// This is what a split backward pass goes by (zero bubble, arXiv:2401.10241, section 2): gradients of inputs
/// are waited for by the stage before, gradients of weights by the optimizer alone.
/// O(operators).
std::vector<bool> gradientsOfWeights(const Graph &graph);

/// `backward` where only outputs in `wanted` are made: the others have an invalid id, and so do inputs that
/// only those need.
/// @param wanted  by output slot
Operator partOfBackward(const Graph &graph, const Operator &backward, const std::vector<bool> &wanted);

} // namespace planloom
