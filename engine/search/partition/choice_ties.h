#pragma once

#include "engine/search/partition/cost_network.h"
#include "engine/search/partition/operator_choices.h"

#include <vector>

namespace planloom {

/// Of operators that rows have cut alike, or follow their producers, whatever else is free: factors that are
/// infinite where their choices do not.
/// @param choices  by forward operator, none without any; @param finder  of these
std::vector<CostFactor> choiceTies(const AxisSetting &setting,
    const std::vector<const OperatorChoices *> &choices, const ChoiceFinder &finder);

} // namespace planloom
