#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/reductions/row_plans.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <cmath>
#include <vector>

namespace planloom {

namespace {

template<typename T> PLANLOOM_INLINE void softmaxRowOf(const T *x, T *y, std::int64_t count)
{
    const T largest = maximumOf(x, count);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
        y[i] = expOf(x[i] - largest);
        sum += static_cast<double>(y[i]);
    }
    const T scale = static_cast<T>(1 / sum);
    for (std::int64_t i = 0; i < count; ++i)
        y[i] *= scale;
}

template<typename T> PLANLOOM_INLINE void logSoftmaxRowOf(const T *x, T *y, std::int64_t count)
{
    const T largest = maximumOf(x, count);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(expOf(x[i] - largest));
    const T shift = largest + static_cast<T>(std::log(sum));
    for (std::int64_t i = 0; i < count; ++i)
        y[i] = x[i] - shift;
}

/// dx = y (dy - sum(dy y))
template<typename T>
PLANLOOM_INLINE void softmaxSlopeRowOf(const T *dy, const T *y, T *dx, std::int64_t count)
{
    double dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < count; ++i)
        dot += static_cast<double>(dy[i] * y[i]);
    const T shift = static_cast<T>(dot);
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = y[i] * (dy[i] - shift);
}

/// dx = dy - e^y sum(dy)
template<typename T>
PLANLOOM_INLINE void logSoftmaxSlopeRowOf(const T *dy, const T *y, T *dx, std::int64_t count)
{
    const T sum = static_cast<T>(sumOf(dy, count));
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = dy[i] - expOf(y[i]) * sum;
}

PLANLOOM_HOT void softmaxRow(const float *x, float *y, std::int64_t count)
{
    softmaxRowOf(x, y, count);
}
PLANLOOM_HOT void logSoftmaxRow(const float *x, float *y, std::int64_t count)
{
    logSoftmaxRowOf(x, y, count);
}
PLANLOOM_HOT void softmaxSlopeRow(const float *dy, const float *y, float *dx, std::int64_t count)
{
    softmaxSlopeRowOf(dy, y, dx, count);
}
PLANLOOM_HOT void logSoftmaxSlopeRow(const float *dy, const float *y, float *dx, std::int64_t count)
{
    logSoftmaxSlopeRowOf(dy, y, dx, count);
}
void softmaxRow(const double *x, double *y, std::int64_t count)
{
    softmaxRowOf(x, y, count);
}
void logSoftmaxRow(const double *x, double *y, std::int64_t count)
{
    logSoftmaxRowOf(x, y, count);
}
void softmaxSlopeRow(const double *dy, const double *y, double *dx, std::int64_t count)
{
    softmaxSlopeRowOf(dy, y, dx, count);
}
void logSoftmaxSlopeRow(const double *dy, const double *y, double *dx, std::int64_t count)
{
    logSoftmaxSlopeRowOf(dy, y, dx, count);
}

/// Calls row(inputs..., output, count) for every row along the axis. Rows whose elements are apart are
/// gathered first, and scattered again.
template<typename T, typename Row>
void forEachRowAlong(const AxisView &view, const T *first, const T *second, T *to, Row row)
{
    const std::int64_t n = view.extent;
    if (view.inner == 1) {
        for (std::int64_t o = 0; o < view.outer; ++o)
            row(first + o * n, second == nullptr ? nullptr : second + o * n, to + o * n, n);
        return;
    }
    std::vector<T> lines(static_cast<std::size_t>(3 * n));
    T *a = lines.data();
    T *b = a + n;
    T *c = b + n;
    for (std::int64_t o = 0; o < view.outer; ++o) {
        for (std::int64_t i = 0; i < view.inner; ++i) {
            const std::int64_t start = o * n * view.inner + i;
            for (std::int64_t j = 0; j < n; ++j) {
                a[j] = first[start + j * view.inner];
                b[j] = second == nullptr ? T(0) : second[start + j * view.inner];
            }
            row(a, b, c, n);
            for (std::int64_t j = 0; j < n; ++j)
                to[start + j * view.inner] = c[j];
        }
    }
}

Result<void> softmax(const KernelCall &call, const SoftmaxPlan &plan)
{
    const bool forward = plan.dy == nullptr;
    return withFloat(call, plan.made->dataType, [&]<typename T>(T) {
        const T *value = elements<const T>(*plan.x);
        forEachRowAlong<T>(plan.view, forward ? value : elements<const T>(*plan.dy),
            forward ? nullptr : value, elements<T>(*plan.made),
            [&](const T *from, const T *y, T *to, std::int64_t count) {
                if (forward)
                    plan.logarithm ? logSoftmaxRow(from, to, count) : softmaxRow(from, to, count);
                else
                    plan.logarithm ? logSoftmaxSlopeRow(from, y, to, count)
                                   : softmaxSlopeRow(from, y, to, count);
            });
    });
}

} // namespace

void addSoftmaxKernels(KernelTable &table)
{
    table.add({OperatorKind::Softmax, OperatorKind::LogSoftmax}, planned<planSoftmax, softmax>,
        planned<planSoftmax, softmax>);
}

} // namespace planloom
