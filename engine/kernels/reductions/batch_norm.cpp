#include "engine/base/work_pool.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/reductions/channel_view.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace planloom {

double countOf(const Operator &op, const ChannelView &view)
{
    const std::int64_t each = view.groups == 0 ? view.n : view.c / view.groups;
    return static_cast<double>(op.attributes.integer("count", each * view.rest));
}

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

/// BatchMean and BatchVariance: sums per channel, or group of a sample, divided by the number of elements in
/// the whole pTensor.
Result<void> statisticForward(const KernelCall &call)
{
    const bool variance = call.op->kind == OperatorKind::BatchVariance;
    const Buffer *x = findInput(call, 0);
    const Buffer *mean = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || (variance && mean == nullptr))
        return missingSlot(call, "its input or its mean");
    const ChannelView view = channelView(x->shape, y->shape);
    const double count = countOf(*call.op, view);
    return withFloat(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const auto values = valuesOfRuns(view, [&](std::int64_t statistic, std::int64_t, std::int64_t run) {
            const T *from = elements<const T>(*x) + run * view.rest;
            return variance
                ? squaresOfRun(from, view.rest, static_cast<double>(elements<const T>(*mean)[statistic]))
                : sumOfRun(from, view.rest);
        });
        std::vector<double> sums = sumOfRuns(view, values, false, unweighted);
        for (double &sum : sums)
            sum /= count;
        storeSums<T>(sums, *y);
        return {};
    });
}

Result<void> meanBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return {};
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    const ChannelView view = channelView(dx->shape, dy->shape);
    const double count = countOf(*call.op, view);
    return withFloat(call, dx->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        forEachRun(view, [&](std::int64_t s, std::int64_t, std::int64_t run) {
            const auto share = static_cast<T>(static_cast<double>(elements<const T>(*dy)[s]) / count);
            std::fill_n(elements<T>(*dx) + run * view.rest, view.rest, share);
        });
        return {};
    });
}

Result<void> varianceBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *mean = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dmean = back.wanted(1);
    if (dy == nullptr || x == nullptr || mean == nullptr)
        return missingSlot(call, "a gradient or a saved input");
    const ChannelView view = channelView(x->shape, mean->shape);
    const double count = countOf(*call.op, view);
    return withFloat(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const auto values = valuesOfRuns(view, [&](std::int64_t s, std::int64_t, std::int64_t run) {
            const T *from = elements<const T>(*x) + run * view.rest;
            const T centre = elements<const T>(*mean)[s];
            const auto scale = static_cast<T>(2 * static_cast<double>(elements<const T>(*dy)[s]) / count);
            if (dx != nullptr)
                moveRun(from, view.rest, centre, scale, T(0), elements<T>(*dx) + run * view.rest);
            if (dmean == nullptr)
                return 0.0;
            const double sum = sumOfRun(from, view.rest);
            return -static_cast<double>(scale)
                * (sum - static_cast<double>(view.rest) * static_cast<double>(centre));
        });
        if (dmean != nullptr)
            storeSums<T>(sumOfRuns(view, values, false, unweighted), *dmean);
        return {};
    });
}

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias
Result<void> normalizeForward(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    for (std::size_t slot = 0; slot < 3; ++slot) {
        if (findInput(call, slot) == nullptr)
            return missingSlot(call, "its input, mean or variance");
    }
    const Buffer &x = call.inputs[0];
    const Buffer *scale = findInput(call, 3);
    const Buffer *bias = findInput(call, 4);
    const ChannelView view = channelView(x.shape, call.inputs[1].shape);
    const double epsilon = call.op->attributes.real("epsilon", 1e-5);
    return withFloat(call, x.dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        forEachRun(view, [&](std::int64_t s, std::int64_t c, std::int64_t run) {
            const T mean = elements<const T>(call.inputs[1])[s];
            const double inverse =
                1 / std::sqrt(static_cast<double>(elements<const T>(call.inputs[2])[s]) + epsilon);
            const auto factor = static_cast<T>(
                inverse * (scale == nullptr ? 1.0 : static_cast<double>(elements<const T>(*scale)[c])));
            const T shift = bias == nullptr ? T(0) : elements<const T>(*bias)[c];
            moveRun(elements<const T>(x) + run * view.rest, view.rest, mean, factor, shift,
                elements<T>(*y) + run * view.rest);
        });
        return {};
    });
}

