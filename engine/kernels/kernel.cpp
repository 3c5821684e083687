#include "engine/kernels/kernel.h"

#include "engine/kernels/elements/rounded_kernel.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"

#include <cassert>

namespace planloom {

namespace {

const KernelTable &kernelTable()
{
    static const KernelTable table = [] {
        KernelTable made;
        addUnaryKernels(made);
        addCastKernels(made);
        addBinaryKernels(made);
        addLogicKernels(made);
        addMatMulKernels(made);
        addEinsumKernels(made);
        addConvKernels(made);
        addPoolKernels(made);
        addNormKernels(made);
        addBatchNormKernels(made);
        addSoftmaxKernels(made);
        addLpKernels(made);
        addLossKernels(made);
        addReduceKernels(made);
        addMovementKernels(made);
        addPieceKernels(made);
        addGatherKernels(made);
        addScatterKernels(made);
        addPlacesKernels(made);
        addSequenceKernels(made);
        addGenerateKernels(made);
        addResizeKernels(made);
        addGridSampleKernels(made);
        addRotaryKernels(made);
        addAttentionKernels(made);
        addRecurrentKernels(made);
        addOptimizerKernels(made);
        addCustomKernels(made);
        return made;
    }();
    return table;
}

} // namespace

Result<void> runKernel(const KernelCall &call)
{
    assert(call.op != nullptr);
    const Kernel kernel = kernelTable().find(call.op->kind, call.op->direction);
    if (kernel == nullptr) {
        return notSupported(call,
            "operator " + call.op->name + " (" + typeNameOf(*call.op) + ") has no implementation to run");
    }
    return isNarrow(call) && !multipliesBFloat16(call) ? runWidened(call) : kernel(call);
}

bool onlyMoves(const Operator &op)
{
    switch (op.kind) {
    case OperatorKind::Reshape:
    case OperatorKind::Transpose:
    case OperatorKind::DepthToSpace:
    case OperatorKind::SpaceToDepth:
    case OperatorKind::Slice:
    case OperatorKind::Concat:
    case OperatorKind::Split:
        return true;
    case OperatorKind::Expand: // backward, several elements are added to one
    case OperatorKind::Tile:
        return op.direction == Direction::Forward;
    default:
        return false;
    }
}

bool canAddTo(const Operator &op, std::size_t output)
{
    return op.direction == Direction::Backward
        && ((op.kind == OperatorKind::Linear && output == 1) // as their kernels heed `KernelCall::addsTo`
            || (op.kind == OperatorKind::Embedding && output == 0));
}

bool hasKernel(const Operator &op)
{
    if (op.kind == OperatorKind::Custom)
        return hasCustomKernel(op);
    return kernelTable().find(op.kind, op.direction) != nullptr;
}

} // namespace planloom
