#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Adds to the notes of a graph with a loss what exporters changed about its training without saying so, as
/// far as the graph shows:
/// - a scale or bias that several normalisations or products read: equal ones were merged, and are trained as
///   one (only with `mayMerge`: elsewhere the module itself shares them);
/// - batch normalisation with stored statistics (evaluation mode).
///
/// For forward graphs as they are imported, before operators are fused. O(operators + tensors).
void noteTraining(Graph &graph, bool mayMerge);

} // namespace planloom
