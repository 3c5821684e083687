#pragma once

#include "widgets/timeline/timeline_hit.h"
#include "widgets/timeline/timeline_picture.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// One of the things that lie at a place, over and beside each other.
struct ThingUnder {
    enum class Kind : std::uint8_t { Lane, Bracket, Block, Span, Communication, Idle, Memory };
    Kind kind = Kind::Lane;
    TimelineFocus focus{}; ///< What the keyboard would be at; of Memory and Lane only the lane is meant.
    double time = 0; ///< Nanoseconds: of Memory.
    std::string words{};
    friend bool operator==(const ThingUnder &, const ThingUnder &) = default;
};

/// Everything a lane has at `x`, from the top down: itself, its bracket, the block, operators (all of them
/// that share the pixel with `x`, however small), the pause, communication, and what its memory holds. Empty
/// off the lanes. O(log spans + things)
std::vector<ThingUnder> thingsUnder(const TimelineCanvas &canvas, double x, int y);

} // namespace planloom
