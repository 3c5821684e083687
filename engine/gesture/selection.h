#pragma once

#include "engine/graph/graph.h"
#include "engine/plan/plan.h"
#include "engine/table/selector_index.h"

#include <stop_token>
#include <vector>

namespace planloom {

// What the Select menu selects, whichever canvas has the focus. All take and give operators of any direction,
// ascending; O(operators + edges), or with text compared O(operators x length of a name). Thread-safe.

/// What plays the part of one of `selected`, and these themselves: operators of the same kind and direction
///  1. in the same place of other copies of the repeated modules around it ("h.3.mlp.c_fc" for
///  "h.0.mlp.c_fc"; the copies of a
///     module are siblings whose names differ by a number);
///  2. for one that is in none, those of the same name in theirs ("conv1");
///  3. where this finds it alone, those of the same shapes.
/// Operators that merely look alike (the two normalizations of a layer) are not similar while a place tells
/// them apart.
/// @return nothing if stopped
std::vector<OperatorId> similarOperators(
    const Graph &graph, const std::vector<OperatorId> &selected, std::stop_token stop = {});
/// All operators that run on exactly the devices that one of `selected` runs on: what may be moved together
/// with it. (What runs on a device among others is `operatorsOnDevice`.) None if the plan is not of this
/// graph.
std::vector<OperatorId> operatorsOnSameDevices(const Plan &plan, const std::vector<OperatorId> &selected);
/// All operators that have a part on the device.
std::vector<OperatorId> operatorsOnDevice(const Plan &plan, DeviceId device);
/// All operators of the stages of `selected`.
std::vector<OperatorId> operatorsOfSameStages(const Plan &plan, const std::vector<OperatorId> &selected);
/// `selected` and everything it needs, of the forward pass where all of them are forward.
std::vector<OperatorId> predecessorsOf(const SelectorIndex &index, const std::vector<OperatorId> &selected);
/// `selected` and everything that needs it, as above.
std::vector<OperatorId> successorsOf(const SelectorIndex &index, const std::vector<OperatorId> &selected);
/// Every operator that is not in `selected`.
std::vector<OperatorId> invertedSelection(const Graph &graph, const std::vector<OperatorId> &selected);
std::vector<OperatorId> allOperators(const Graph &graph);

/// The devices of an operator's parts, ascending, each once; none without a decision.
std::vector<DeviceId> devicesOf(const Plan &plan, OperatorId op);

} // namespace planloom
