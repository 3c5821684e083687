#pragma once

#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/products/gemm.h"

#include <vector>

namespace planloom {

/// One product that a call is made of.
struct PlannedProduct {
    const Buffer *a = nullptr;
    const Buffer *b = nullptr;
    const Buffer *c = nullptr;
    MatrixProduct<float> shape{}; ///< How they lie, of whatever type they are; its pointers are not used.
};

/// The product of a NumPy matmul; or of its gradients those that are wanted: da = dy b^T and db = a^T dy,
/// each summed over the batch dimensions along which its operand was broadcast.
Result<std::vector<PlannedProduct>> planMatMul(const KernelCall &call);

/// A Linear: y's last dimensions are those of its weight but k, [.. n] or [.. p n].
struct LinearPlan {
    PlannedProduct product{};
    const Buffer *bias = nullptr; ///< What this part adds to every row: one for each column, or one for all.
};
Planned<LinearPlan> planLinear(const KernelCall &call);

/// Its gradients, as far as they are wanted.
struct LinearSlopes {
    const Buffer *dy = nullptr;
    std::int64_t columns = 1; ///< Of dy.
    std::optional<PlannedProduct> ofInput{};
    std::optional<PlannedProduct> ofWeight{};
    const Buffer *ofBias = nullptr;
    bool addsUpBias = false; ///< Else another part does, and this one's is zeros.

    std::int64_t rows() const { return columns == 0 ? 0 : elementCount(dy->shape) / columns; }
};
Result<LinearSlopes> planLinearSlopes(const KernelCall &call);

} // namespace planloom
