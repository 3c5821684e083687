#pragma once

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <vector>

namespace planloom {

/// A NumPy matmul: extents, and the batch loops around the matrices.
struct MatMulPlan {
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
    std::vector<BatchLoop> batch{};
};

inline Shape batchOf(const Shape &shape)
{
    return shape.size() <= 2 ? Shape{} : Shape(shape.begin(), shape.end() - 2);
}

/// Strides per batch dimension of matrices of `size` elements each.
inline Shape batchStrides(const Shape &shape, const Shape &batch, std::int64_t size)
{
    Shape strides = broadcastStrides(batchOf(shape), batch);
    for (std::int64_t &stride : strides)
        stride *= size;
    return strides;
}

inline MatMulPlan planMatMul(const Shape &a, const Shape &b)
{
    MatMulPlan plan;
    plan.k = a.back();
    plan.m = a.size() > 1 ? a[a.size() - 2] : 1;
    plan.n = b.size() > 1 ? b.back() : 1;
    const Shape batchA = batchOf(a);
    const Shape batchB = batchOf(b);
    Shape batch(std::max(batchA.size(), batchB.size()), 1);
    const auto widen = [&batch](const Shape &with) {
        for (std::size_t i = 0; i < with.size(); ++i) {
            std::int64_t &extent = batch[batch.size() - with.size() + i];
            extent = extent == 1 ? with[i] : extent;
        }
    };
    widen(batchA);
    widen(batchB);
    const Shape stridesA = batchStrides(a, batch, plan.m * plan.k);
    const Shape stridesB = batchStrides(b, batch, plan.k * plan.n);
    const Shape stridesC = denseStrides(batch);
    for (std::size_t i = 0; i < batch.size(); ++i)
        plan.batch.push_back({batch[i], stridesA[i], stridesB[i], stridesC[i] * plan.m * plan.n});
    return plan;
}

/// Columns of a Linear's result, whose last dimensions are those of its weight but k: [.. n], [.. p n].
inline std::int64_t columnsOf(const Buffer &y, std::size_t dimensions)
{
    std::int64_t n = 1;
    for (std::size_t d = 0; d < std::min(dimensions, y.shape.size()); ++d)
        n *= y.shape[y.shape.size() - 1 - d];
    return n;
}

} // namespace planloom
