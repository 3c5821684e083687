#pragma once

#include "engine/gesture/gesture.h"

#include <vector>

namespace planloom {

/// The forward operators that a gesture on `operators` acts on: the forward ones and those behind backward
/// ones.
std::vector<OperatorId> actingForward(
    const GestureContext &context, const std::vector<OperatorId> &operators);

/// "select forward operators": the refusal where there are none.
Error nothingSelected();

} // namespace planloom
