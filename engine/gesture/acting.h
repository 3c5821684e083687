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

/// The producer of the operator's largest activation input, whose place it takes by default; invalid if it
/// has none.
OperatorId leaderOf(const SelectorIndex &index, OperatorId op);
/// Forward operators that use what `op` makes.
std::vector<OperatorId> forwardConsumers(const SelectorIndex &index, OperatorId op);
/// Forward operators that make what `op` uses.
std::vector<OperatorId> forwardProducers(const SelectorIndex &index, OperatorId op);

} // namespace planloom
