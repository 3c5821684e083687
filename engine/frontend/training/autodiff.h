#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

#include <vector>

namespace planloom {

/// Appends to a forward graph the backward operators that make the gradient of its loss with respect to
/// every Weight the loss depends on (reverse-mode differentiation).
///
/// - Each pTensor on a path from a weight to the loss gets one Gradient pTensor ("x" -> "x.grad"). A pTensor
///   with several consumers (a tied weight, a residual) has as many producers of its gradient, each a
///   summand; no operator adds them up. The loss's own gradient is a Buffer of value 1.
/// - Each operator on such a path gets one backward operator, in reverse order (slots: see `Operator`).
/// Outputs
///   the loss does not depend on have no gradient: their slot is invalid and counts as zero. Gradients are
///   wanted only for inputs on a path from a weight.
/// - Where an operator reads one pTensor in several slots, the further slots first get an Identity of their
/// own
///   ("<operator>.copy"), so that each slot's gradient has a pTensor of its own.
/// - Kinds that are constant almost everywhere (Sign, Floor, comparisons, ArgMax) let nothing through.
///
/// @return NotSupported if the graph has no loss, or an operator on the way has no derivative (`where` names
///   it); InvalidInput if the loss depends on no weight or the graph already has backward operators
/// O(operators + tensors).
Result<void> appendBackward(Graph &graph);

/// The operators on the way from weights to the loss that have no derivative, for all of which a training
/// step cannot be made; none for a model without a loss. O(operators).
std::vector<OperatorId> withoutDerivative(const Graph &graph);

} // namespace planloom
