#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace planloom {

/// What a difference means.
enum class Change : std::uint8_t {
    Same, ///< Below the noise: half a percent, or one tick.
    Better,
    Worse,
    Other, ///< Different, and neither better nor worse: a number of rows.
};

/// Differences below this share of the first value are noise.
constexpr double kNoiseShare = 0.005;

/// What it means that `before` became `after`. `tick` is the smallest difference that can be told (a
/// nanosecond in the values' unit, a byte); differences up to it are noise.
inline Change judged(double before, double after, double tick, bool lessIsBetter = true)
{
    const double difference = after - before;
    if (!(std::abs(difference) > tick) || std::abs(difference) < kNoiseShare * std::abs(before))
        return Change::Same;
    return (difference < 0) == lessIsBetter ? Change::Better : Change::Worse;
}

/// "−6.1%", "+3.2%", "0.0%", "+250%"; "new" from nothing. With a true minus sign.
inline std::string percentText(double before, double after)
{
    if (before == 0)
        return after == 0 ? "0.0%" : "new";
    const double percent = (after - before) / std::abs(before) * 100;
    char text[48];
    std::snprintf(text, sizeof text, std::abs(percent) < 99.95 ? "%.1f%%" : "%.0f%%", std::abs(percent));
    const std::string digits = text;
    if (digits == "0.0%")
        return digits;
    return (percent < 0 ? "\u2212" : "+") + digits;
}

/// "▼" for less, "▲" for more, "=" for what is the same: the sign beside a colour.
inline const char *arrowOf(double before, double after, Change change)
{
    return change == Change::Same ? "=" : after < before ? "\u25bc" : "\u25b2";
}

} // namespace planloom
