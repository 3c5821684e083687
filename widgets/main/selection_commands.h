#pragma once

#include "engine/graph/graph.h"
#include "engine/plan/plan.h"
#include "engine/table/selector_index.h"

#include <vector>

namespace planloom {

// What the Select menu selects. All take and give operators of any direction, ascending; O(operators + edges).

/// Operators of the same kind, direction and shapes as one of `selected`: the other copies of a repeated layer.
std::vector<OperatorId> similarOperators(const Graph &graph, const std::vector<OperatorId> &selected);
/// All operators that share a device with one of `selected`; none if the plan is not of this graph.
std::vector<OperatorId> operatorsOnSameDevices(const Plan &plan, const std::vector<OperatorId> &selected);
std::vector<OperatorId> operatorsOnDevice(const Plan &plan, DeviceId device);
/// All operators of the stages of `selected`.
std::vector<OperatorId> operatorsOfSameStages(const Plan &plan, const std::vector<OperatorId> &selected);
/// `selected` and everything it needs, of the forward pass where all of them are forward.
std::vector<OperatorId> predecessorsOf(const SelectorIndex &index, const std::vector<OperatorId> &selected);
/// `selected` and everything that needs it, as above.
std::vector<OperatorId> successorsOf(const SelectorIndex &index, const std::vector<OperatorId> &selected);
/// Every forward operator that is not in `selected`.
std::vector<OperatorId> invertedSelection(const Graph &graph, const std::vector<OperatorId> &selected);
std::vector<OperatorId> allForwardOperators(const Graph &graph);

} // namespace planloom
