#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/elements/operand_type.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/products/gemm.h"
#include "engine/kernels/products/matmul_plan.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// Integers are only multiplied in shape arithmetic: plain loops do.
template<typename T> void multiplyIntegers(const MatMulPlan &plan, const T *a, const T *b, T *c)
{
    Shape extents;
    std::array<Shape, 3> strides;
    for (const BatchLoop &loop : plan.batch) {
        extents.push_back(loop.extent);
        strides[0].push_back(loop.a);
        strides[1].push_back(loop.b);
        strides[2].push_back(loop.c);
    }
    const LoopNest<3> nest(extents, strides);
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t r = 0; r < count; ++r) {
            const T *first = a + at[0] + r * steps[0];
            const T *second = b + at[1] + r * steps[1];
            T *to = c + at[2] + r * steps[2];
            for (std::int64_t i = 0; i < plan.m; ++i) {
                for (std::int64_t j = 0; j < plan.n; ++j) {
                    std::uint64_t sum = 0;
                    for (std::int64_t p = 0; p < plan.k; ++p)
                        sum += static_cast<std::uint64_t>(first[i * plan.k + p])
                            * static_cast<std::uint64_t>(second[p * plan.n + j]);
                    to[i * plan.n + j] = static_cast<T>(sum);
                }
            }
        }
    });
}

Result<void> matMulForward(const KernelCall &call)
{
    const Buffer *a = findInput(call, 0);
    const Buffer *b = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (a == nullptr || b == nullptr)
        return missingSlot(call, "both its inputs");
    const MatMulPlan plan = planMatMul(a->shape, b->shape);
    const auto work = [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        if constexpr (!std::is_integral_v<T>) {
            MatrixProduct<T> product;
            product.m = plan.m;
            product.n = plan.n;
            product.k = plan.k;
            product.a = elements<const T>(*a);
            product.aRow = plan.k;
            product.b = elements<const T>(*b);
            product.bRow = plan.n;
            product.c = elements<SumOf<T>>(*y);
            product.cRow = plan.n;
            product.batch = plan.batch;
            multiply(std::move(product));
        } else {
            multiplyIntegers(plan, elements<const T>(*a), elements<const T>(*b), elements<T>(*y));
        }
        return {};
    };
    return a->dataType == DataType::BFloat16 ? work(BFloat16{}) : withNumber(call, y->dataType, work);
}

/// da = dy b^T and db = a^T dy, each summed over the batch dimensions along which its operand was broadcast.
Result<void> matMulBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *a = back.input(0);
    const Buffer *b = back.input(1);
    const Buffer *da = back.wanted(0);
    const Buffer *db = back.wanted(1);
    if (dy == nullptr || (da != nullptr && b == nullptr) || (db != nullptr && a == nullptr))
        return missingSlot(call, "a gradient or a saved input");
    if (da == nullptr && db == nullptr)
        return {};
    const MatMulPlan plan =
        planMatMul(a != nullptr ? a->shape : da->shape, b != nullptr ? b->shape : db->shape);
    return withOperand(call, *dy, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        if (da != nullptr) {
            if (elementCount(*dy) == 0)
                fillZero(*da);
            MatrixProduct<T> product;
            product.m = plan.m;
            product.n = plan.k;
            product.k = plan.n;
            product.a = elements<const T>(*dy);
            product.aRow = plan.n;
            product.b = elements<const T>(*b);
            product.bRow = 1;
            product.bColumn = plan.n;
            product.c = elements<SumOf<T>>(*da);
            product.cRow = plan.k;
            for (const BatchLoop &loop : plan.batch)
                product.batch.push_back({loop.extent, loop.c, loop.b, loop.a});
            multiply(std::move(product));
        }
        if (db != nullptr) {
            if (elementCount(*dy) == 0)
                fillZero(*db);
            MatrixProduct<T> product;
            product.m = plan.k;
            product.n = plan.n;
            product.k = plan.m;
            product.a = elements<const T>(*a);
            product.aRow = 1;
            product.aColumn = plan.k;
            product.b = elements<const T>(*dy);
            product.bRow = plan.n;
            product.c = elements<SumOf<T>>(*db);
            product.cRow = plan.n;
            for (const BatchLoop &loop : plan.batch)
                product.batch.push_back({loop.extent, loop.a, loop.c, loop.b});
            multiply(std::move(product));
        }
        return {};
    });
}

/// Computes `product` into `result`, which is of the type of its sums, or of BFloat16.
template<typename T> void multiplyInto(const Buffer &result, const MatrixProduct<T> &product)
{
    if constexpr (std::is_same_v<T, BFloat16>) {
        if (result.dataType == DataType::BFloat16) {
            assert(!product.accumulate);
            return multiply(MatrixProduct<BFloat16, BFloat16>{product.m, product.n, product.k, product.a,
                product.aRow, product.aColumn, product.b, product.bRow, product.bColumn,
                elements<BFloat16>(result), product.cRow, product.cColumn, product.bias});
        }
    }
    MatrixProduct<T> whole = product;
    whole.c = elements<SumOf<T>>(result);
    multiply(std::move(whole));
}

