#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cost_model.h"
#include "engine/table/selector_index.h"

#include <cstdint>
#include <set>
#include <vector>

namespace planloom {

/// Cuts a chain into `stages` consecutive, non-empty runs: the largest cost of a run is minimal, and among
/// such cuts the sum of `crossing` at the cuts.
///
/// @param cost      per link of the chain, not negative
/// @param crossing  per position: what passes from link i - 1 to link i
/// @param allowed   per position: whether the chain may be cut before link i
/// @return where runs 1, 2, ... begin, ascending; empty if there are too few places to cut
/// Exact. O(links x (log cost + stages x links in a run)).
std::vector<std::size_t> balancedCuts(const std::vector<std::int64_t> &cost,
    const std::vector<std::int64_t> &crossing, const std::vector<bool> &allowed, std::int32_t stages);

/// The same where stages differ: run s costs `costOfKind[kindOfStage[s]]`. O(log cost x links^2).
std::vector<std::size_t> balancedCuts(const std::vector<std::vector<std::int64_t>> &costOfKind,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::int64_t> &crossing,
    const std::vector<bool> &allowed);

/// The forward operators of each of `stages` pipeline stages, ascending, balanced by the time that `costs`
/// says forward and backward take. Cuts lie between layers unless that costs more than a quarter of the step.
/// Operators that use no weight belong to the first stage that reads them.
/// @param classes  by stage, the classes that its devices are of: the slowest counts; may be empty: all are 0
/// @return InvalidInput if the model has too few operators
Result<std::vector<std::vector<OperatorId>>> pipelineStages(const SelectorIndex &index, std::int32_t stages,
    const CostModel &costs, const std::vector<std::set<std::int32_t>> &classes = {});

/// The same, balanced by what each operator takes: @param nanoseconds  by operator, both passes
Result<std::vector<std::vector<OperatorId>>> pipelineStages(
    const SelectorIndex &index, std::int32_t stages, const std::vector<std::int64_t> &nanoseconds);

/// Nanoseconds that a whole operator takes with its backward operator on a device of this class.
std::int64_t nanosecondsOf(
    const Graph &graph, OperatorId forward, const CostModel &costs, std::int32_t deviceClass = 0);

} // namespace planloom
