#pragma once

#include "engine/schedule/search/block_starts.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// A box of a picture of lanes.
struct PictureBox {
    std::size_t lane = 0; ///< Index of its name.
    std::int64_t start = 0;
    std::int64_t end = 0; ///< As `start`: it is not drawn.
    std::string kind{}; ///< Its colour, and the legend's word.
    std::string label{}; ///< Where there is room.
    std::string title{}; ///< What it says when pointed at, before its times.
};

/// Lanes of boxes as an SVG picture, with a legend of the kinds below.
/// @param lanes  their names, from the top
std::string lanesToSvg(const std::vector<std::string> &lanes, const std::vector<PictureBox> &boxes);

/// A schedule as an SVG picture: a lane for each queue of each device that something runs on, a box for each
/// block, coloured by its kind, with its micro-batch where there is room; below, the kinds. Boxes say what
/// they are when pointed at. Of a valid schedule.
std::string scheduleToSvg(const Placement &placement, const std::vector<BlockStart> &starts);

} // namespace planloom
