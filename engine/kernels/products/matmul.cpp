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
template<typename T> void multiplyIntegers(const MatrixProduct<T> &p)
{
    Shape extents;
    std::array<Shape, 3> strides;
    for (const BatchLoop &loop : p.batch) {
        extents.push_back(loop.extent);
        strides[0].push_back(loop.a);
        strides[1].push_back(loop.b);
        strides[2].push_back(loop.c);
    }
    const LoopNest<3> nest(extents, strides);
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t r = 0; r < count; ++r) {
            const T *first = p.a + at[0] + r * steps[0];
            const T *second = p.b + at[1] + r * steps[1];
            T *to = p.c + at[2] + r * steps[2];
            for (std::int64_t i = 0; i < p.m; ++i) {
                for (std::int64_t j = 0; j < p.n; ++j) {
                    std::uint64_t sum = 0;
                    for (std::int64_t q = 0; q < p.k; ++q)
                        sum += static_cast<std::uint64_t>(first[i * p.aRow + q * p.aColumn])
                            * static_cast<std::uint64_t>(second[q * p.bRow + j * p.bColumn]);
                    to[i * p.cRow + j] = static_cast<T>(sum);
                }
            }
        }
    });
}

/// The planned product of numbers of type T, into memory of type R.
template<typename T, typename R = SumOf<T>> MatrixProduct<T, R> productOf(const PlannedProduct &plan)
{
    const MatrixProduct<float> &s = plan.shape;
    return {s.m, s.n, s.k, elements<const T>(*plan.a), s.aRow, s.aColumn, elements<const T>(*plan.b), s.bRow,
        s.bColumn, elements<R>(*plan.c), s.cRow, s.cColumn, nullptr, s.batch, s.accumulate};
}

Result<void> matMul(const KernelCall &call)
{
    TRY(const auto products, planMatMul(call));
    const bool forward = call.op->direction == Direction::Forward;
    for (const PlannedProduct &plan : products) {
        if (elementCount(*plan.a) == 0 || elementCount(*plan.b) == 0)
            fillZero(*plan.c);
        const auto work = [&]<typename T>(T) {
            if constexpr (std::is_integral_v<T>)
                multiplyIntegers(productOf<T>(plan));
            else
                multiply(productOf<T>(plan));
        };
        const DataType type = call.inputs[0].dataType; // of dy, in the backward pass
        TRY_VOID(type == DataType::BFloat16 ? doneWith(work, BFloat16{})
                : forward                   ? withNumber(call, plan.c->dataType, work)
                                            : withFloat(call, type, work));
    }
    return {};
}

/// Computes the product into its result, which is of the type of its sums, or of BFloat16.
/// @param bias  added to every row; may be null
template<typename T> void multiplyInto(const PlannedProduct &plan, const SumOf<T> *bias = nullptr)
{
    const auto run = [bias](auto product) {
        product.bias = bias;
        multiply(std::move(product));
    };
    if constexpr (std::is_same_v<T, BFloat16>) {
        if (plan.c->dataType == DataType::BFloat16) {
            assert(!plan.shape.accumulate);
            return run(productOf<BFloat16, BFloat16>(plan));
        }
    }
    run(productOf<T>(plan));
}

Result<void> linear(const KernelCall &call, const LinearPlan &plan)
{
    return withOperand(call, *plan.product.a, [&]<typename T>(T) -> Result<void> {
        if (plan.bias == nullptr) {
            multiplyInto<T>(plan.product);
            return {};
        }
        const SumOf<T> *bias = elements<const SumOf<T>>(*plan.bias);
        std::vector<SumOf<T>> wide;
        if (elementCount(*plan.bias) == 1 && plan.product.shape.n != 1) {
            wide.assign(static_cast<std::size_t>(plan.product.shape.n), *bias);
            bias = wide.data();
        }
        multiplyInto<T>(plan.product, bias);
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
template<typename T> void sumRows(const LinearSlopes &plan)
{
    const std::int64_t n = plan.columns;
    const std::int64_t rows = plan.rows();
    std::vector<double> sums(static_cast<std::size_t>(n), 0.0);
    const std::int64_t columns =
        std::max<std::int64_t>(64, kElementStretch / std::max<std::int64_t>(rows, 1));
    forEachStretch(n, columns, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = 0; i < rows; ++i)
            addRow(sums.data() + begin, elements<const T>(*plan.dy) + i * n + begin, end - begin);
    });
    const Buffer &target = *plan.ofBias;
    if (elementCount(target) != n)
        sums.assign(1, sumOf(sums.data(), n));
    (void)convertFloats(reinterpret_cast<const std::byte *>(sums.data()), DataType::Float64, target.data,
        target.dataType, sums.size());
}

Result<void> linearBackward(const KernelCall &call)
{
    TRY(const LinearSlopes plan, planLinearSlopes(call));
    return withOperand(call, *plan.dy, [&]<typename T>(T) {
        if (plan.ofInput)
            multiplyInto<T>(*plan.ofInput);
        if (plan.ofWeight)
            multiplyInto<T>(*plan.ofWeight);
        if (plan.addsUpBias)
            sumRows<T>(plan);
        else if (plan.ofBias != nullptr)
            fillZero(*plan.ofBias);
    });
}

} // namespace

void addMatMulKernels(KernelTable &table)
{
    table.add({OperatorKind::MatMul}, matMul, matMul);
    table.add({OperatorKind::Linear}, planned<planLinear, linear>, linearBackward);
}

} // namespace planloom
