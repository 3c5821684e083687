#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/reductions/row_plans.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace planloom {

namespace {

/// Scale and bias of a row: one per element, or one for all (step 0).
template<typename T> struct Affine {
    const T *scale;
    const T *bias;
    std::int64_t step;
};

/// Mean (0 where the norm does not centre) and 1 / sqrt(variance + epsilon) of a row.
template<typename T>
PLANLOOM_INLINE void statisticsOf(
    const T *x, std::int64_t count, bool centred, double epsilon, T &mean, T &inverse)
{
    const double centre = centred ? sumOf(x, count) / static_cast<double>(count) : 0.0;
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t i = 0; i < count; ++i) {
        const double d = static_cast<double>(x[i]) - centre;
        squares += d * d;
    }
    mean = static_cast<T>(centre);
    inverse = static_cast<T>(1 / std::sqrt(squares / static_cast<double>(count) + epsilon));
}

template<typename T>
PLANLOOM_INLINE void normRowOf(
    const T *x, T *y, std::int64_t count, const Affine<T> &affine, bool centred, double epsilon)
{
    T mean{};
    T inverse{};
    statisticsOf(x, count, centred, epsilon, mean, inverse);
    if (affine.step == 1 && affine.scale != nullptr && affine.bias != nullptr) {
        for (std::int64_t i = 0; i < count; ++i)
            y[i] = (x[i] - mean) * inverse * affine.scale[i] + affine.bias[i];
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        const T scale = affine.scale == nullptr ? T(1) : affine.scale[i * affine.step];
        const T bias = affine.bias == nullptr ? T(0) : affine.bias[i * affine.step];
        y[i] = (x[i] - mean) * inverse * scale + bias;
    }
}

/// With g = dy scale and h = the normalised x: dx = (g - mean(g) - h mean(g h)) / sigma, without mean(g)
/// where the norm does not centre. Adds this row's dy h and dy to the gradients of scale and bias.
template<typename T>
PLANLOOM_INLINE void normSlopeRowOf(const T *dy, const T *x, T *dx, std::int64_t count,
    const Affine<T> &affine, double *scaleSums, double *biasSums, bool centred, double epsilon)
{
    T mean{};
    T inverse{};
    statisticsOf(x, count, centred, epsilon, mean, inverse);
    if (dx != nullptr) {
        double sumG = 0;
        double sumGH = 0;
        const T one(1);
        const T *scale = affine.scale == nullptr ? &one : affine.scale;
        const std::int64_t step = affine.scale == nullptr ? 0 : affine.step;
        if (step == 1) {
#pragma omp simd reduction(+ : sumG, sumGH)
            for (std::int64_t i = 0; i < count; ++i) {
                const T g = dy[i] * scale[i];
                sumG += static_cast<double>(g);
                sumGH += static_cast<double>(g * (x[i] - mean) * inverse);
            }
        } else {
            const T s = *scale;
#pragma omp simd reduction(+ : sumG, sumGH)
            for (std::int64_t i = 0; i < count; ++i) {
                const T g = dy[i] * s;
                sumG += static_cast<double>(g);
                sumGH += static_cast<double>(g * (x[i] - mean) * inverse);
            }
        }
        const T meanG = centred ? static_cast<T>(sumG / static_cast<double>(count)) : T(0);
        const T meanGH = static_cast<T>(sumGH / static_cast<double>(count));
        for (std::int64_t i = 0; i < count; ++i)
            dx[i] = inverse * (dy[i] * scale[i * step] - meanG - (x[i] - mean) * inverse * meanGH);
    }
    if (affine.step == 1) {
        if (scaleSums != nullptr) {
            for (std::int64_t i = 0; i < count; ++i)
                scaleSums[i] += static_cast<double>(dy[i] * (x[i] - mean) * inverse);
        }
        if (biasSums != nullptr) {
            for (std::int64_t i = 0; i < count; ++i)
                biasSums[i] += static_cast<double>(dy[i]);
        }
        return;
    }
    if (scaleSums != nullptr) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < count; ++i)
            sum += static_cast<double>(dy[i] * (x[i] - mean) * inverse);
        *scaleSums += sum;
    }
    if (biasSums != nullptr)
        *biasSums += sumOf(dy, count);
}

