// Softmax, norms and reductions on the device.

#include "engine/cuda/kernels/nests.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/kernels/reductions/row_plans.h"

namespace planloom {

namespace {

Result<bool> launchSoftmax(const DeviceCall &device, const SoftmaxPlan &plan)
{
    const AxisView &view = plan.view;
    return launched(device.queue.launch(SoftmaxKernel{device.of(plan.x), device.of(plan.dy),
                                            device.of(plan.made), {view.extent, view.inner}, plan.logarithm},
        view.outer * view.inner));
}

Result<bool> launchNorm(const DeviceCall &device, const NormPlan &plan)
{
    NormKernel kernel{device.of(plan.x), device.of(plan.scale), device.of(plan.bias), device.of(plan.dy),
        device.of(plan.made), nullptr, plan.rows};
    const bool backward = plan.dy != nullptr;
    if (!backward || plan.made != nullptr || plan.dscale != nullptr) {
        if (backward) {
            TRY(kernel.statistics, device.scratch<float>(2 * plan.rows.rows));
        }
        TRY_VOID(device.queue.launch(kernel, plan.rows.rows));
    }
    if (plan.dscale != nullptr)
        TRY_VOID(device.queue.launch(
            NormAffineKernel{kernel.x, kernel.dy, device.of(plan.dscale), kernel.statistics, plan.rows},
            plan.rows.affineSize()));
    if (plan.dbias != nullptr)
        TRY_VOID(device.queue.launch(
            NormAffineKernel{kernel.dy, kernel.dy, device.of(plan.dbias), nullptr, plan.rows},
            plan.rows.affineSize()));
    return true;
}

Result<bool> launchReduceForward(const DeviceCall &device, const ReducePlan &plan)
{
    const Buffer *x = plan.x;
    const Buffer *y = plan.y;
    if (x->data == nullptr || !isFloating(device.of(x).type))
        return false;
    ReduceKernel kernel;
    kernel.divisor = plan.divisor;
    switch (device.call.op->kind) {
    case OperatorKind::ReduceSum:
    case OperatorKind::ReduceMean:
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
    Shape made = plan.strides;
    for (std::size_t d = 0; d < made.size(); ++d) // a kept dimension of one place is kept all the same
        made[d] = x->shape[d] == 1 ? 1 : made[d];
    const Shape still(x->shape.size(), 0);
    const auto nests = reducedNests(x->shape, {denseStrides(x->shape), still, still}, made, elementCount(*y));
    if (!nests)
        return false;
    kernel.x = device.of(x);
    kernel.made = device.of(y);
    kernel.count = nests->count;
    kernel.outer = nests->outer;
    kernel.inner = nests->inner;
    return launched(device.queue.launch(kernel, nests->outputs));
}

Result<bool> launchReduceBackward(const DeviceCall &device, const ReducePlan &plan)
{
    const OperatorKind kind = device.call.op->kind;
    const auto nest = nestOf<1>(plan.dx->shape, {plan.strides});
    if (!nest || (kind != OperatorKind::ReduceMean && kind != OperatorKind::ReduceSum))
        return false;
    return launched(device.queue.launch(
        SpreadKernel{device.of(plan.dy), device.of(plan.dx), static_cast<float>(1 / plan.divisor), *nest},
        elementCount(*plan.dx)));
}

} // namespace

Result<bool> launchRows(const DeviceCall &device)
{
    const bool forward = device.call.op->direction == Direction::Forward;
    switch (device.call.op->kind) {
    case OperatorKind::Softmax:
    case OperatorKind::LogSoftmax:
        return launchPlanned(device, planSoftmax(device.call), launchSoftmax);
    case OperatorKind::LayerNorm:
    case OperatorKind::RmsNorm:
    case OperatorKind::InstanceNorm:
        return launchPlanned(device, planNorm(device.call), launchNorm);
    case OperatorKind::ReduceSum:
    case OperatorKind::ReduceMean:
    case OperatorKind::ReduceMax:
    case OperatorKind::ReduceMin:
    case OperatorKind::ReduceProd:
    case OperatorKind::ReduceL1:
    case OperatorKind::ReduceL2:
    case OperatorKind::ReduceLogSum:
    case OperatorKind::ReduceSumSquare:
        return launchPlanned(
            device, planReduce(device.call), forward ? launchReduceForward : launchReduceBackward);
    default:
        return false;
    }
}

} // namespace planloom
