#include "engine/kernels/reductions/row_plans.h"

#include "engine/kernels/kernel_call.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

NormRows normRowsOf(const Operator &op, const Shape &x)
{
    NormRows made;
    made.epsilon = op.attributes.real("epsilon", 1e-5);
    made.centred = op.kind != OperatorKind::RmsNorm;
    std::int64_t axis = op.attributes.integer("axis", static_cast<std::int64_t>(x.size()) - 1);
    if (op.kind == OperatorKind::InstanceNorm) {
        axis = 2;
        made.channels = x[1];
    }
    for (std::size_t d = 0; d < x.size(); ++d)
        (static_cast<std::int64_t>(d) < axis ? made.rows : made.width) *= x[d];
    return made;
}

Shape reducedStrides(const Operator &op, const Shape &x)
{
    const auto axes = op.attributes.integers("axes");
    const bool all = !op.attributes.has("axes");
    Shape kept = x;
    for (std::size_t d = 0; d < kept.size(); ++d) {
        if (all || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end())
            kept[d] = 1;
    }
    return broadcastStrides(kept, x);
}

double divisorOf(const Operator &op, std::int64_t inputs, std::int64_t outputs)
{
    if (op.kind != OperatorKind::ReduceMean)
        return 1;
    if (op.attributes.has("count"))
        return op.attributes.real("count", static_cast<double>(op.attributes.integer("count", 1)));
    return outputs == 0 ? 1.0 : static_cast<double>(inputs) / static_cast<double>(outputs);
}

ChannelView channelView(const Shape &x, const Shape &statistics)
{
    ChannelView view;
    view.groups = statistics.size() == 2 ? statistics[1] : 0;
    view.n = x.empty() ? 1 : x[0];
    view.c = x.size() < 2 ? 1 : x[1];
    for (std::size_t d = 2; d < x.size(); ++d)
        view.rest *= x[d];
    return view;
}

} // namespace

Planned<SoftmaxPlan> planSoftmax(const KernelCall &call)
{
    const BackwardCall back(call);
    const bool forward = call.op->direction == Direction::Forward;
    SoftmaxPlan plan;
    plan.x = forward ? findInput(call, 0) : back.output();
    plan.dy = forward ? nullptr : back.gradient();
    plan.made = findOutput(call, 0);
    if (plan.made == nullptr)
        return std::nullopt;
    if (plan.x == nullptr || (!forward && plan.dy == nullptr))
        return missingSlot(call, forward ? "its input" : "a gradient or its saved output");
    plan.view = axisView(plan.made->shape, call.op->attributes.integer("axis"));
    plan.logarithm = call.op->kind == OperatorKind::LogSoftmax;
    return plan;
}

Planned<NormPlan> planNorm(const KernelCall &call)
{
    NormPlan plan;
    plan.made = findOutput(call, 0);
    if (call.op->direction == Direction::Forward) {
        plan.x = findInput(call, 0);
        plan.scale = findInput(call, 1);
        plan.bias = findInput(call, 2);
        if (plan.made == nullptr)
            return std::nullopt;
        if (plan.x == nullptr)
            return missingSlot(call, "its input");
    } else {
        const BackwardCall back(call);
        plan.dy = back.gradient();
        plan.x = back.input(0);
        plan.scale = back.input(1);
        plan.dscale = back.wanted(1);
        plan.dbias = back.wanted(2);
        if (plan.dy == nullptr || (plan.x == nullptr && (plan.made != nullptr || plan.dscale != nullptr)))
            return missingSlot(call, "a gradient or its saved input");
    }
    plan.rows = normRowsOf(*call.op, (plan.dy != nullptr ? plan.dy : plan.x)->shape);
    for (const Buffer *affine : {plan.scale, plan.bias, plan.dscale, plan.dbias}) {
        if (affine != nullptr && elementCount(*affine) != plan.rows.affineSize())
            return notSupported(call,
                "operator " + call.op->name + " has a scale or bias of shape " + toString(affine->shape)
                    + ", expected " + std::to_string(plan.rows.affineSize()) + " elements",
                "give the scale and bias the shape of the normalised dimensions");
    }
    return plan;
}

