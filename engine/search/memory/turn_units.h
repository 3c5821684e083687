#pragma once

#include "engine/base/result.h"
#include "engine/graph/annotation/partition.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/search/time/stage_figures.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Operators of one layer that coshard (engine/plan/coshard_regions.h) can have take turns together, as the
/// gallery's entry does: all that have such a dimension, heads or feed-forward.
struct TurnUnit {
    std::int32_t layer = -1;
    DimensionMeaning meaning = DimensionMeaning::Unknown;
    std::vector<OperatorId> operators{}; ///< Ascending.
};

/// What of a model can take turns.
struct TurnUnits {
    std::vector<TurnUnit> units{};
    std::vector<std::int32_t> unitOf{}; ///< By forward operator; -1 in none. Likewise the next.
    std::vector<std::int32_t> regionOf{}; ///< Of units that take turns.
    std::vector<Split> splits{}; ///< By forward operator: along the dimension that turns cut.

    bool empty() const { return units.empty(); }
};

/// The units of a model whose regions are dropped with the rest of their layer: what takes turns is computed
/// again in any case, and then costs little more.
/// @param plan  what is dropped @param kernels  rows about what operators compute in
TurnUnits turnUnits(const Model &model, const StagePlan &plan, const ConstraintTable &kernels);

/// The rows that have units take turns, those of the gallery's coshard: for layers that are cut alike one.
/// @param turns  by unit; 1: all at once
ConstraintTable turnRows(
    const Model &model, const std::vector<TurnUnit> &units, const std::vector<std::int32_t> &turns);

} // namespace planloom
