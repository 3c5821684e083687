#pragma once

#include "engine/base/result.h"
#include "engine/gallery/operator_costs.h"
#include "engine/table/selector_index.h"

#include <cstdint>
#include <set>
#include <vector>

namespace planloom {

/// Cuts a chain into `stages` consecutive, non-empty runs: the largest cost of a run is minimal, and among
/// such cuts the sum of `crossing` at the cuts; of these, the smallest run is large (within a few percent of
/// the largest run of what can be).
///
/// @param cost      per link of the chain, not negative
/// @param crossing  per position: what passes from link i - 1 to link i
/// @param allowed   per position: whether the chain may be cut before link i
/// @return where runs 1, 2, ... begin, ascending; empty if there are too few places to cut
/// Exact. O(links x (log cost + stages x links in a run)).
std::vector<std::size_t> balancedCuts(const std::vector<std::int64_t> &cost,
    const std::vector<std::int64_t> &crossing, const std::vector<bool> &allowed, std::int32_t stages);

/// What runs of a chain are held to.
struct RunLimits {
    std::vector<std::int64_t> bytes{}; ///< By link, not negative.
    std::vector<std::int64_t> room{}; ///< By run, the most bytes of its links; empty: there is no limit.
    /// By run, the links that it may begin with; empty: any.
    std::vector<Range> beginnings{};
};

/// The same where stages differ: run s costs `costOfKind[kindOfStage[s]]`; and where they are held to more.
/// With beginnings among which are those that would be chosen without them, these are chosen.
/// O(log cost x links^2).
std::vector<std::size_t> balancedCuts(const std::vector<std::vector<std::int64_t>> &costOfKind,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::int64_t> &crossing,
    const std::vector<bool> &allowed, const RunLimits &limits = {});

/// The largest cost of the runs that begin at 0 and at `cuts`.
std::int64_t largestRun(const std::vector<std::vector<std::int64_t>> &costOfKind,
    const std::vector<std::size_t> &kindOfStage, const std::vector<std::size_t> &cuts);

/// Bytes of activations that pass each position of `order`. O(operators).
std::vector<std::int64_t> crossingBytes(const SelectorIndex &index, const std::vector<OperatorId> &order);

/// The forward operators of each of `stages` pipeline stages, ascending, balanced by the time that `costs`
/// says forward and backward take. Cuts lie between layers unless that costs more than a quarter of the step.
/// Operators that use no weight belong to the first stage that reads them.
/// @param classes  by stage, the classes that its devices are of: the slowest counts; may be empty: all are 0
/// @param outside  by operator: belongs to no stage; may be empty
/// @return InvalidInput if the model has too few operators
Result<std::vector<std::vector<OperatorId>>> pipelineStages(const SelectorIndex &index, std::int32_t stages,
    const OperatorCosts &costs, const std::vector<std::set<std::int32_t>> &classes = {},
    const std::vector<bool> &outside = {});

/// How much slower the slowest stage may be for the cuts to lie between layers.
constexpr double kLayerTolerance = 1.25;

/// What operators take, in place of what a cost model says.
struct StageMeasure {
    std::vector<std::int64_t> nanoseconds{}; ///< By operator, both passes.
    /// Where stages differ in what operators take, in place of that: by kind of stage; and the kind of each.
    std::vector<std::vector<std::int64_t>> ofKind{};
    std::vector<std::size_t> kindOfStage{};
    std::vector<std::int64_t> bytes{}; ///< By operator: that it holds on its stage's devices; may be empty.
    std::vector<std::int64_t> room{}; ///< By stage: for so many bytes; empty: there is no limit.
};

/// The same, balanced by what was measured, within the room of the stages where that can be.
Result<std::vector<std::vector<OperatorId>>> pipelineStages(const SelectorIndex &index, std::int32_t stages,
    const StageMeasure &measure, const std::vector<bool> &outside = {});

/// As far as nanoseconds go.
Result<std::vector<std::vector<OperatorId>>> pipelineStages(
    const SelectorIndex &index, std::int32_t stages, const std::vector<std::int64_t> &nanoseconds);

} // namespace planloom
