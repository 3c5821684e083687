// Softmax, norms and reductions on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/reductions/norm_plan.h"
#include "engine/kernels/reductions/reduce_plan.h"

namespace planloom {

namespace {

Result<bool> launchSoftmax(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    SoftmaxKernel kernel;
    kernel.logarithm = call.op->kind == OperatorKind::LogSoftmax;
    const Buffer *made = findOutput(call, 0);
    if (made == nullptr)
        return true;
    kernel.made = device.of(made);
    if (call.op->direction == Direction::Forward) {
        kernel.x = device.input(0);
    } else {
        const BackwardCall back(call);
        kernel.x = device.of(back.output());
        kernel.dy = device.of(back.gradient());
        if (kernel.dy.data == nullptr)
            return false;
    }
    if (kernel.x.data == nullptr)
        return false;
    const AxisView view = axisView(made->shape, call.op->attributes.integer("axis"));
    kernel.place = {view.extent, view.inner};
    TRY_VOID(device.queue.launch(kernel, view.outer * view.inner));
    return true;
}

bool fits(const NormPlan &plan, const Buffer *affine)
{
    return affine == nullptr || elementCount(*affine) == plan.affineSize();
}

Result<bool> launchNormForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *x = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (x == nullptr)
        return false;
    const NormPlan plan = planNorm(*call.op, x->shape);
    if (!fits(plan, findInput(call, 1)) || !fits(plan, findInput(call, 2)))
        return false;
    NormKernel kernel;
    kernel.x = device.of(x);
    kernel.scale = device.input(1);
    kernel.bias = device.input(2);
    kernel.made = device.of(y);
    kernel.width = plan.width;
    kernel.channels = plan.channels;
    kernel.centred = plan.centred;
    kernel.epsilon = plan.epsilon;
    TRY_VOID(device.queue.launch(kernel, plan.rows));
    return true;
}

Result<bool> launchNormBackward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *dx = back.wanted(0);
    const Buffer *dscale = back.wanted(1);
    const Buffer *dbias = back.wanted(2);
    if (dy == nullptr || (x == nullptr && (dx != nullptr || dscale != nullptr)))
        return false;
    const NormPlan plan = planNorm(*call.op, dy->shape);
    if (!fits(plan, back.input(1)) || !fits(plan, dscale) || !fits(plan, dbias))
        return false;
    float *statistics = nullptr;
    if (dx != nullptr || dscale != nullptr) {
        TRY(statistics, device.scratch<float>(2 * plan.rows));
        NormKernel kernel;
        kernel.x = device.of(x);
        kernel.scale = device.of(back.input(1));
        kernel.dy = device.of(dy);
        kernel.made = device.of(dx);
        kernel.statistics = statistics;
        kernel.width = plan.width;
        kernel.channels = plan.channels;
        kernel.centred = plan.centred;
        kernel.epsilon = plan.epsilon;
        TRY_VOID(device.queue.launch(kernel, plan.rows));
    }
    for (const bool scale : {true, false}) {
        const Buffer *const target = scale ? dscale : dbias;
        if (target == nullptr)
            continue;
        TRY_VOID(
            device.queue.launch(NormAffineKernel{device.of(scale ? x : dy), device.of(dy), device.of(target),
                                    scale ? statistics : nullptr, plan.rows, plan.width, plan.channels},
                plan.affineSize()));
    }
    return true;
}

Result<bool> launchReduceForward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const Buffer *x = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return true;
    if (x == nullptr || !isFloating(device.of(x).type))
        return false;
    ReduceKernel kernel;
    switch (call.op->kind) {
    case OperatorKind::ReduceSum:
        break;
    case OperatorKind::ReduceMean:
        kernel.divisor = divisorOf(*call.op, elementCount(*x), elementCount(*y));
        break;
    case OperatorKind::ReduceLogSum:
        kernel.logarithm = true;
        break;
    case OperatorKind::ReduceL1:
        kernel.reduction = RowReduction::SumOfSizes;
        break;
    case OperatorKind::ReduceL2:
        kernel.root = true;
        kernel.reduction = RowReduction::SumOfSquares;
        break;
    case OperatorKind::ReduceSumSquare:
        kernel.reduction = RowReduction::SumOfSquares;
        break;
    case OperatorKind::ReduceMax:
        kernel.reduction = RowReduction::Largest;
        break;
    case OperatorKind::ReduceMin:
        kernel.reduction = RowReduction::Smallest;
        break;
    case OperatorKind::ReduceProd:
        kernel.reduction = RowReduction::Product;
        break;
    default:
        return false;
    }
    Shape made = reducedStrides(*call.op, x->shape);
    for (std::size_t d = 0; d < made.size(); ++d) // a kept dimension of one place is kept all the same
        made[d] = x->shape[d] == 1 ? 1 : made[d];
    const Shape still(x->shape.size(), 0);
    const auto nests = reducedNests(x->shape, {denseStrides(x->shape), still, still}, made);
    if (!nests || nests->outputs != elementCount(*y))
        return false;
    kernel.x = device.of(x);
    kernel.made = device.of(y);
    kernel.count = nests->count;
    kernel.outer = nests->outer;
    kernel.inner = nests->inner;
    TRY_VOID(device.queue.launch(kernel, nests->outputs));
    return true;
}

Result<bool> launchReduceBackward(const DeviceCall &device)
{
    const KernelCall &call = device.call;
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    const Buffer *dy = back.gradient();
    if (dx == nullptr)
        return true;
    const bool mean = call.op->kind == OperatorKind::ReduceMean;
    if (dy == nullptr || (!mean && call.op->kind != OperatorKind::ReduceSum))
        return false;
    const auto nest = nestOf<1>(dx->shape, {reducedStrides(*call.op, dx->shape)});
    if (!nest)
        return false;
    const double divisor = mean ? divisorOf(*call.op, elementCount(*dx), elementCount(*dy)) : 1;
    TRY_VOID(device.queue.launch(
        SpreadKernel{device.of(dy), device.of(dx), static_cast<float>(1 / divisor), *nest},
        elementCount(*dx)));
    return true;
}

} // namespace

Result<bool> launchRows(const DeviceCall &device)
{
    const bool forward = device.call.op->direction == Direction::Forward;
    switch (device.call.op->kind) {
    case OperatorKind::Softmax:
    case OperatorKind::LogSoftmax:
        return launchSoftmax(device);
    case OperatorKind::LayerNorm:
    case OperatorKind::RmsNorm:
    case OperatorKind::InstanceNorm:
        return forward ? launchNormForward(device) : launchNormBackward(device);
    case OperatorKind::ReduceSum:
    case OperatorKind::ReduceMean:
    case OperatorKind::ReduceMax:
    case OperatorKind::ReduceMin:
    case OperatorKind::ReduceProd:
    case OperatorKind::ReduceL1:
    case OperatorKind::ReduceL2:
    case OperatorKind::ReduceLogSum:
    case OperatorKind::ReduceSumSquare:
        return forward ? launchReduceForward(device) : launchReduceBackward(device);
    default:
        return false;
    }
}

} // namespace planloom
