#pragma once

#include "engine/graph/graph.h"

#include <functional>
#include <string>

namespace planloom {

/// The smallest graph found, of those that some operators are taken out of, that still `fails`: what an
/// operator makes becomes an input, or is what it reads. O(operators^2) calls of `fails`.
Graph reducedModel(Graph graph, const std::function<bool(const Graph &)> &fails);

/// An operator a line: "y [2 3] = Add(x [2 3] input, w [3] weight) {axis=1}".
std::string textOf(const Graph &graph);

} // namespace planloom
