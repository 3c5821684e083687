#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/reductions/row_plans.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace planloom {

namespace {

/// Floats are accumulated in double, integers in 64 bits.
template<typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

template<typename A>
constexpr A kLowest = std::is_floating_point_v<A> ? -std::numeric_limits<A>::infinity()
                                                  : std::numeric_limits<A>::lowest();
template<typename A>
constexpr A kHighest = std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity()
                                                   : std::numeric_limits<A>::max();

struct Sum {
    template<typename A> static constexpr A kStart = A(0);
    template<typename A> static A combine(A sum, A x) { return sum + x; }
};
struct SumOfSizes {
    template<typename A> static constexpr A kStart = A(0);
    template<typename A> static A combine(A sum, A x) { return sum + (x < A(0) ? -x : x); }
};
struct SumOfSquares {
    template<typename A> static constexpr A kStart = A(0);
    template<typename A> static A combine(A sum, A x) { return sum + x * x; }
};
struct Product {
    template<typename A> static constexpr A kStart = A(1);
    template<typename A> static A combine(A product, A x) { return product * x; }
};
struct Largest {
    template<typename A> static constexpr A kStart = kLowest<A>;
    template<typename A> static A combine(A largest, A x) { return x > largest || x != x ? x : largest; }
};
struct Smallest {
    template<typename A> static constexpr A kStart = kHighest<A>;
    template<typename A> static A combine(A smallest, A x) { return x < smallest || x != x ? x : smallest; }
};

PLANLOOM_HOT double rowSum(const float *x, std::int64_t count)
{
    return sumOf(x, count);
}

PLANLOOM_HOT void addToAll(double *sums, const float *x, std::int64_t count)
{
    for (std::int64_t i = 0; i < count; ++i)
        sums[i] += static_cast<double>(x[i]);
}

/// Reduces x to one accumulator per element of the output.
template<typename Combine, typename T>
std::vector<Accumulator<T>> accumulate(const Buffer &x, const Shape &strides, std::int64_t outputs)
{
    using A = Accumulator<T>;
    std::vector<A> sums(static_cast<std::size_t>(outputs), Combine::template kStart<A>);
    const LoopNest<2> nest(x.shape, {denseStrides(x.shape), strides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        const T *from = elements<const T>(x) + at[0];
        A *to = sums.data() + at[1];
        if constexpr (std::is_same_v<Combine, Sum> && std::is_same_v<T, float>) {
            if (steps[1] == 0) {
                *to += rowSum(from, count);
                return;
            }
            if (steps[1] == 1) {
                addToAll(to, from, count);
                return;
            }
        }
        for (std::int64_t i = 0; i < count; ++i)
            to[i * steps[1]] = Combine::combine(to[i * steps[1]], static_cast<A>(from[i]));
    });
    return sums;
}

/// log of a sum of exponentials, around the largest so that none overflows.
template<typename T>
std::vector<double> logSumExp(const Buffer &x, const Shape &strides, std::int64_t outputs)
{
    std::vector<double> largest = accumulate<Largest, T>(x, strides, outputs);
    std::vector<double> sums(largest.size(), 0.0);
    const LoopNest<2> nest(x.shape, {denseStrides(x.shape), strides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        const T *from = elements<const T>(x) + at[0];
        for (std::int64_t i = 0; i < count; ++i) {
            const auto j = static_cast<std::size_t>(at[1] + i * steps[1]);
            const double shift = std::isfinite(largest[j]) ? largest[j] : 0.0;
            sums[j] += std::exp(static_cast<double>(from[i]) - shift);
        }
    });
    for (std::size_t j = 0; j < sums.size(); ++j)
        sums[j] = std::log(sums[j]) + (std::isfinite(largest[j]) ? largest[j] : 0.0);
    return sums;
}

Result<void> reduceForward(const KernelCall &call, const ReducePlan &plan)
{
    using enum OperatorKind;
    const Buffer &from = *plan.x;
    const Buffer *y = plan.y;
    const Shape &strides = plan.strides;
    const std::int64_t outputs = elementCount(*y);
    const auto reduce = [&]<typename T>(T) {
        using A = Accumulator<T>;
        std::vector<A> sums;
        switch (call.op->kind) {
        case ReduceMax:
            sums = accumulate<Largest, T>(from, strides, outputs);
            break;
        case ReduceMin:
            sums = accumulate<Smallest, T>(from, strides, outputs);
            break;
        case ReduceProd:
            sums = accumulate<Product, T>(from, strides, outputs);
            break;
        case ReduceL1:
            sums = accumulate<SumOfSizes, T>(from, strides, outputs);
            break;
        case ReduceL2:
        case ReduceSumSquare:
            sums = accumulate<SumOfSquares, T>(from, strides, outputs);
            break;
        default:
            sums = accumulate<Sum, T>(from, strides, outputs);
            break;
        }
        for (std::size_t i = 0; i < sums.size(); ++i) {
            auto value = static_cast<double>(sums[i]);
            if (call.op->kind == ReduceMean)
                value /= plan.divisor;
            else if (call.op->kind == ReduceL2)
                value = std::sqrt(value);
            else if (call.op->kind == ReduceLogSum)
                value = std::log(value);
            else {
                elements<T>(*y)[i] = static_cast<T>(sums[i]);
                continue;
            }
            elements<T>(*y)[i] = static_cast<T>(value);
        }
    };
    if (call.op->kind == ReduceLogSumExp) {
        return withFloat(call, from.dataType, [&]<typename T>(T) {
            const auto sums = logSumExp<T>(from, strides, outputs);
            for (std::size_t i = 0; i < sums.size(); ++i)
                elements<T>(*y)[i] = static_cast<T>(sums[i]);
        });
    }
    return withNumber(call, from.dataType, reduce);
}

/// dx[i] = dy[j] * slope(x[i], j), where j is the output that i goes into. x may be null if `slope` ignores
/// it.
template<typename T, typename Slope>
void spread(const Buffer &dx, const Buffer &dy, const Buffer *x, const Shape &strides, Slope slope)
{
    const LoopNest<2> nest(dx.shape, {denseStrides(dx.shape), strides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        const T *from = x == nullptr ? nullptr : elements<const T>(*x) + at[0];
        const T *gradient = elements<const T>(dy);
        T *to = elements<T>(dx) + at[0];
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t j = at[1] + i * steps[1];
            to[i] = static_cast<T>(gradient[j] * slope(from == nullptr ? T(0) : from[i], j));
        }
    });
}

