#pragma once

#include "engine/gesture/row_steps.h"

#include <optional>
#include <string>
#include <vector>

namespace planloom {

// Why an operator may not be split so, in words for people. What may be is for `checkPartition` and
// `canDealOut` to say.

/// Why `steps`, sorted, may not be; nothing if they may. @param coshard  dimension -1 for none
std::optional<Error> checkSteps(
    const GestureContext &context, OperatorId op, const std::vector<BoundStep> &steps, const Split &coshard);
/// Why their parts cannot be dealt out to the devices of `domain`; nothing if they can.
std::optional<Error> checkDealing(
    const GestureContext &context, OperatorId op, const std::vector<BoundStep> &steps, const Domain &domain);

/// Why a dimension may not be split: "softmax reduces over this dimension"; empty if it may.
std::string lockOf(const Operator &op, std::int32_t dimension);
/// "k+".
std::string labelOf(const Annotation &annotation, std::int32_t dimension);

} // namespace planloom
