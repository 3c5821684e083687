#pragma once

#include "engine/traces/trace.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// A stretch of a lane as it is drawn: one event, or a run of those that are shorter than a pixel.
struct TraceCell {
    float left = 0; ///< Pixels from the left end.
    float right = 0;
    std::uint32_t event = 0; ///< Index into the rank's events: of a run the longest that was looked at.
    bool isRun = false;
    friend bool operator==(const TraceCell &, const TraceCell &) = default;
};

/// What of a rank's lane lies in [begin, begin + width x perPixel), left to right. No more cells than pixels,
/// however many events there are. O(width x log events)
/// @param begin     nanoseconds, on the rank's own clock
/// @param perPixel  nanoseconds; positive
std::vector<TraceCell> cellsOf(
    const RankTrace &rank, std::size_t lane, std::int64_t begin, double perPixel, int width);

/// The event of a lane at a time: of several the shortest; nothing if there is none. O(log events + nested
/// ones)
std::optional<std::uint32_t> eventAt(const RankTrace &rank, std::size_t lane, std::int64_t time);

} // namespace planloom
