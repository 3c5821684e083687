#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Removes the operators that no output of a forward graph depends on, and the tensors that nothing uses
/// then; the model's inputs stay. Order is kept, ids are renumbered. O(operators + tensors).
void removeDeadCode(Graph &graph);

} // namespace planloom
