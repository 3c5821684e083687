#pragma once

#include "engine/graph/shape.h"
#include "engine/kernels/kernel_plan.h"

#include <cstddef>

namespace planloom {

/// A function of one operand, or its gradient.
struct UnaryPlan {
    const Buffer *x = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *made = nullptr;
    bool fromValue = false; ///< x is the function's value: it is what was saved.
};
/// @param slopeOfValue  the function's slope can be told from its value
Planned<UnaryPlan> planUnary(const KernelCall &call, bool slopeOfValue);

/// The gradient of one operand of a function of two. Strides are over dy's dimensions.
struct BinarySlopePlan {
    const Buffer *dy = nullptr;
    const Buffer *a = nullptr; ///< Null where the slope does not depend on it; its strides are 0 then.
    const Buffer *b = nullptr;
    const Buffer *made = nullptr;
    Shape stridesA{};
    Shape stridesB{};
    Shape stridesMade{};

    bool isSum() const { return made->shape != dy->shape; } ///< The operand was broadcast.
};
/// @param needs  of a function's `kSlopeNeeds` that of operand `side`
Planned<BinarySlopePlan> planBinarySlope(const KernelCall &call, int needs, std::size_t side);

/// The same of a Where, whose slope depends on the condition, `a`, alone.
Planned<BinarySlopePlan> planWhereSlope(const KernelCall &call, std::size_t side);

} // namespace planloom
