#pragma once

#include "engine/graph/operator.h"

#include <cstddef>
#include <optional>

namespace planloom {

// What the operators of an optimizer (`Direction::Optimizer`) do, told in one place: most change a weight;
// where gradients are clipped, others find the factor that all of them are scaled by (training.h).

/// Whether `op` makes a new weight of a weight (slot 0), its gradient (slot 1) and its states, which follow.
/// Output 0 is the new weight; output i > 0 the new state of input i + 1.
inline bool updatesWeight(const Operator &op)
{
    return op.kind == OperatorKind::SgdStep || op.kind == OperatorKind::AdamWStep;
}

/// Where an operator that updates weights reads the factor that its gradient is scaled by first, if it has
/// one: behind all states its kind can have.
constexpr std::size_t factorSlotOf(OperatorKind kind)
{
    return kind == OperatorKind::AdamWStep ? 4 : 3;
}

/// That slot, where `op` has such an input.
inline std::optional<std::size_t> factorSlot(const Operator &op)
{
    const std::size_t slot = factorSlotOf(op.kind);
    return updatesWeight(op) && slot < op.inputs.size() && op.inputs[slot] ? std::optional(slot)
                                                                           : std::nullopt;
}

/// Where an operator of the optimizer reads the gradient of a weight, as the loss scale left it.
inline std::optional<std::size_t> gradientSlot(const Operator &op)
{
    if (updatesWeight(op))
        return 1;
    return op.kind == OperatorKind::SquareSum ? std::optional<std::size_t>(0) : std::nullopt;
}

} // namespace planloom