Result<void> normalizeBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *mean = back.input(1);
    const Buffer *variance = back.input(2);
    const Buffer *scale = back.input(3);
    const Buffer *dx = back.wanted(0);
    const Buffer *dmean = back.wanted(1);
    const Buffer *dvariance = back.wanted(2);
    const Buffer *dscale = back.wanted(3);
    const Buffer *dbias = back.wanted(4);
    const bool usesX = dvariance != nullptr || dscale != nullptr;
    const bool usesVariance = usesX || dx != nullptr || dmean != nullptr;
    if (dy == nullptr || (usesX && (x == nullptr || mean == nullptr))
        || (usesVariance && variance == nullptr))
        return missingSlot(call, "a gradient or a saved input");
    const Buffer *statistics = mean != nullptr ? mean : variance != nullptr ? variance : dmean;
    const ChannelView view =
        channelView(dy->shape, statistics != nullptr ? statistics->shape : Shape{dy->shape[1]});
    const double epsilon = call.op->attributes.real("epsilon", 1e-5);
    return withFloat(call, dy->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::vector<double> inverses(view.statistics(), 1.0);
        for (std::size_t s = 0; s < inverses.size() && usesVariance; ++s)
            inverses[s] = 1 / std::sqrt(static_cast<double>(elements<const T>(*variance)[s]) + epsilon);
        const auto inverseOf = [&](std::int64_t s) { return inverses[static_cast<std::size_t>(s)]; };
        const auto scaleOf = [&](std::int64_t c) {
            return scale == nullptr ? 1.0 : static_cast<double>(elements<const T>(*scale)[c]);
        };
        const bool usesSums = dmean != nullptr || dbias != nullptr;
        const auto runs = static_cast<std::size_t>(view.n * view.c);
        std::vector<double> sums(usesSums ? runs : 0); // of dy
        std::vector<double> products(usesX ? runs : 0); // of dy (x - mean) / sigma
        forEachRun(view, [&](std::int64_t s, std::int64_t c, std::int64_t run) {
            // All at once, while the run is in the cache.
            const auto at = static_cast<std::size_t>(run);
            const T *gradient = elements<const T>(*dy) + run * view.rest;
            if (usesSums)
                sums[at] = sumOfRun(gradient, view.rest);
            if (usesX)
                products[at] = inverseOf(s)
                    * productsOfRun(gradient, elements<const T>(*x) + run * view.rest, view.rest,
                        static_cast<double>(elements<const T>(*mean)[s]));
            if (dx != nullptr)
                moveRun(gradient, view.rest, T(0), static_cast<T>(inverseOf(s) * scaleOf(c)), T(0),
                    elements<T>(*dx) + run * view.rest);
        });
        if (dmean != nullptr)
            storeSums<T>(sumOfRuns(view, sums, false,
                             [&](std::int64_t s, std::int64_t c) { return -scaleOf(c) * inverseOf(s); }),
                *dmean);
        if (dbias != nullptr)
            storeSums<T>(sumOfRuns(view, sums, true, unweighted), *dbias);
        if (dvariance != nullptr)
            storeSums<T>(sumOfRuns(view, products, false,
                             [&](std::int64_t s, std::int64_t c) {
                                 return -0.5 * scaleOf(c) * inverseOf(s) * inverseOf(s);
                             }),
                *dvariance);
        if (dscale != nullptr)
            storeSums<T>(sumOfRuns(view, products, true, unweighted), *dscale);
        return {};
    });
}

} // namespace

void addBatchNormKernels(KernelTable &table)
{
    table.add(OperatorKind::BatchMean, Direction::Forward, statisticForward);
    table.add(OperatorKind::BatchMean, Direction::Backward, meanBackward);
    table.add(OperatorKind::BatchVariance, Direction::Forward, statisticForward);
    table.add(OperatorKind::BatchVariance, Direction::Backward, varianceBackward);
    table.add(OperatorKind::BatchNormalize, Direction::Forward, normalizeForward);
    table.add(OperatorKind::BatchNormalize, Direction::Backward, normalizeBackward);
}

} // namespace planloom
