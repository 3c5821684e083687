#pragma once

#include "engine/gesture/row_steps.h"

#include <vector>

namespace planloom {

/// Splits operators by `steps` besides what rows make of them: a step takes the place of one over the same
/// axis, and of one by the same dimension (or kind) over no axis or of a row about just these operators.
/// Others stay and nest.
/// @param operators  forward, ascending, at least one
/// @param named  how somebody called exactly these operators; null for nobody
Proposal proposeSteps(const GestureContext &context, const std::vector<OperatorId> &operators,
    const std::vector<SplitStep> &steps, std::string words, const Selector *named = nullptr);

/// `proposePlace` and `proposeStage` for operators that somebody called `named`.
Proposal proposePlaceOf(const GestureContext &context, const PlaceGesture &gesture, const Selector *named);
Proposal proposeStageOf(const GestureContext &context, const std::vector<OperatorId> &selected, StageId stage,
    const Selector *named);

} // namespace planloom