Planned<ReducePlan> planReduce(const KernelCall &call)
{
    using enum OperatorKind;
    const OperatorKind kind = call.op->kind;
    ReducePlan plan;
    if (findOutput(call, 0) == nullptr)
        return std::nullopt;
    if (call.op->direction == Direction::Forward) {
        plan.y = findOutput(call, 0);
        if (findInput(call, 0) == nullptr && elementCount(call.inputs.at(0)) != 0)
            return missingSlot(call, "its input");
        plan.x = &call.inputs[0];
    } else {
        const BackwardCall back(call);
        plan.dx = back.wanted(0);
        plan.dy = back.gradient();
        plan.x = back.input(0);
        plan.y = back.output();
        const bool needsX = kind != ReduceSum && kind != ReduceMean && kind != ReduceLogSum;
        const bool needsY = kind == ReduceMax || kind == ReduceMin || kind == ReduceL2 || kind == ReduceLogSum
            || kind == ReduceLogSumExp;
        if (plan.dy == nullptr)
            return missingSlot(call, "a gradient");
        if ((needsX && plan.x == nullptr) || (needsY && plan.y == nullptr))
            return missingSlot(call, "its saved input or output");
    }
    const Buffer &wide = plan.dx != nullptr ? *plan.dx : *plan.x;
    plan.strides = reducedStrides(*call.op, wide.shape);
    plan.divisor =
        divisorOf(*call.op, elementCount(wide), elementCount(plan.dy != nullptr ? *plan.dy : *plan.y));
    return plan;
}

Planned<StatisticPlan> planStatistic(const KernelCall &call)
{
    const bool variance = call.op->kind == OperatorKind::BatchVariance;
    StatisticPlan plan;
    if (call.op->direction == Direction::Forward) {
        plan.x = findInput(call, 0);
        plan.mean = variance ? findInput(call, 1) : nullptr;
        plan.y = findOutput(call, 0);
        if (plan.y == nullptr)
            return std::nullopt;
        if (plan.x == nullptr || (variance && plan.mean == nullptr))
            return missingSlot(call, "its input or its mean");
    } else {
        const BackwardCall back(call);
        plan.dy = back.gradient();
        plan.x = variance ? back.input(0) : nullptr;
        plan.mean = variance ? back.input(1) : nullptr;
        plan.dx = back.wanted(0);
        plan.dmean = variance ? back.wanted(1) : nullptr;
        if (plan.dx == nullptr && plan.dmean == nullptr)
            return std::nullopt;
        if (plan.dy == nullptr || (variance && (plan.x == nullptr || plan.mean == nullptr)))
            return missingSlot(call, "a gradient or a saved input");
    }
    plan.view = channelView(
        (plan.x != nullptr ? plan.x : plan.dx)->shape, (plan.dy != nullptr ? plan.dy : plan.y)->shape);
    const std::int64_t each = plan.view.groups == 0 ? plan.view.n : plan.view.c / plan.view.groups;
    plan.count = static_cast<double>(call.op->attributes.integer("count", each * plan.view.rest));
    return plan;
}

Planned<NormalizePlan> planNormalize(const KernelCall &call)
{
    NormalizePlan plan;
    plan.epsilon = call.op->attributes.real("epsilon", 1e-5);
    plan.made = findOutput(call, 0);
    const BackwardCall back(call);
    const bool forward = call.op->direction == Direction::Forward;
    const auto input = [&](std::size_t i) { return forward ? findInput(call, i) : back.input(i); };
    plan.x = input(0);
    plan.mean = input(1);
    plan.variance = input(2);
    plan.scale = input(3);
    plan.bias = input(4);
    if (forward) {
        if (plan.made == nullptr)
            return std::nullopt;
        if (plan.x == nullptr || plan.mean == nullptr || plan.variance == nullptr)
            return missingSlot(call, "its input, mean or variance");
        plan.view = channelView(plan.x->shape, plan.mean->shape);
        return plan;
    }
    plan.dy = back.gradient();
    plan.dmean = back.wanted(1);
    plan.dvariance = back.wanted(2);
    plan.dscale = back.wanted(3);
    plan.dbias = back.wanted(4);
    const bool usesX = plan.dvariance != nullptr || plan.dscale != nullptr;
    const bool usesVariance = usesX || plan.made != nullptr || plan.dmean != nullptr;
    if (plan.dy == nullptr || (usesX && (plan.x == nullptr || plan.mean == nullptr))
        || (usesVariance && plan.variance == nullptr))
        return missingSlot(call, "a gradient or a saved input");
    const Buffer *statistics = plan.mean != nullptr ? plan.mean
        : plan.variance != nullptr                  ? plan.variance
                                                    : plan.dmean;
    plan.view =
        channelView(plan.dy->shape, statistics != nullptr ? statistics->shape : Shape{plan.dy->shape[1]});
    return plan;
}

} // namespace planloom