/// Number of elements equal to the output they go into.
template<typename T> std::vector<double> countEqual(const Buffer &x, const Buffer &y, const Shape &strides)
{
    std::vector<double> counts(static_cast<std::size_t>(elementCount(y)), 0.0);
    const LoopNest<2> nest(x.shape, {denseStrides(x.shape), strides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t j = at[1] + i * steps[1];
            if (elements<const T>(x)[at[0] + i] == elements<const T>(y)[j])
                counts[static_cast<std::size_t>(j)] += 1;
        }
    });
    return counts;
}

/// The gradient of a product without dividing by zero: of its zeros the number, of the rest the product.
template<typename T>
void spreadProduct(const Buffer &dx, const Buffer &dy, const Buffer &x, const Shape &strides)
{
    const auto outputs = static_cast<std::size_t>(elementCount(dy));
    std::vector<double> products(outputs, 1.0);
    std::vector<int> zeros(outputs, 0);
    const LoopNest<2> nest(x.shape, {denseStrides(x.shape), strides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t i = 0; i < count; ++i) {
            const auto j = static_cast<std::size_t>(at[1] + i * steps[1]);
            const T value = elements<const T>(x)[at[0] + i];
            if (value == T(0))
                ++zeros[j];
            else
                products[j] *= static_cast<double>(value);
        }
    });
    spread<T>(dx, dy, &x, strides, [&](T value, std::int64_t j) {
        const auto at = static_cast<std::size_t>(j);
        if (value == T(0))
            return zeros[at] == 1 ? products[at] : 0.0;
        return zeros[at] == 0 ? products[at] / static_cast<double>(value) : 0.0;
    });
}

Result<void> reduceBackward(const KernelCall &call, const ReducePlan &plan)
{
    using enum OperatorKind;
    const Buffer *dx = plan.dx;
    const Buffer *dy = plan.dy;
    const Buffer *x = plan.x;
    const Buffer *y = plan.y;
    const Shape &strides = plan.strides;
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        const T *value = y == nullptr ? nullptr : elements<const T>(*y);
        switch (call.op->kind) {
        case ReduceMean: {
            const auto share = static_cast<T>(1 / plan.divisor);
            spread<T>(*dx, *dy, nullptr, strides, [share](T, std::int64_t) { return share; });
            break;
        }
        case ReduceMax:
        case ReduceMin: { // Equal elements share the gradient.
            const auto counts = countEqual<T>(*x, *y, strides);
            spread<T>(*dx, *dy, x, strides, [&](T v, std::int64_t j) {
                return v == value[j] ? static_cast<T>(1 / counts[static_cast<std::size_t>(j)]) : T(0);
            });
            break;
        }
        case ReduceProd:
            spreadProduct<T>(*dx, *dy, *x, strides);
            break;
        case ReduceL1:
            spread<T>(*dx, *dy, x, strides, [](T v, std::int64_t) {
                return v > T(0) ? T(1) : v < T(0) ? T(-1) : T(0);
            });
            break;
        case ReduceL2:
            spread<T>(*dx, *dy, x, strides,
                [value](T v, std::int64_t j) { return value[j] == T(0) ? T(0) : v / value[j]; });
            break;
        case ReduceSumSquare:
            spread<T>(*dx, *dy, x, strides, [](T v, std::int64_t) { return T(2) * v; });
            break;
        case ReduceLogSum:
            spread<T>(*dx, *dy, nullptr, strides, [value](T, std::int64_t j) { return std::exp(-value[j]); });
            break;
        case ReduceLogSumExp:
            spread<T>(*dx, *dy, x, strides, [value](T v, std::int64_t j) { return std::exp(v - value[j]); });
            break;
        default:
            spread<T>(*dx, *dy, nullptr, strides, [](T, std::int64_t) { return T(1); });
            break;
        }
    });
}

} // namespace

void addReduceKernels(KernelTable &table)
{
    using enum OperatorKind;
    table.add({ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceLogSum,
                  ReduceLogSumExp, ReduceSumSquare},
        planned<planReduce, reduceForward>, planned<planReduce, reduceBackward>);
}

} // namespace planloom
