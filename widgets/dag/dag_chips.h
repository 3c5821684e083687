#pragma once

#include "engine/gesture/gesture.h"
#include "widgets/dag/dag_scene.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

// The dimension chips of the selected operator's box: where they lie, and how far they were pulled. In pixels
// of the canvas, without a window.

/// Sizes of chips; they follow the font, not the zoom, so that chips can be read and caught at any zoom.
struct ChipMetrics {
    double height = 18;
    double padding = 6; ///< Beside the text.
    double gap = 4; ///< Between chips.
    double leastNodeWidth = 60; ///< Narrower nodes have their chips in a bar above them.
};

/// A chip on the canvas.
struct PlacedChip {
    std::int32_t index = 0; ///< Into the chips given.
    SceneRect rect{};
    friend bool operator==(const PlacedChip &, const PlacedChip &) = default;
};

/// What is written on a chip: its label, with a sigma in front of what is summed, and its meaning. Locks are
/// drawn, not written.
std::string chipText(const DimensionChip &chip);
/// True for chips that are drawn with a lock.
bool isLocked(const DimensionChip &chip);

/// What a box needs above and below it for what straddles its border: devices, pins.
double chipsAway(const SceneRect &box);

/// Places chips beside a node: inputs in a row above it, outputs in one below; all of them in one above nodes
/// that are too narrow. A row stands as near as it can without covering anything; kept within a window of the
/// given size. None for a node out of sight.
/// @param node  in pixels of the canvas
/// @param widths  of the chips' texts (with their locks), by chip
/// @param taken  what else is in sight; the node itself need not be in it
std::vector<PlacedChip> placeChips(const std::vector<DimensionChip> &chips, const SceneRect &node,
    const std::vector<double> &widths, double windowWidth, double windowHeight, const ChipMetrics &metrics,
    std::vector<SceneRect> taken = {});
/// Index into the chips; -1 if there is none.
std::int32_t chipAt(const std::vector<PlacedChip> &placed, double x, double y);

/// Pixels a chip is pulled before it does anything.
constexpr double kPullStart = 6;
/// Pixels of pulling for one more count, and for one that is the size of a mesh axis (a wider detent).
constexpr double kPullStep = 26;
constexpr double kPullAxisStep = 44;

/// The number of parts that a chip pulled by `distance` pixels asks for: the first of `counts` (ascending) at
/// once, then the next ones. 1 if the chip was hardly moved or nothing can be split.
std::int32_t snapParts(
    double distance, const std::vector<std::int32_t> &counts, const std::vector<MeshAxis> &mesh);
/// The count `by` places further than `parts`, which need not be one; stays within the counts.
std::int32_t stepParts(std::int32_t parts, const std::vector<std::int32_t> &counts, std::int32_t by);
/// Numbers of copies or of value parts worth offering: divisors of the devices and sizes of mesh axes,
/// from 2.
std::vector<std::int32_t> replicaCounts(std::int32_t deviceCount, const std::vector<MeshAxis> &mesh);

/// Indices [begin, end) of one slice.
struct SliceRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    friend bool operator==(const SliceRange &, const SliceRange &) = default;
};
/// The slices of a dimension cut in `parts`; at most the first `most`.
std::vector<SliceRange> sliceRanges(std::int64_t size, std::int32_t parts, std::int32_t most);

/// Where the ghosts of `count` slices lie beside a node: a grid of cells that grows from its top (inputs) or
/// bottom edge (outputs), within the window.
std::vector<SceneRect> placeSlices(const SceneRect &node, std::int32_t count, bool below, double cellWidth,
    double cellHeight, double windowWidth, double windowHeight);

/// Where a tag of a size stands so that nothing of it is cut off: right below the pointer, else on the side
/// that has room.
SceneRect placeTag(double x, double y, double width, double height, double windowWidth, double windowHeight);

} // namespace planloom
