#pragma once

#include "engine/gesture/place_text.h"
#include "engine/hardware/cluster.h"
#include "engine/plan/plan.h"
#include "engine/simulate/summary.h"
#include "widgets/dag/dag_scene.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

// The device shelf that slides in along the bottom of the canvas while something is dragged to a device: what
// stands on it and where, without a window.

/// One place on the shelf.
struct ShelfTile {
    PlaceTarget target{};
    std::string label{}; ///< "GPU 3", "host 0", "tp 2", "Free".
    std::string detail{}; ///< "0-7" for what stands for several devices; may be empty.
    std::vector<DeviceId> devices{}; ///< It stands for; none for Free.
};

/// Tiles of a design: Free, then each device; beyond `kMostSingleTiles` devices the hosts, and the places of
/// each mesh axis, instead.
constexpr std::int32_t kMostSingleTiles = 16;
std::vector<ShelfTile> shelfTiles(const PlaceWorld &world);

/// Where tiles lie. All in pixels of the canvas.
struct ShelfLayout {
    SceneRect band{}; ///< The whole shelf.
    double tileWidth = 96;
    double gap = 8;
    double scroll = 0; ///< Pixels that the tiles are moved to the left.
    std::int32_t count = 0;

    SceneRect rectOf(std::int32_t tile) const;
    /// -1 beside the tiles.
    std::int32_t tileAt(double x, double y) const;
    double mostScroll() const;
    /// Moves the tiles by pixels, as far as there are tiles.
    void scrollBy(double pixels);
};
ShelfLayout layOutShelf(
    std::int32_t tiles, double windowWidth, double windowHeight, double tileWidth, double height);

/// How full a device would be.
enum class LoadState : std::uint8_t { Unknown, Fits, Tight, Over };
struct ShelfLoad {
    LoadState state = LoadState::Unknown;
    double share = 0; ///< Of the memory; may exceed 1.
    std::string text{}; ///< "63/80 GiB"; empty if unknown.
    friend bool operator==(const ShelfLoad &, const ShelfLoad &) = default;
};
/// The fullest of a tile's devices.
ShelfLoad loadOf(const ShelfTile &tile, const TimelineSummary *summary, const Cluster &cluster);
/// "63/80 GiB": both in the larger one's unit, three digits at most.
std::string loadText(double used, double capacity);

/// By device: forward operators with a part there. O(operators x devices of each)
std::vector<std::int32_t> operatorsOnDevices(const Plan &plan);
/// The most forward operators on one of each tile's devices. O(tiles x devices)
std::vector<std::int32_t> operatorCounts(
    const std::vector<ShelfTile> &tiles, const std::vector<std::int32_t> &operatorsOnDevice);

} // namespace planloom
