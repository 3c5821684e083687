#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Makes two operators of every CrossEntropy of a forward graph: ClassStatistics, which reads the logits and
/// splits along their classes (Megatron-LM's vocabulary-parallel loss, arXiv:1909.08053, section 3), and
/// ClassLoss, which makes the loss of the statistics and keeps the operator's name. Where its logits are rows
/// of all positions of all sequences, both read what the rows were made of: so the loss can be cut along the
/// sequence, too. Annotations, and dead Reshapes, are left to others. O(operators + tensors).
void separateClassStatistics(Graph &graph);

} // namespace planloom
