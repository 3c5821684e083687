#pragma once

#include "engine/graph/graph.h"

#include <string>

namespace planloom {

/// Holds what a graph says of itself against what follows from its operators' kinds, attributes and wiring:
/// that it is valid, that outputs have the types their kinds make, that every annotation is the one of its
/// kind, and that optimizer operators update a weight and its states from that weight's gradient. A plan file
/// carries its graph; an annotation that allows what its operator does not would let a wrong partition pass.
/// @return the first thing that is wrong as a sentence; empty if nothing is
/// O(operators + tensors).
std::string checkGraph(const Graph &graph);

} // namespace planloom
