#include "engine/base/work_pool.h"
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

/// Calls visit(statistic, channel, number of the run) for every run of `rest` elements, in pieces: in any
/// order, side by side.
template<typename Visit> void forEachRun(const ChannelView &view, const Visit &visit)
{
    const std::int64_t stretch =
        std::max<std::int64_t>(1, kElementStretch / std::max<std::int64_t>(1, view.rest));
    forEachStretch(view.n * view.c, stretch, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t run = begin; run < end; ++run)
            visit(view.statisticOf(run / view.c, run % view.c), run % view.c, run);
    });
}

/// What `ofRun(statistic, channel, run)` is of every run.
template<typename OfRun> std::vector<double> valuesOfRuns(const ChannelView &view, const OfRun &ofRun)
{
    std::vector<double> values(static_cast<std::size_t>(view.n * view.c));
    forEachRun(view, [&](std::int64_t s, std::int64_t c, std::int64_t run) {
        values[static_cast<std::size_t>(run)] = ofRun(s, c, run);
    });
    return values;
}

/// The sum of each statistic's, or channel's, runs, times factor(statistic, channel), in their order.
template<typename Factor>
std::vector<double> sumOfRuns(
    const ChannelView &view, const std::vector<double> &values, bool byChannel, const Factor &factor)
{
    std::vector<double> sums(byChannel ? static_cast<std::size_t>(view.c) : view.statistics(), 0.0);
    for (std::size_t run = 0; run < values.size(); ++run) {
        const auto i = static_cast<std::int64_t>(run);
        const std::int64_t c = i % view.c;
        const std::int64_t s = view.statisticOf(i / view.c, c);
        sums[static_cast<std::size_t>(byChannel ? c : s)] += values[run] * factor(s, c);
    }
    return sums;
}

template<typename T> PLANLOOM_INLINE double squaresIn(const T *x, std::int64_t count, double centre)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) {
        const double d = static_cast<double>(x[i]) - centre;
        sum += d * d;
    }
    return sum;
}

template<typename T>
PLANLOOM_INLINE double productsIn(const T *a, const T *x, std::int64_t count, double centre)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(a[i]) * (static_cast<double>(x[i]) - centre);
    return sum;
}

/// y = (x - centre) * factor + shift
template<typename T>
PLANLOOM_INLINE void moveInto(const T *x, std::int64_t count, T centre, T factor, T shift, T *y)
{
    for (std::int64_t i = 0; i < count; ++i)
        y[i] = (x[i] - centre) * factor + shift;
}

// The same for float, in several versions.
PLANLOOM_HOT double sumOfRun(const float *x, std::int64_t count)
{
    return sumOf(x, count);
}
double sumOfRun(const double *x, std::int64_t count)
{
    return sumOf(x, count);
}
PLANLOOM_HOT double squaresOfRun(const float *x, std::int64_t count, double centre)
{
    return squaresIn(x, count, centre);
}
double squaresOfRun(const double *x, std::int64_t count, double centre)
{
    return squaresIn(x, count, centre);
}
PLANLOOM_HOT double productsOfRun(const float *a, const float *x, std::int64_t count, double centre)
{
    return productsIn(a, x, count, centre);
}
double productsOfRun(const double *a, const double *x, std::int64_t count, double centre)
{
    return productsIn(a, x, count, centre);
}
PLANLOOM_HOT void moveRun(
    const float *x, std::int64_t count, float centre, float factor, float shift, float *y)
{
    moveInto(x, count, centre, factor, shift, y);
}
void moveRun(const double *x, std::int64_t count, double centre, double factor, double shift, double *y)
{
    moveInto(x, count, centre, factor, shift, y);
}

constexpr auto unweighted = [](std::int64_t, std::int64_t) { return 1.0; };

Result<void> statisticForward(const KernelCall &call, const StatisticPlan &plan)
{
    const ChannelView &view = plan.view;
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) {
        const auto values = valuesOfRuns(view, [&](std::int64_t statistic, std::int64_t, std::int64_t run) {
            const T *from = elements<const T>(*plan.x) + run * view.rest;
            return plan.mean == nullptr ? sumOfRun(from, view.rest)
                                        : squaresOfRun(from, view.rest,
                                            static_cast<double>(elements<const T>(*plan.mean)[statistic]));
        });
        std::vector<double> sums = sumOfRuns(view, values, false, unweighted);
        for (double &sum : sums)
            sum /= plan.count;
        storeSums<T>(sums, *plan.y);
    });
}

