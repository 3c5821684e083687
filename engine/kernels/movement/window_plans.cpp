#include "engine/kernels/movement/window_plans.h"

#include "engine/kernels/kernel_call.h"

namespace planloom {

namespace {

PlannedConvolution pass(
    const Operator &op, ConvolutionPass which, const Buffer &x, const Buffer &w, const Buffer &y)
{
    return {which, convolutionOf(op, x, w, y), &x, &w, &y};
}

Planned<ConvolutionPlan> planConvolutionSlopes(const KernelCall &call)
{
    const BackwardCall back(call);
    const Operator &op = *call.op;
    const bool transposed = op.kind == OperatorKind::ConvTranspose;
    const Buffer *x = back.input(0);
    const Buffer *w = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dw = back.wanted(1);
    ConvolutionPlan plan;
    plan.dy = back.gradient();
    plan.dbias = back.wanted(2);
    if (plan.dy == nullptr || (dx != nullptr && w == nullptr) || (dw != nullptr && x == nullptr))
        return missingSlot(call, "a gradient, its input or its weight");
    plan.own = *plan.dy;
    plan.own.mask = ownBox(call, 0);
    plan.own.shape = shapeOf(plan.own.mask);
    plan.addsUpBias = plan.dbias != nullptr && makesTerm(call, 2, {0});
    if (dx != nullptr)
        plan.products.push_back(transposed ? pass(op, ConvolutionPass::Forward, *plan.dy, *w, *dx)
                                           : pass(op, ConvolutionPass::OfData, *dx, *w, *plan.dy));
    if (dw != nullptr) {
        plan.products.push_back(transposed ? pass(op, ConvolutionPass::OfWeights, *plan.dy, *dw, *x)
                                           : pass(op, ConvolutionPass::OfWeights, *x, *dw, plan.own));
        if (!transposed)
            plan.products.back().y = nullptr;
    }
    return plan;
}

} // namespace

Planned<ConvolutionPlan> planConvolution(const KernelCall &call)
{
    if (call.op->direction == Direction::Backward)
        return planConvolutionSlopes(call);
    const Buffer *x = findInput(call, 0);
    const Buffer *w = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return std::nullopt;
    if (x == nullptr || w == nullptr)
        return missingSlot(call, "its input or its weight");
    ConvolutionPlan plan;
    plan.products.push_back(call.op->kind == OperatorKind::ConvTranspose
            ? pass(*call.op, ConvolutionPass::OfData, *y, *w, *x)
            : pass(*call.op, ConvolutionPass::Forward, *x, *w, *y));
    plan.bias = makesTerm(call, 0, {2}) ? findInput(call, 2) : nullptr;
    return plan;
}

Planned<PoolPlan> planPool(const KernelCall &call)
{
    const Attributes &attributes = call.op->attributes;
    const Shape kernel = attributes.integers("kernel_shape");
    const OperatorKind kind = call.op->kind;
    PoolPlan plan;
    plan.rule.pooling = kind == OperatorKind::MaxPool ? Pooling::Largest
        : kind == OperatorKind::AveragePool           ? Pooling::Average
                                                      : Pooling::Norm;
    plan.rule.countPadding = attributes.integer("count_include_pad") != 0;
    plan.rule.p = static_cast<double>(attributes.integer("p", 2));
    if (findOutput(call, 0) == nullptr)
        return std::nullopt;
    if (call.op->direction == Direction::Forward) {
        plan.x = findInput(call, 0);
        plan.y = findOutput(call, 0);
        if (plan.x == nullptr)
            return missingSlot(call, "its input");
        plan.windows = windowGeometry(attributes, *plan.x, *plan.y, kernel);
        return plan;
    }
    const BackwardCall back(call);
    const bool average = plan.rule.pooling == Pooling::Average;
    plan.dy = back.gradient();
    plan.x = average ? nullptr : back.input(0);
    plan.y = average ? nullptr : back.output();
    plan.dx = back.wanted(0);
    if (plan.dy == nullptr || (!average && (plan.x == nullptr || plan.y == nullptr)))
        return missingSlot(call, "a gradient or its saved input and output");
    plan.windows = windowGeometry(attributes, average ? *plan.dx : *plan.x, *plan.dy, kernel);
    plan.share = windowGeometry(attributes, *plan.dx, *plan.dy, kernel);
    return plan;
}

} // namespace planloom
