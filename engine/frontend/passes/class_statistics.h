#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Makes two operators of every CrossEntropy of a forward graph: ClassStatistics, which reads the logits and
/// splits along their classes (Megatron-LM's vocabulary-parallel loss, arXiv:1909.08053, section 3), and
/// ClassLoss, which makes the loss of the statistics and keeps the operator's name. Annotations are left to
/// `annotateOperators`. O(operators + tensors).
void separateClassStatistics(Graph &graph);

} // namespace planloom