Result<void> linearForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *w = findInput(call, 1);
    const Buffer *bias = findInput(call, 2);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || w == nullptr)
        return missingSlot(call, "its input or its weight");
    const bool transposed = call.op->attributes.integer("transposed") != 0;
    const std::int64_t k = x->shape.back();
    const std::int64_t n = columnsOf(*y, w->shape.size() - 1);
    if (!makesTerm(call, 0, {2}))
        bias = nullptr;
    return withOperand(call, *x, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        MatrixProduct<T> product;
        product.m = n == 0 ? 0 : elementCount(*y) / n;
        product.n = n;
        product.k = k;
        product.a = elements<const T>(*x);
        product.aRow = k;
        product.b = elements<const T>(*w);
        product.bRow = transposed ? 1 : n;
        product.bColumn = transposed ? k : 1;
        product.cRow = n;
        std::vector<SumOf<T>> wide;
        if (bias != nullptr) {
            product.bias = elements<const SumOf<T>>(*bias);
            if (elementCount(*bias) == 1 && n != 1) {
                wide.assign(static_cast<std::size_t>(n), *product.bias);
                product.bias = wide.data();
            }
        }
        multiplyInto(*y, product);
        return {};
    });
}

template<typename T> PLANLOOM_INLINE void addRowTo(double *sums, const T *row, std::int64_t count)
{
    for (std::int64_t j = 0; j < count; ++j)
        sums[j] += static_cast<double>(row[j]);
}

PLANLOOM_HOT void addRow(double *sums, const BFloat16 *row, std::int64_t count)
{
    addRowTo(sums, row, count);
}

PLANLOOM_HOT void addRow(double *sums, const float *row, std::int64_t count)
{
    addRowTo(sums, row, count);
}

void addRow(double *sums, const double *row, std::int64_t count)
{
    addRowTo(sums, row, count);
}

/// Gradient of the bias: dy summed over its rows.
template<typename T> void sumRows(const Buffer &dy, std::int64_t n, const Buffer &target)
{
    const std::int64_t rows = n == 0 ? 0 : elementCount(dy) / n;
    std::vector<double> sums(static_cast<std::size_t>(n), 0.0);
    const std::int64_t columns =
        std::max<std::int64_t>(64, kElementStretch / std::max<std::int64_t>(rows, 1));
    forEachStretch(n, columns, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < rows; ++i)
            addRow(sums.data() + begin, elements<const T>(dy) + i * n + begin, end - begin);
    });
    if (elementCount(target) != n)
        sums.assign(1, sumOf(sums.data(), n));
    (void)convertFloats(reinterpret_cast<const std::byte *>(sums.data()), DataType::Float64, target.data,
        target.dataType, sums.size());
}

Result<void> linearBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *w = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dw = back.wanted(1);
    const Buffer *dbias = back.wanted(2);
    if (dy == nullptr || (dx != nullptr && w == nullptr) || (dw != nullptr && x == nullptr))
        return missingSlot(call, "a gradient, its input or its weight");
    const bool transposed = call.op->attributes.integer("transposed") != 0;
    const std::size_t dimensions = w != nullptr ? w->shape.size() - 1
        : dw != nullptr                         ? dw->shape.size() - 1
        : dbias != nullptr                      ? std::max<std::size_t>(dbias->shape.size(), 1)
                                                : 1;
    const std::int64_t n = columnsOf(*dy, dimensions);
    const std::int64_t rows = n == 0 ? 0 : elementCount(*dy) / n;
    return withOperand(call, *dy, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        if (dx != nullptr) { // [rows k] = dy [rows n] * w [n k]
            const std::int64_t k = dx->shape.back();
            MatrixProduct<T> product;
            product.m = rows;
            product.n = k;
            product.k = n;
            product.a = elements<const T>(*dy);
            product.aRow = n;
            product.b = elements<const T>(*w);
            product.bRow = transposed ? k : 1;
            product.bColumn = transposed ? 1 : n;
            product.cRow = k;
            multiplyInto(*dx, product);
        }
        if (dw != nullptr) { // [n k] = dy^T x, or [k n] = x^T dy
            const std::int64_t k = x->shape.back();
            MatrixProduct<T> product;
            product.m = transposed ? n : k;
            product.n = transposed ? k : n;
            product.k = rows;
            product.a = elements<const T>(transposed ? *dy : *x);
            product.aRow = 1;
            product.aColumn = product.m;
            product.b = elements<const T>(transposed ? *x : *dy);
            product.bRow = product.n;
            product.cRow = product.n;
            product.accumulate = addsTo(call, 1);
            multiplyInto(*dw, product);
        }
        if (dbias != nullptr) {
            if (makesTerm(call, 2, {0}))
                sumRows<T>(*dy, n, *dbias);
            else
                fillZero(*dbias);
        }
        return {};
    });
}

} // namespace

void addMatMulKernels(KernelTable &table)
{
    table.add(OperatorKind::MatMul, Direction::Forward, matMulForward);
    table.add(OperatorKind::MatMul, Direction::Backward, matMulBackward);
    table.add(OperatorKind::Linear, Direction::Forward, linearForward);
    table.add(OperatorKind::Linear, Direction::Backward, linearBackward);
}

} // namespace planloom
