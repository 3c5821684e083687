#pragma once

#include "engine/interop/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace planloom {

inline const float *floatsOf(const TensorData &array)
{
    return reinterpret_cast<const float *>(array.bytes.data());
}

/// The largest |a - b| / |b| of floating arrays; of those that are all but zero beside the others (a gradient
/// that cancels), relative to a thousandth of the group's largest number.
inline double distanceOf(const NamedArrays &a, const NamedArrays &b)
{
    double largest = 0;
    for (const auto &[name, array] : b)
        for (std::size_t i = 0; array.type.dataType == DataType::Float32 && i < array.bytes.size() / 4; ++i)
            largest = std::max(largest, std::abs(static_cast<double>(floatsOf(array)[i])));
    double worst = 0;
    EXPECT_EQ(a.size(), b.size());
    for (const auto &[name, expected] : b) {
        const auto found = a.find(name);
        if (found == a.end() || found->second.bytes.size() != expected.bytes.size())
            return INFINITY;
        if (expected.type.dataType != DataType::Float32)
            continue;
        const std::size_t count = expected.bytes.size() / sizeof(float);
        double apart = 0;
        double size = static_cast<double>(count) * std::pow(1e-3 * largest, 2);
        double own = 0;
        for (std::size_t i = 0; i < count; ++i) {
            apart += std::pow(static_cast<double>(floatsOf(found->second)[i] - floatsOf(expected)[i]), 2);
            own += std::pow(static_cast<double>(floatsOf(expected)[i]), 2);
        }
        size = std::max({size, own, 1e-12});
        if (!(apart <= size * 1e30))
            return INFINITY;
        worst = std::max(worst, std::sqrt(apart / size));
    }
    return worst;
}

} // namespace planloom