Result<void> statisticBackward(const KernelCall &call, const StatisticPlan &plan)
{
    const ChannelView &view = plan.view;
    return withFloat(call, plan.dy->dataType, [&]<typename T>(T) {
        const auto values = valuesOfRuns(view, [&](std::int64_t s, std::int64_t, std::int64_t run) {
            const auto gradient = static_cast<double>(elements<const T>(*plan.dy)[s]);
            if (plan.mean == nullptr) {
                std::fill_n(elements<T>(*plan.dx) + run * view.rest, view.rest,
                    static_cast<T>(gradient / plan.count));
                return 0.0;
            }
            const T *from = elements<const T>(*plan.x) + run * view.rest;
            const T centre = elements<const T>(*plan.mean)[s];
            const auto scale = static_cast<T>(2 * gradient / plan.count);
            if (plan.dx != nullptr)
                moveRun(from, view.rest, centre, scale, T(0), elements<T>(*plan.dx) + run * view.rest);
            if (plan.dmean == nullptr)
                return 0.0;
            const double sum = sumOfRun(from, view.rest);
            return -static_cast<double>(scale)
                * (sum - static_cast<double>(view.rest) * static_cast<double>(centre));
        });
        if (plan.dmean != nullptr)
            storeSums<T>(sumOfRuns(view, values, false, unweighted), *plan.dmean);
    });
}

Result<void> normalizeForward(const KernelCall &call, const NormalizePlan &plan)
{
    const ChannelView &view = plan.view;
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) {
        forEachRun(view, [&](std::int64_t s, std::int64_t c, std::int64_t run) {
            const T mean = elements<const T>(*plan.mean)[s];
            const double inverse =
                1 / std::sqrt(static_cast<double>(elements<const T>(*plan.variance)[s]) + plan.epsilon);
            const auto factor = static_cast<T>(inverse
                * (plan.scale == nullptr ? 1.0 : static_cast<double>(elements<const T>(*plan.scale)[c])));
            const T shift = plan.bias == nullptr ? T(0) : elements<const T>(*plan.bias)[c];
            moveRun(elements<const T>(*plan.x) + run * view.rest, view.rest, mean, factor, shift,
                elements<T>(*plan.made) + run * view.rest);
        });
    });
}

Result<void> normalizeBackward(const KernelCall &call, const NormalizePlan &plan)
{
    const ChannelView &view = plan.view;
    const bool usesX = plan.dvariance != nullptr || plan.dscale != nullptr;
    const bool usesVariance = usesX || plan.made != nullptr || plan.dmean != nullptr;
    return withFloat(call, plan.dy->dataType, [&]<typename T>(T) {
        std::vector<double> inverses(view.statistics(), 1.0);
        for (std::size_t s = 0; s < inverses.size() && usesVariance; ++s)
            inverses[s] =
                1 / std::sqrt(static_cast<double>(elements<const T>(*plan.variance)[s]) + plan.epsilon);
        const auto inverseOf = [&](std::int64_t s) { return inverses[static_cast<std::size_t>(s)]; };
        const auto scaleOf = [&](std::int64_t c) {
            return plan.scale == nullptr ? 1.0 : static_cast<double>(elements<const T>(*plan.scale)[c]);
        };
        const bool usesSums = plan.dmean != nullptr || plan.dbias != nullptr;
        const auto runs = static_cast<std::size_t>(view.n * view.c);
        std::vector<double> sums(usesSums ? runs : 0); // of dy
        std::vector<double> products(usesX ? runs : 0); // of dy (x - mean) / sigma
        forEachRun(view, [&](std::int64_t s, std::int64_t c, std::int64_t run) {
            // All at once, while the run is in the cache.
            const auto at = static_cast<std::size_t>(run);
            const T *gradient = elements<const T>(*plan.dy) + run * view.rest;
            if (usesSums)
                sums[at] = sumOfRun(gradient, view.rest);
            if (usesX)
                products[at] = inverseOf(s)
                    * productsOfRun(gradient, elements<const T>(*plan.x) + run * view.rest, view.rest,
                        static_cast<double>(elements<const T>(*plan.mean)[s]));
            if (plan.made != nullptr)
                moveRun(gradient, view.rest, T(0), static_cast<T>(inverseOf(s) * scaleOf(c)), T(0),
                    elements<T>(*plan.made) + run * view.rest);
        });
        if (plan.dmean != nullptr)
            storeSums<T>(sumOfRuns(view, sums, false,
                             [&](std::int64_t s, std::int64_t c) { return -scaleOf(c) * inverseOf(s); }),
                *plan.dmean);
        if (plan.dbias != nullptr)
            storeSums<T>(sumOfRuns(view, sums, true, unweighted), *plan.dbias);
        if (plan.dvariance != nullptr)
            storeSums<T>(sumOfRuns(view, products, false,
                             [&](std::int64_t s, std::int64_t c) {
                                 return -0.5 * scaleOf(c) * inverseOf(s) * inverseOf(s);
                             }),
                *plan.dvariance);
        if (plan.dscale != nullptr)
            storeSums<T>(sumOfRuns(view, products, true, unweighted), *plan.dscale);
    });
}

} // namespace

void addBatchNormKernels(KernelTable &table)
{
    table.add({OperatorKind::BatchMean, OperatorKind::BatchVariance},
        planned<planStatistic, statisticForward>, planned<planStatistic, statisticBackward>);
    table.add({OperatorKind::BatchNormalize}, planned<planNormalize, normalizeForward>,
        planned<planNormalize, normalizeBackward>);
}

} // namespace planloom
