#pragma once

#include "engine/search/time/step_estimate.h"

namespace planloom {

/// What an estimate decided, as rows to stand behind those that it was made for: mesh, micro-batches, the cut
/// of the batch, stages, schedule, sharding, recomputation, and how operators are partitioned, as far as the
/// default rule (plan/default_rule.h) would not do the same anyway.
///
/// What rows place is left where they do, and what they place apart (placed_operators.h) as it is.
/// Rows carry notes that say why. Their selectors are ranges of layers, modules and names, in this order.
/// @param zigzag  the axis over which sequences are cut in zigzags (SplitStep::zigzag); empty: none
Result<ConstraintTable> rowsOf(const StepEstimate &estimate, const PartitionProblem &problem,
    const PlacedOperators &placed, const Model &model, const SearchSpace &space, const ConstraintTable &asked,
    const std::string &zigzag = {});

} // namespace planloom
