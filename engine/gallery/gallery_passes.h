#pragma once

#include "engine/base/result.h"
#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/operator_costs.h"
#include "engine/table/selector_index.h"
#include "engine/table/table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Passes of a model through one set of weights, one after the other (AlphaFold 2's recycling).
struct Passes {
    std::int32_t count = 0; ///< At least 2.
    std::vector<std::int32_t> passOf{}; ///< By operator; -1 for what runs backward or updates.
    /// By operator: the one of the last pass that reads the same weight, else the one whose place it shares;
    /// invalid where there is none.
    std::vector<OperatorId> likeOf{};
};

/// Finds the passes by the weights: where most weights are read by the same number of forward operators, each
/// behind the one before in the data flow, that is how often the model runs. Nothing where they are read
/// once. O(operators x passes + edges)
std::optional<Passes> findPasses(const SelectorIndex &index);
Error noPasses(); ///< What to say where there are none.

/// Rows that put the passes through the same `ranks` stages: stage p of pass k is stage k x ranks + p of the
/// pipeline and lies on rank p, so that every weight is in one place. Balanced by what the last pass takes
/// forward and backward, and the others forward.
/// @param measure  in place of what `costs` says; may be null
/// @return InvalidInput where there are no passes, or too few operators
Result<void> appendPasses(const SelectorIndex &index, const std::string &axis, std::int32_t ranks,
    const OperatorCosts &costs, ConstraintTable &table);

} // namespace planloom
