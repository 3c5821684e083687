#pragma once

#include "engine/cuda/kernels/device_code.h"
#include "engine/kernels/movement/pooling.h"

// Convolution and pooling, of which each thread makes one element.

namespace planloom {

constexpr std::int32_t kMostWindowDimensions = 3;

/// WindowGeometry of window.h, with its names, as threads see it.
struct DeviceWindows {
    std::int32_t rank = 0;
    std::int64_t in[kMostWindowDimensions] = {};
    std::int64_t out[kMostWindowDimensions] = {};
    std::int64_t first[kMostWindowDimensions] = {};
    std::int64_t inFirst[kMostWindowDimensions] = {};
    std::int64_t inWhole[kMostWindowDimensions] = {};
    std::int64_t kernel[kMostWindowDimensions] = {};
    std::int64_t strides[kMostWindowDimensions] = {};
    std::int64_t dilations[kMostWindowDimensions] = {};
    std::int64_t pads[kMostWindowDimensions] = {};
    std::int64_t padsAfter[kMostWindowDimensions] = {};
    std::int64_t inCount = 1;
    std::int64_t outCount = 1;
    std::int64_t kernelCount = 1;

    PLANLOOM_INLINE std::int64_t elementAt(std::int32_t d, std::int64_t position, std::int64_t tap) const
    {
        return (first[d] + position) * strides[d] - pads[d] + tap * dilations[d];
    }
    /// Where tap `tap` of window `window` reads, in a plane of what the part has; -1 without it.
    PLANLOOM_INLINE std::int64_t offsetOf(std::int64_t window, std::int64_t tap) const
    {
        std::int64_t offset = 0;
        std::int64_t step = 1;
        for (std::int32_t d = rank - 1; d >= 0; --d) {
            const std::int64_t here = elementAt(d, window % out[d], tap % kernel[d]) - inFirst[d];
            if (here < 0 || here >= in[d])
                return -1;
            offset += here * step;
            step *= in[d];
            window /= out[d];
            tap /= kernel[d];
        }
        return offset;
    }
    /// The window whose tap `tap` reads element `offset` of a plane; -1 if none of the part does.
    PLANLOOM_INLINE std::int64_t windowOf(std::int64_t offset, std::int64_t tap) const
    {
        std::int64_t window = 0;
        std::int64_t step = 1;
        for (std::int32_t d = rank - 1; d >= 0; --d) {
            const std::int64_t away = offset % in[d] + inFirst[d] - elementAt(d, 0, tap % kernel[d]);
            if (away < 0 || away % strides[d] != 0 || away / strides[d] >= out[d])
                return -1;
            window += away / strides[d] * step;
            step *= out[d];
            offset /= in[d];
            tap /= kernel[d];
        }
        return window;
    }
    /// What an average is divided by: `averagedElements` of pool.cpp.
    PLANLOOM_INLINE double divisorOf(std::int64_t window, bool countPadding) const
    {
        double count = 1;
        for (std::int32_t d = rank - 1; d >= 0; --d) {
            std::int64_t inside = 0;
            for (std::int64_t t = 0; t < kernel[d]; ++t) {
                const std::int64_t here = elementAt(d, window % out[d], t);
                inside += here >= (countPadding ? -pads[d] : 0)
                        && here < inWhole[d] + (countPadding ? padsAfter[d] : 0)
                    ? 1
                    : 0;
            }
            count *= static_cast<double>(inside);
            window /= out[d];
        }
        return count > 1 ? count : 1;
    }
};

/// columns[plane, tap, window] = the element of x that the tap reads, 0 without it.
struct UnfoldKernel {
    Elements x{};
    Elements columns{};
    DeviceWindows windows{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t tap = i / windows.outCount % windows.kernelCount;
        const std::int64_t plane = i / (windows.outCount * windows.kernelCount);
        const std::int64_t offset = windows.offsetOf(i % windows.outCount, tap);
        store(columns, i, offset < 0 ? 0.0f : at(x, plane * windows.inCount + offset));
    }
};

/// The reverse: element i of x is the sum of all taps that read it.
struct FoldKernel {
    Elements columns{};
    Elements x{};
    DeviceWindows windows{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t plane = i / windows.inCount;
        double sum = 0;
        for (std::int64_t tap = 0; tap < windows.kernelCount; ++tap) {
            const std::int64_t window = windows.windowOf(i % windows.inCount, tap);
            if (window >= 0)
                sum += static_cast<double>(
                    at(columns, (plane * windows.kernelCount + tap) * windows.outCount + window));
        }
        store(x, i, static_cast<float>(sum));
    }
};

/// Element i of y, as pool.cpp's `pooled`.
struct PoolKernel {
    Elements x{};
    Elements y{};
    PoolRule rule{};
    DeviceWindows windows{};

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t window = i % windows.outCount;
        const std::int64_t plane = i / windows.outCount * windows.inCount;
        float largest = -std::numeric_limits<float>::infinity();
        double sum = 0;
        for (std::int64_t tap = 0; tap < windows.kernelCount; ++tap) {
            const std::int64_t offset = windows.offsetOf(window, tap);
            if (offset < 0)
                continue;
            const float value = at(x, plane + offset);
            largest = value > largest || value != value ? value : largest;
            sum += rule.pooling == Pooling::Norm ? pow(fabs(static_cast<double>(value)), rule.p)
                                                 : static_cast<double>(value);
        }
        store(y, i,
            rule.pooling == Pooling::Largest ? largest
                : rule.pooling == Pooling::Average
                ? static_cast<float>(sum / windows.divisorOf(window, rule.countPadding))
                : static_cast<float>(pow(sum, 1 / rule.p)));
    }
};

