#pragma once

#include "engine/gesture/split_steps.h"

#include <vector>

namespace planloom {

/// Splits operators by `steps` besides what rows make of them: a step takes the place of one over the same axis, and of
/// one by the same dimension (or kind) over no axis or of a row about just these operators. Others stay and nest.
/// @param operators  forward, ascending, at least one
Proposal proposeSteps(const GestureContext &context, const std::vector<OperatorId> &operators,
    const std::vector<SplitStep> &steps, std::string words);

} // namespace planloom
