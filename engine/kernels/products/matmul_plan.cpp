#include "engine/kernels/products/matmul_plan.h"

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"

#include <algorithm>

namespace planloom {

namespace {

/// Extents of the matrices, and the batch loops around them.
struct MatMulExtents {
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
    std::vector<BatchLoop> batch{};
};

Shape batchOf(const Shape &shape)
{
    return shape.size() <= 2 ? Shape{} : Shape(shape.begin(), shape.end() - 2);
}

MatMulExtents extentsOf(const Shape &a, const Shape &b)
{
    MatMulExtents made;
    made.k = a.back();
    made.m = a.size() > 1 ? a[a.size() - 2] : 1;
    made.n = b.size() > 1 ? b.back() : 1;
    const Shape batchA = batchOf(a);
    const Shape batchB = batchOf(b);
    Shape batch(std::max(batchA.size(), batchB.size()), 1);
    for (const Shape &with : {batchA, batchB}) {
        for (std::size_t i = 0; i < with.size(); ++i) {
            std::int64_t &extent = batch[batch.size() - with.size() + i];
            extent = extent == 1 ? with[i] : extent;
        }
    }
    const Shape stridesA = broadcastStrides(batchA, batch);
    const Shape stridesB = broadcastStrides(batchB, batch);
    const Shape stridesC = denseStrides(batch);
    for (std::size_t i = 0; i < batch.size(); ++i)
        made.batch.push_back({batch[i], stridesA[i] * made.m * made.k, stridesB[i] * made.k * made.n,
            stridesC[i] * made.m * made.n});
    return made;
}

/// c [m n] = a [m k] b [k n] of dense matrices, of which an operand may lie transposed.
PlannedProduct denseProduct(const Buffer &a, bool transposedA, const Buffer &b, bool transposedB,
    const Buffer &c, std::int64_t m, std::int64_t n, std::int64_t k)
{
    PlannedProduct made{&a, &b, &c, {}};
    made.shape.m = m;
    made.shape.n = n;
    made.shape.k = k;
    made.shape.aRow = transposedA ? 1 : k;
    made.shape.aColumn = transposedA ? m : 1;
    made.shape.bRow = transposedB ? 1 : n;
    made.shape.bColumn = transposedB ? k : 1;
    made.shape.cRow = n;
    return made;
}

/// Of a Linear's result or its gradient, whose last `dimensions` are those of the weight.
std::int64_t columnsOf(const Shape &y, std::size_t dimensions)
{
    std::int64_t n = 1;
    for (std::size_t d = 0; d < std::min(dimensions, y.size()); ++d)
        n *= y[y.size() - 1 - d];
    return n;
}

bool isTransposed(const KernelCall &call)
{
    return call.op->attributes.integer("transposed") != 0;
}

} // namespace

Result<std::vector<PlannedProduct>> planMatMul(const KernelCall &call)
{
    std::vector<PlannedProduct> made;
    if (call.op->direction == Direction::Forward) {
        const Buffer *a = findInput(call, 0);
        const Buffer *b = findInput(call, 1);
        const Buffer *y = findOutput(call, 0);
        if (y == nullptr)
            return made;
        if (a == nullptr || b == nullptr)
            return missingSlot(call, "both its inputs");
        const MatMulExtents plan = extentsOf(a->shape, b->shape);
        made.push_back(denseProduct(*a, false, *b, false, *y, plan.m, plan.n, plan.k));
        made.back().shape.batch = plan.batch;
        return made;
    }
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *a = back.input(0);
    const Buffer *b = back.input(1);
    const Buffer *da = back.wanted(0);
    const Buffer *db = back.wanted(1);
    if (dy == nullptr || (da != nullptr && b == nullptr) || (db != nullptr && a == nullptr))
        return missingSlot(call, "a gradient or a saved input");
    if (da == nullptr && db == nullptr)
        return made;
    const MatMulExtents plan = extentsOf((a != nullptr ? a : da)->shape, (b != nullptr ? b : db)->shape);
    if (da != nullptr) {
        made.push_back(denseProduct(*dy, false, *b, true, *da, plan.m, plan.k, plan.n));
        for (const BatchLoop &loop : plan.batch)
            made.back().shape.batch.push_back({loop.extent, loop.c, loop.b, loop.a});
    }
    if (db != nullptr) {
        made.push_back(denseProduct(*a, true, *dy, false, *db, plan.k, plan.n, plan.m));
        for (const BatchLoop &loop : plan.batch)
            made.back().shape.batch.push_back({loop.extent, loop.a, loop.c, loop.b});
    }
    return made;
}

Planned<LinearPlan> planLinear(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *w = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return std::nullopt;
    if (x == nullptr || w == nullptr)
        return missingSlot(call, "its input or its weight");
    const std::int64_t n = columnsOf(y->shape, w->shape.size() - 1);
    return LinearPlan{denseProduct(*x, false, *w, isTransposed(call), *y, n == 0 ? 0 : elementCount(*y) / n,
                          n, x->shape.back()),
        makesTerm(call, 0, {2}) ? findInput(call, 2) : nullptr};
}

Result<LinearSlopes> planLinearSlopes(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *x = back.input(0);
    const Buffer *w = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dw = back.wanted(1);
    LinearSlopes made;
    made.dy = back.gradient();
    made.ofBias = back.wanted(2);
    if (made.dy == nullptr || (dx != nullptr && w == nullptr) || (dw != nullptr && x == nullptr))
        return missingSlot(call, "a gradient, its input or its weight");
    const std::size_t dimensions = w != nullptr ? w->shape.size() - 1
        : dw != nullptr                         ? dw->shape.size() - 1
        : made.ofBias != nullptr                ? std::max<std::size_t>(made.ofBias->shape.size(), 1)
                                                : 1;
    const std::int64_t n = made.columns = columnsOf(made.dy->shape, dimensions);
    made.addsUpBias = made.ofBias != nullptr && makesTerm(call, 2, {0});
    const bool transposed = isTransposed(call);
    if (dx != nullptr) // [rows k] = dy [rows n] * w [n k]
        made.ofInput = denseProduct(*made.dy, false, *w, !transposed, *dx, made.rows(), dx->shape.back(), n);
    if (dw != nullptr) { // [n k] = dy^T x, or [k n] = x^T dy
        const std::int64_t k = x->shape.back();
        made.ofWeight = transposed ? denseProduct(*made.dy, true, *x, false, *dw, n, k, made.rows())
                                   : denseProduct(*x, true, *made.dy, false, *dw, k, n, made.rows());
        made.ofWeight->shape.accumulate = addsTo(call, 1);
    }
    return made;
}

} // namespace planloom