/// Element i of dx: what comes to it from all windows that read it. Of a largest element, the first of equal
/// ones takes all.
struct PoolSlopeKernel {
    Elements dy{};
    Elements x{}; ///< Not of averages; as is y.
    Elements y{};
    Elements made{};
    PoolRule rule{};
    DeviceWindows windows{}; ///< Over what x has; of averages, over dx.
    DeviceWindows share{}; ///< Over dx.

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t plane = i / share.inCount;
        std::int64_t rest = i % share.inCount;
        std::int64_t offset = 0; // in x
        std::int64_t step = 1;
        for (std::int32_t d = share.rank - 1; d >= 0; --d) {
            const std::int64_t here = rest % share.in[d] + share.inFirst[d] - windows.inFirst[d];
            if (here < 0 || here >= windows.in[d])
                return store(made, i, 0.0f);
            offset += here * step;
            step *= windows.in[d];
            rest /= share.in[d];
        }
        double sum = 0;
        for (std::int64_t tap = 0; tap < windows.kernelCount; ++tap) {
            const std::int64_t window = windows.windowOf(offset, tap);
            if (window >= 0)
                sum += static_cast<double>(at(dy, plane * windows.outCount + window))
                    * shareOf(plane, window, tap, offset);
        }
        store(made, i, static_cast<float>(sum));
    }
    PLANLOOM_INLINE double shareOf(
        std::int64_t plane, std::int64_t window, std::int64_t tap, std::int64_t offset) const
    {
        if (rule.pooling == Pooling::Average)
            return 1 / windows.divisorOf(window, rule.countPadding);
        const float value = at(x, plane * windows.inCount + offset);
        const float result = at(y, plane * windows.outCount + window);
        if (rule.pooling == Pooling::Norm) {
            if (result == 0 || value == 0)
                return 0;
            const double size =
                pow(fabs(static_cast<double>(value)) / static_cast<double>(result), rule.p - 1);
            return value < 0 ? -size : size;
        }
        if (value != result)
            return 0;
        for (std::int64_t before = 0; before < tap; ++before) {
            const std::int64_t other = windows.offsetOf(window, before);
            if (other >= 0 && at(x, plane * windows.inCount + other) == result)
                return 0;
        }
        return 1;
    }
};

} // namespace planloom
