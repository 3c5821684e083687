#pragma once

#include <cstdint>

namespace planloom {

/// What a drag with the left button does on the canvases; the tool bar shows it, both canvases have the same
/// one at a time.
enum class CanvasTool : std::uint8_t {
    Select, ///< Drags on things shape the plan, drags on empty space draw a box.
    Measure, ///< Drags measure a time on the timeline; on the DAG, the path between two operators.
    Pan, ///< Drags move the view, wherever they begin.
};

} // namespace planloom
