#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Maps time to pixels: what pan and zoom change. Knows no painter.
struct TimeAxis {
    double origin = 0; ///< Nanoseconds at x = 0.
    double nanosecondsPerPixel = 1; ///< Above 0.

    double xOf(double nanoseconds) const { return (nanoseconds - origin) / nanosecondsPerPixel; }
    double timeAt(double x) const { return origin + x * nanosecondsPerPixel; }
    friend bool operator==(const TimeAxis &, const TimeAxis &) = default;
};

/// A labelled mark of the ruler.
struct TimeTick {
    double nanoseconds = 0;
    std::string label{}; ///< Without the unit, which is the axis' own: "41.2"; empty for minor ticks.
    friend bool operator==(const TimeTick &, const TimeTick &) = default;
};

/// Marks of a ruler, and the unit their labels are in.
struct TimeTicks {
    std::string unit{}; ///< "ms"
    std::vector<TimeTick> ticks{}; ///< Ascending.
};

/// Ticks at multiples of 1, 2 or 5 times a power of ten, labels at least `labelPixels` apart, four or five
/// minor ticks between two labels. The unit is that of the visible end, so that labels of one axis compare.
TimeTicks ticksOf(const TimeAxis &axis, double width, double labelPixels = 90);

/// The whole of [0, extent] on `width` pixels, with a margin at the end.
TimeAxis fitted(double extentNanoseconds, double width);

/// `axis` scaled by `factor` (above 1 is closer) with the time at `x` staying there; limited so that a pixel
/// is at least half a nanosecond and the extent at least an eighth of the width.
TimeAxis zoomed(const TimeAxis &axis, double factor, double x, double extentNanoseconds, double width);

/// `axis` moved so that some of [0, extent] stays in view.
TimeAxis clamped(const TimeAxis &axis, double extentNanoseconds, double width);

} // namespace planloom
