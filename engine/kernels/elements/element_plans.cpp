#include "engine/kernels/elements/element_plans.h"

#include "engine/kernels/elements/binary_functions.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"

namespace planloom {

namespace {

/// With the strides of what it reads and makes.
BinarySlopePlan slopePlan(const Buffer *dy, const Buffer *a, const Buffer *b, const Buffer *made)
{
    const auto strides = [&](const Buffer *operand) {
        return operand == nullptr ? Shape(dy->shape.size(), 0) : broadcastStrides(operand->shape, dy->shape);
    };
    return {dy, a, b, made, strides(a), strides(b), strides(made)};
}

} // namespace

Planned<UnaryPlan> planUnary(const KernelCall &call, bool slopeOfValue)
{
    UnaryPlan plan;
    plan.made = findOutput(call, 0);
    if (plan.made == nullptr)
        return std::nullopt;
    if (call.op->direction == Direction::Forward) {
        plan.x = findInput(call, 0);
        if (plan.x == nullptr)
            return missingSlot(call, "its input");
        return plan;
    }
    const BackwardCall back(call);
    plan.dy = back.gradient();
    if (plan.dy == nullptr)
        return missingSlot(call, "a gradient");
    plan.x = back.input(0);
    if (plan.x == nullptr && slopeOfValue) {
        plan.x = back.output(0);
        plan.fromValue = true;
    }
    if (plan.x == nullptr && call.op->kind == OperatorKind::Neg)
        plan.x = plan.dy; // the one slope that depends on neither
    if (plan.x == nullptr)
        return missingSlot(call, "its saved input");
    return plan;
}

Planned<BinarySlopePlan> planBinarySlope(const KernelCall &call, int needs, std::size_t side)
{
    const BackwardCall back(call);
    const bool needsA = (needs & binary::kOnlyA) != 0;
    const bool needsB = (needs & binary::kOnlyB) != 0;
    if (back.wanted(side) == nullptr)
        return std::nullopt;
    if (back.gradient() == nullptr)
        return missingSlot(call, "a gradient");
    if ((needsA && back.input(0) == nullptr) || (needsB && back.input(1) == nullptr))
        return missingSlot(call, "a saved input");
    return slopePlan(back.gradient(), needsA ? back.input(0) : nullptr, needsB ? back.input(1) : nullptr,
        back.wanted(side));
}

Planned<BinarySlopePlan> planWhereSlope(const KernelCall &call, std::size_t side)
{
    const BackwardCall back(call);
    if (back.gradient() == nullptr || back.input(0) == nullptr)
        return missingSlot(call, "a gradient or its condition");
    if (back.wanted(side) == nullptr)
        return std::nullopt;
    return slopePlan(back.gradient(), back.input(0), nullptr, back.wanted(side));
}

} // namespace planloom
