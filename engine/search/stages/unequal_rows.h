#pragma once

#include "engine/search/search_space.h"
#include "engine/search/time/step_estimate.h"

namespace planloom {

/// Rows that make an estimate of a plan whose stages have groups of devices of their own: as `rowsOf`,
/// without a mesh.
/// @param estimator  whose estimate it is
Result<ConstraintTable> unequalRowsOf(const StepEstimate &estimate, const StepEstimator &estimator,
    const Model &model, const SearchSpace &space, const ConstraintTable &asked);

} // namespace planloom
