#pragma once

#include "engine/cuda/kernels/device_code.h"

#include <cstdint>

namespace planloom {

// Gradients clipped by their global norm, as optimizer.cpp's kernels of the same operators.

/// A stretch of a gradient: the sum of its squares. By stretches, so that all of the device adds up a large
/// one.
struct SquaresKernel {
    Elements x{};
    double *sums = nullptr; ///< One a row.
    float factor = 1; ///< Of the gradient.
    std::int64_t count = 0;
    std::int64_t stretch = 1;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t row) const
    {
        const std::int64_t begin = row * stretch;
        const std::int64_t end = begin + stretch < count ? begin + stretch : count;
        double part = 0;
        for (std::int64_t i = begin + team.index(); i < end; i += team.size()) {
            const auto value = static_cast<double>(at(x, i) * factor);
            part += value * value;
        }
        const double sum = team.sum(part);
        if (team.index() == 0)
            sums[row] = sum;
    }
};

/// Of all stretches; one item.
struct SquareSumKernel {
    const double *sums = nullptr;
    std::int64_t count = 0;
    Elements made{};

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t) const
    {
        double part = 0;
        for (std::int64_t i = team.index(); i < count; i += team.size())
            part += sums[i];
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, 0, static_cast<float>(sum));
    }
};

/// PyTorch's clip_grad_norm_; one item.
struct ClipFactorKernel {
    Elements squares{};
    Elements made{};
    float most = 1;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const float ratio = most / (sqrtf(at(squares, i)) + 1e-6f);
        store(made, i, ratio > 1 ? 1.0f : ratio); // a norm that is none stays none
    }
};

} // namespace planloom
