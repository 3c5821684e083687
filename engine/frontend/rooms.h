#pragma once

#include "engine/base/result.h"
#include "engine/graph/capacity.h"
#include "engine/graph/graph.h"

namespace planloom {

/// @return NotFound if `capacities` has one of an operator that takes none
Result<void> checkCapacities(const Graph &graph, const Capacities &capacities);

/// Writes down in `Graph::rooms` what its operators were given of `capacities`. O(operators).
/// @param usual  what operators were given of which `capacities` says nothing
void noteRooms(Graph &graph, const Capacities &capacities, const Capacity &usual = {});

} // namespace planloom
