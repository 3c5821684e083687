#pragma once

#include "engine/cuda/kernels/device_code.h"
#include "engine/kernels/reductions/channel_view.h"

// Normalization by channels, or groups of them: batch_norm.cpp's, with its names.

namespace planloom {

/// Element `e` of those that belong to one statistic, or to one channel.
struct ChannelPlace {
    ChannelView view{};
    bool byChannel = true; ///< Else by groups of channels of a sample: view.groups > 0, and divides view.c.

    PLANLOOM_INLINE std::int64_t count() const
    {
        return (byChannel ? view.n : view.c / view.groups) * view.rest;
    }
    PLANLOOM_INLINE std::int64_t offset(std::int64_t which, std::int64_t e) const
    {
        return byChannel ? (e / view.rest * view.c + which) * view.rest + e % view.rest : which * count() + e;
    }
};

PLANLOOM_INLINE std::int64_t channelOf(const ChannelView &view, std::int64_t offset)
{
    return offset / view.rest % view.c;
}
PLANLOOM_INLINE std::int64_t statisticOf(const ChannelView &view, std::int64_t offset)
{
    return view.statisticOf(offset / view.rest / view.c, channelOf(view, offset));
}

/// A mean, or with `mean` a variance around it, divided by `divisor`.
struct ChannelStatisticKernel {
    Elements x{};
    Elements mean{};
    Elements made{};
    ChannelPlace place{};
    double divisor = 1;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t s) const
    {
        const double centre = mean.data == nullptr ? 0.0 : static_cast<double>(at(mean, s));
        double part = 0;
        for (std::int64_t e = team.index(); e < place.count(); e += team.size()) {
            const double d = static_cast<double>(at(x, place.offset(s, e))) - centre;
            part += mean.data == nullptr ? d : d * d;
        }
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, s, static_cast<float>(sum / divisor));
    }
};

/// The gradients of a statistic in x: of a mean, dy / divisor, of a variance, 2 dy (x - mean) / divisor.
struct ChannelSpreadKernel {
    Elements dy{};
    Elements x{}; ///< No data: of a mean.
    Elements mean{};
    Elements made{};
    ChannelView view{};
    double divisor = 1;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t s = statisticOf(view, i);
        const auto gradient = static_cast<double>(at(dy, s));
        if (x.data == nullptr)
            return store(made, i, static_cast<float>(gradient / divisor));
        store(made, i, static_cast<float>(2 * gradient / divisor) * (at(x, i) - at(mean, s)));
    }
};

/// That of a variance in its mean.
struct ChannelVarianceMeanKernel {
    Elements dy{};
    Elements x{};
    Elements mean{};
    Elements made{};
    ChannelPlace place{};
    double divisor = 1;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t s) const
    {
        const auto scale = static_cast<float>(2 * static_cast<double>(at(dy, s)) / divisor);
        const float centre = at(mean, s);
        double part = 0;
        for (std::int64_t e = team.index(); e < place.count(); e += team.size())
            part -= static_cast<double>(scale * (at(x, place.offset(s, e)) - centre));
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, s, static_cast<float>(sum));
    }
};

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, or dx.
struct ChannelNormalizeKernel {
    Elements x{}; ///< Backward: dy.
    Elements mean{}; ///< No data: backward.
    Elements variance{};
    Elements scale{}; ///< No data: 1.
    Elements bias{}; ///< No data: 0.
    Elements made{};
    ChannelView view{};
    double epsilon = 1e-5;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t s = statisticOf(view, i);
        const std::int64_t c = channelOf(view, i);
        const double inverse = 1 / sqrt(static_cast<double>(at(variance, s)) + epsilon);
        const auto factor =
            static_cast<float>(inverse * (scale.data == nullptr ? 1.0 : static_cast<double>(at(scale, c))));
        const float centre = mean.data == nullptr ? 0.0f : at(mean, s);
        store(made, i, (at(x, i) - centre) * factor + (bias.data == nullptr ? 0.0f : at(bias, c)));
    }
};

/// Sums over what belongs to a channel, or to a statistic, that the other gradients are made of.
struct ChannelSlopesKernel {
    Elements dy{};
    Elements x{}; ///< No data: sums of dy alone are wanted.
    Elements mean{};
    Elements variance{};
    Elements scale{};
    Elements sums{}; ///< Of dy: the bias's. No data: not wanted, as the following.
    Elements products{}; ///< Of dy (x - mean) / sigma: the scale's.
    Elements ofMean{};
    Elements ofVariance{};
    ChannelPlace place{};
    double epsilon = 1e-5;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t which) const
    {
        double sumPart = 0;
        double productPart = 0;
        for (std::int64_t e = team.index(); e < place.count(); e += team.size()) {
            const std::int64_t i = place.offset(which, e);
            const std::int64_t s = statisticOf(place.view, i);
            const bool scaled = ofMean.data != nullptr || ofVariance.data != nullptr;
            const double factor = scaled && scale.data != nullptr
                ? static_cast<double>(at(scale, channelOf(place.view, i)))
                : 1.0;
            const double gradient = static_cast<double>(at(dy, i)) * factor;
            sumPart += gradient;
            if (x.data != nullptr)
                productPart += gradient * (static_cast<double>(at(x, i)) - static_cast<double>(at(mean, s)))
                    * inverseOf(s);
        }
        const double sum = team.sum(sumPart);
        const double product = team.sum(productPart);
        if (team.index() != 0)
            return;
        if (sums.data != nullptr)
            store(sums, which, static_cast<float>(sum));
        if (products.data != nullptr)
            store(products, which, static_cast<float>(product));
        if (ofMean.data != nullptr)
            store(ofMean, which, static_cast<float>(-sum * inverseOf(which)));
        if (ofVariance.data != nullptr)
            store(
                ofVariance, which, static_cast<float>(-0.5 * product * inverseOf(which) * inverseOf(which)));
    }
    PLANLOOM_INLINE double inverseOf(std::int64_t s) const
    {
        return 1 / sqrt(static_cast<double>(at(variance, s)) + epsilon);
    }
};

} // namespace planloom