PLANLOOM_HOT void normRow(
    const float *x, float *y, std::int64_t count, const Affine<float> &affine, bool centred, double epsilon)
{
    normRowOf(x, y, count, affine, centred, epsilon);
}
void normRow(const double *x, double *y, std::int64_t count, const Affine<double> &affine, bool centred,
    double epsilon)
{
    normRowOf(x, y, count, affine, centred, epsilon);
}
PLANLOOM_HOT void normSlopeRow(const float *dy, const float *x, float *dx, std::int64_t count,
    const Affine<float> &affine, double *scaleSums, double *biasSums, bool centred, double epsilon)
{
    normSlopeRowOf(dy, x, dx, count, affine, scaleSums, biasSums, centred, epsilon);
}
void normSlopeRow(const double *dy, const double *x, double *dx, std::int64_t count,
    const Affine<double> &affine, double *scaleSums, double *biasSums, bool centred, double epsilon)
{
    normSlopeRowOf(dy, x, dx, count, affine, scaleSums, biasSums, centred, epsilon);
}

/// Rows that are worth a thread of their own.
std::int64_t rowsAtOnce(const NormRows &rows)
{
    return std::max<std::int64_t>(1, kElementStretch / std::max<std::int64_t>(rows.width, 1));
}

/// The row's part of a buffer that may be absent, `offset` elements from its beginning.
template<typename T> T *at(const Buffer *buffer, std::int64_t offset)
{
    return buffer == nullptr ? nullptr : elements<T>(*buffer) + offset;
}

Result<void> normForward(const KernelCall &call, const NormPlan &plan)
{
    const NormRows &rows = plan.rows;
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) {
        forEachStretch(rows.rows, rowsAtOnce(rows), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; ++r) {
                const std::int64_t offset = rows.affineOffset(r);
                const Affine<T> affine{
                    at<const T>(plan.scale, offset), at<const T>(plan.bias, offset), rows.affineStep()};
                normRow(at<const T>(plan.x, r * rows.width), at<T>(plan.made, r * rows.width), rows.width,
                    affine, rows.centred, rows.epsilon);
            }
        });
    });
}

Result<void> normBackward(const KernelCall &call, const NormPlan &plan)
{
    const NormRows &rows = plan.rows;
    return withFloat(call, plan.dy->dataType, [&]<typename T>(T) {
        const auto size = static_cast<std::size_t>(rows.affineSize());
        // Stretches of rows have sums of their own, added up in their order.
        const std::int64_t atOnce = rowsAtOnce(rows);
        const auto stretches = static_cast<std::size_t>((rows.rows + atOnce - 1) / atOnce);
        std::vector<double> scaleSums(plan.dscale == nullptr ? 0 : size * stretches, 0.0);
        std::vector<double> biasSums(plan.dbias == nullptr ? 0 : size * stretches, 0.0);
        forEachStretch(rows.rows, atOnce, [&](std::int64_t begin, std::int64_t end) {
            const std::int64_t first = begin / atOnce * rows.affineSize();
            for (std::int64_t r = begin; r < end; ++r) {
                const std::int64_t offset = rows.affineOffset(r);
                const T *gradient = at<const T>(plan.dy, r * rows.width);
                // Without x only the bias is asked for, which does not depend on it.
                const T *value = plan.x == nullptr ? gradient : at<const T>(plan.x, r * rows.width);
                const Affine<T> affine{at<const T>(plan.scale, offset), nullptr, rows.affineStep()};
                normSlopeRow(gradient, value, at<T>(plan.made, r * rows.width), rows.width, affine,
                    plan.dscale == nullptr ? nullptr : scaleSums.data() + first + offset,
                    plan.dbias == nullptr ? nullptr : biasSums.data() + first + offset, rows.centred,
                    rows.epsilon);
            }
        });
        const auto store = [&](std::vector<double> &sums, const Buffer &target) {
            for (std::size_t i = size; i < sums.size(); ++i)
                sums[i % size] += sums[i];
            sums.resize(size);
            storeSums<T>(sums, target);
        };
        if (plan.dscale != nullptr)
            store(scaleSums, *plan.dscale);
        if (plan.dbias != nullptr)
            store(biasSums, *plan.dbias);
    });
}

} // namespace

void addNormKernels(KernelTable &table)
{
    table.add({OperatorKind::LayerNorm, OperatorKind::RmsNorm, OperatorKind::InstanceNorm},
        planned<planNorm, normForward>, planned<planNorm, normBackward>);
}

} // namespace planloom
