#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Replaces patterns of small operators, as exporters write them, by the operator an expert knows: Linear,
/// LayerNorm, RmsNorm, Gelu (erf and tanh), Silu, Softmax, LogSoftmax, Embedding, Rotary, Attention,
/// CrossEntropy.
///
/// A pattern is fused only where its inner values have no other user and are not outputs of the model.
/// Weights keep the shape they have in the file: a transposed weight becomes Linear's `transposed`. A fused
/// operator has the sources of all it replaces, and a name from the module path they share. Works on forward
/// graphs only; annotations and scopes are to be computed afterwards. Tensors no longer used are removed.
/// O(operators + tensors).
Graph fuseOperators(Graph graph);

/// Removes Reshapes and Transposes that change nothing, and makes one of two Reshapes. O(operators).
Graph tidyReshapes(Graph graph);

/// Computes `annotation` and `annotationProblem` of every operator: forward and optimizer ones from their
/// kind and shapes, backward ones from their forward's annotation.
void annotateOperators(Graph &graph);

} // namespace planloom
