#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <set>
#include <string>

namespace planloom {

/// Operators of a model that are drawn one by one; of more, layers behind the first one are a box each.
constexpr std::size_t kMostDrawnOperators = 150;
/// Boxes that are drawn at all.
constexpr std::size_t kMostDrawnBoxes = 1200;

/// The forward pass of `plan`'s model as SVG, laid out in ranks from top to bottom (layered_layout.h). Boxes
/// say the stage and the devices that run them; those of operators in `marked`, or whose layers hold such,
/// have the class "differs".
/// @return empty where it would have more than `kMostDrawnBoxes` boxes
/// O((operators + edges) log)
std::string graphSvg(const ExecutionPlan &plan, const std::set<OperatorId> &marked = {});

} // namespace planloom
