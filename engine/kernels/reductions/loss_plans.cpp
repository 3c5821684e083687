#include "engine/kernels/reductions/loss_plans.h"

#include "engine/graph/operators/class_axis.h"
#include "engine/kernels/kernel_call.h"

#include <limits>

namespace planloom {

namespace {

std::size_t classAxisOf(const KernelCall &call, const Buffer &logits)
{
    return classAxis(call.op->attributes, logits.shape.size());
}

AxisView classView(const KernelCall &call, const Buffer &logits)
{
    return axisView(logits.shape, static_cast<std::int64_t>(classAxisOf(call, logits)));
}

bool isSum(const KernelCall &call)
{
    return call.op->attributes.text("reduction", "sum") == "sum";
}

std::int64_t classesKnown(const Buffer *weights)
{
    return weights == nullptr ? std::numeric_limits<std::int64_t>::max() : elementCount(*weights);
}

/// The plan, if its labels can be some.
template<typename Plan> Planned<Plan> withLabels(const KernelCall &call, Plan plan)
{
    if (isFloating(plan.labels->dataType))
        return unsupportedType(call, plan.labels->dataType);
    return plan;
}

} // namespace

Planned<LossPlan> planLoss(const KernelCall &call)
{
    const BackwardCall back(call);
    const bool forward = call.op->direction == Direction::Forward;
    const auto input = [&](std::size_t i) { return forward ? findInput(call, i) : back.input(i); };
    LossPlan plan{input(0), input(1), input(2), forward ? nullptr : back.gradient(), findOutput(call, 0)};
    plan.logits = call.op->kind == OperatorKind::CrossEntropy;
    plan.isSum = isSum(call);
    if (plan.made == nullptr)
        return std::nullopt;
    if (plan.labels == nullptr || (plan.x == nullptr && (forward || plan.logits)))
        return missingSlot(
            call, forward ? "its logits or its labels" : "a gradient, its logits or its labels");
    if (!forward && plan.dy == nullptr)
        return missingSlot(call, "a gradient, its logits or its labels");
    plan.view = classView(call, forward ? *plan.x : *plan.made);
    return withLabels(call, plan);
}

Planned<ClassStatisticsPlan> planClassStatistics(const KernelCall &call)
{
    ClassStatisticsPlan plan;
    if (call.op->direction == Direction::Forward) {
        plan.x = findInput(call, 0);
        plan.labels = findInput(call, 1);
        plan.sums = findOutput(call, 0);
        plan.picked = findOutput(call, 1);
        if (plan.sums == nullptr && plan.picked == nullptr)
            return std::nullopt;
        if (plan.x == nullptr || plan.labels == nullptr)
            return missingSlot(call, "its logits or its labels");
    } else {
        const BackwardCall back(call);
        plan.x = back.input(0);
        plan.labels = back.input(1);
        plan.sums = back.output(0);
        plan.dSums = back.gradient(0);
        plan.dPicked = back.gradient(1);
        plan.dx = back.wanted(0);
        if (plan.dx == nullptr)
            return std::nullopt;
        if (plan.labels == nullptr || plan.x == nullptr || (plan.dSums != nullptr && plan.sums == nullptr))
            return missingSlot(call, "its logits, its labels or their log-sum-exp");
    }
    const Buffer &wide = plan.dx != nullptr ? *plan.dx : *plan.x;
    const std::size_t axis = classAxisOf(call, wide);
    plan.view = classView(call, wide);
    plan.classes = wholeExtent(wide, axis);
    plan.first = firstOf(wide, axis);
    return withLabels(call, plan);
}

Planned<ClassLossPlan> planClassLoss(const KernelCall &call)
{
    ClassLossPlan plan;
    if (call.op->direction == Direction::Forward) {
        plan = {findInput(call, 0), findInput(call, 1), findInput(call, 2), findInput(call, 3), nullptr,
            findOutput(call, 0)};
        if (plan.made == nullptr)
            return std::nullopt;
        if (plan.sums == nullptr || plan.picked == nullptr || plan.labels == nullptr)
            return missingSlot(call, "its statistics or its labels");
    } else {
        const BackwardCall back(call);
        plan = {back.wanted(0), back.wanted(1), back.input(2), back.input(3), back.gradient(), nullptr};
        if (plan.sums == nullptr && plan.picked == nullptr)
            return std::nullopt;
        if (plan.dy == nullptr || plan.labels == nullptr)
            return missingSlot(call, "a gradient or its labels");
    }
    plan.classes = classesKnown(plan.weights);
    plan.isSum = isSum(call);
    return withLabels(call, plan);
}

Planned<ClassLossPlan> planCountValid(const KernelCall &call)
{
    ClassLossPlan plan;
    plan.labels = findInput(call, 0);
    plan.weights = findInput(call, 1);
    plan.made = findOutput(call, 0);
    if (plan.made == nullptr)
        return std::nullopt;
    if (plan.labels == nullptr)
        return missingSlot(call, "its labels");
    plan.classes = classesKnown(plan.weights);
    return withLabels(call, plan);
}

} // namespace planloom
