#include "engine/kernels/channel_view.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement.h"

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

/// Calls visit(statistic, channel, offset of its run) for every run of `rest` elements.
template<typename Visit> void forEachRun(const ChannelView &view, Visit &&visit)
{
    for (std::int64_t i = 0; i < view.n; ++i) {
        for (std::int64_t c = 0; c < view.c; ++c)
            visit(view.statisticOf(i, c), c, (i * view.c + c) * view.rest);
    }
}

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
        std::vector<double> sums(view.statistics(), 0.0);
        forEachRun(view, [&](std::int64_t s, std::int64_t, std::int64_t at) {
            const T *from = elements<const T>(*x) + at;
            const double centre = variance ? static_cast<double>(elements<const T>(*mean)[s]) : 0.0;
            double sum = 0;
            for (std::int64_t i = 0; i < view.rest; ++i) {
                const double d = static_cast<double>(from[i]) - centre;
                sum += variance ? d * d : d;
            }
            sums[static_cast<std::size_t>(s)] += sum;
        });
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
        forEachRun(view, [&](std::int64_t s, std::int64_t, std::int64_t at) {
            const auto share = static_cast<T>(static_cast<double>(elements<const T>(*dy)[s]) / count);
            std::fill_n(elements<T>(*dx) + at, view.rest, share);
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
        std::vector<double> sums(view.statistics(), 0.0);
        forEachRun(view, [&](std::int64_t s, std::int64_t, std::int64_t at) {
            const T *from = elements<const T>(*x) + at;
            const T centre = elements<const T>(*mean)[s];
            const auto scale = static_cast<T>(2 * static_cast<double>(elements<const T>(*dy)[s]) / count);
            double sum = 0;
            for (std::int64_t i = 0; i < view.rest; ++i) {
                const T slope = scale * (from[i] - centre);
                if (dx != nullptr)
                    elements<T>(*dx)[at + i] = slope;
                sum -= static_cast<double>(slope);
            }
            sums[static_cast<std::size_t>(s)] += sum;
        });
        if (dmean != nullptr)
            storeSums<T>(sums, *dmean);
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
        forEachRun(view, [&](std::int64_t s, std::int64_t c, std::int64_t at) {
            const T mean = elements<const T>(call.inputs[1])[s];
            const double inverse =
                1 / std::sqrt(static_cast<double>(elements<const T>(call.inputs[2])[s]) + epsilon);
            const auto factor = static_cast<T>(
                inverse * (scale == nullptr ? 1.0 : static_cast<double>(elements<const T>(*scale)[c])));
            const T shift = bias == nullptr ? T(0) : elements<const T>(*bias)[c];
            const T *from = elements<const T>(x) + at;
            T *to = elements<T>(*y) + at;
            for (std::int64_t i = 0; i < view.rest; ++i)
                to[i] = (from[i] - mean) * factor + shift;
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
        const auto channels = static_cast<std::size_t>(view.c);
        std::vector<double> sums(channels, 0.0); // of dy
        std::vector<double> products(channels, 0.0); // of dy (x - mean) / sigma
        std::vector<double> scaledSums(view.statistics(), 0.0); // the same of dy scale
        std::vector<double> scaledProducts(view.statistics(), 0.0);
        std::vector<double> inverses(view.statistics(), 1.0);
        for (std::size_t s = 0; s < inverses.size() && usesVariance; ++s)
            inverses[s] = 1 / std::sqrt(static_cast<double>(elements<const T>(*variance)[s]) + epsilon);
        forEachRun(view, [&](std::int64_t statistic, std::int64_t channel, std::int64_t at) {
            const auto s = static_cast<std::size_t>(statistic);
            const auto c = static_cast<std::size_t>(channel);
            const double factor = scale == nullptr ? 1.0 : static_cast<double>(elements<const T>(*scale)[c]);
            const T *gradient = elements<const T>(*dy) + at;
            double sum = 0;
            double product = 0;
            const double centre = usesX ? static_cast<double>(elements<const T>(*mean)[s]) : 0.0;
            for (std::int64_t i = 0; i < view.rest; ++i) {
                sum += static_cast<double>(gradient[i]);
                if (usesX)
                    product += static_cast<double>(gradient[i])
                        * (static_cast<double>(elements<const T>(*x)[at + i]) - centre);
            }
            sums[c] += sum;
            products[c] += product * inverses[s];
            scaledSums[s] += sum * factor;
            scaledProducts[s] += product * inverses[s] * factor;
            if (dx != nullptr) {
                const auto slope = static_cast<T>(inverses[s] * factor);
                for (std::int64_t i = 0; i < view.rest; ++i)
                    elements<T>(*dx)[at + i] = gradient[i] * slope;
            }
        });
        for (std::size_t s = 0; s < inverses.size(); ++s) {
            if (dmean != nullptr)
                elements<T>(*dmean)[s] = static_cast<T>(-scaledSums[s] * inverses[s]);
            if (dvariance != nullptr)
                elements<T>(*dvariance)[s] =
                    static_cast<T>(-0.5 * scaledProducts[s] * inverses[s] * inverses[s]);
        }
        if (dscale != nullptr)
            storeSums<T>(products, *dscale);
        if (dbias != nullptr)
            storeSums<T>(sums, *dbias);
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
