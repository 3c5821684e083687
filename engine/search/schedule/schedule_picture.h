#pragma once

#include "engine/search/schedule/block_starts.h"

#include <string>
#include <vector>

namespace planloom {

/// A schedule as an SVG picture: a lane for each queue of each device that something runs on, a box for each
/// block, coloured by its kind, with its micro-batch where there is room; below, the kinds. Boxes say what
/// they are when pointed at. Of a valid schedule.
std::string scheduleToSvg(const Placement &placement, const std::vector<BlockStart> &starts);

} // namespace planloom
