#pragma once

#include "engine/simulate/symmetry.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// Where the devices of one class of channels meet.
struct MeetingPlace {
    std::vector<std::pair<std::int32_t, std::int32_t>>
        ends{}; ///< Distinct (device class, slot) that must come.
    std::int32_t begin = 0; ///< Of its meeting points: one for each micro-batch (tags), or one (groups).
    bool complete = true; ///< False if a member never comes.
    std::int32_t channel = -1; ///< A channel of the class.

    std::int32_t expected() const { return static_cast<std::int32_t>(ends.size()); }
};

/// All of them, by channel class. At each point meetings follow one another in the order of programs.
struct MeetingPlaces {
    std::vector<MeetingPlace> places{};
    std::int32_t points = 0;
};
MeetingPlaces meetingPlaces(const Symmetry &symmetry, std::int32_t microBatches);

/// How long each meeting takes: by point, in order. Empty where nothing changes what is compiled.
using MeetingDurations = std::vector<std::vector<std::int64_t>>;

} // namespace planloom
