#pragma once

#include "engine/layered/layered_layout.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// By edge: true for those that close a cycle, by an iterative depth-first search in node order; edges into a
/// node pinned first, or out of one pinned last, count as such. O(nodes + edges)
std::vector<bool> backEdges(const LayeredGraph &graph);

/// By node: longest-path ranks over the edges that are not back edges, then one pass that draws nodes with
/// more outputs than inputs (constants, tables) down to their users. Every rank is in use. O(nodes log +
/// edges)
std::vector<std::int32_t> ranksOf(const LayeredGraph &graph, const std::vector<bool> &back);

} // namespace planloom
