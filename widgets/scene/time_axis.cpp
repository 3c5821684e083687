#include "widgets/scene/time_axis.h"

#include "widgets/common/format.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kLeastNanosecondsPerPixel = 0.5;
constexpr double kLeastShareOfWidth = 0.125;
constexpr double kEndMargin = 1.02;

struct Step {
    double nanoseconds = 1;
    int minor = 5; ///< Minor ticks per label.
};

Step stepOf(double least)
{
    const double power = std::pow(10.0, std::floor(std::log10(std::max(least, 1.0))));
    for (const auto &[factor, minor] : {std::pair{1.0, 5}, {2.0, 4}, {5.0, 5}}) {
        if (factor * power >= least)
            return {factor * power, minor};
    }
    return {10 * power, 5};
}

} // namespace

TimeTicks ticksOf(const TimeAxis &axis, double width, double labelPixels)
{
    const Step step = stepOf(labelPixels * axis.nanosecondsPerPixel);
    const double begin = std::max(0.0, axis.timeAt(0));
    const double end = axis.timeAt(width);
    TimeTicks result;
    const TimeUnit unit = timeUnitFor(std::max(end, 1.0) * 1e-9);
    result.unit = unit.name;
    const double minor = step.nanoseconds / step.minor;
    const auto first = static_cast<std::int64_t>(std::ceil(begin / minor - 1e-9));
    const auto last = static_cast<std::int64_t>(std::floor(end / minor + 1e-9));
    for (std::int64_t i = first; i <= last; ++i) {
        TimeTick tick{static_cast<double>(i) * minor, {}};
        if (i % step.minor == 0)
            tick.label = formatInUnit(tick.nanoseconds * 1e-9, unit, step.nanoseconds * 1e-9);
        result.ticks.push_back(std::move(tick));
    }
    return result;
}

TimeAxis fitted(double extentNanoseconds, double width)
{
    const double extent = std::max(extentNanoseconds, 1.0) * kEndMargin;
    return {0, std::max(extent / std::max(width, 1.0), kLeastNanosecondsPerPixel)};
}

TimeAxis zoomed(const TimeAxis &axis, double factor, double x, double extentNanoseconds, double width)
{
    const double most = std::max(extentNanoseconds, 1.0) / (kLeastShareOfWidth * std::max(width, 1.0))
        + kLeastNanosecondsPerPixel;
    const double fixed = axis.timeAt(x);
    TimeAxis result;
    result.nanosecondsPerPixel =
        std::clamp(axis.nanosecondsPerPixel / factor, kLeastNanosecondsPerPixel, most);
    result.origin = fixed - x * result.nanosecondsPerPixel;
    return clamped(result, extentNanoseconds, width);
}

TimeAxis clamped(const TimeAxis &axis, double extentNanoseconds, double width)
{
    const double visible = width * axis.nanosecondsPerPixel;
    TimeAxis result = axis;
    result.origin = std::clamp(
        axis.origin, std::min(0.0, -0.25 * visible), std::max(extentNanoseconds - 0.25 * visible, 0.0));
    return result;
}

} // namespace planloom
