#include "widgets/dag/device_shelf.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace planloom {

namespace {

constexpr double kTight = 0.9; ///< Share of the memory from which a device is called nearly full.

/// Three digits at most, no zeros at the end.
std::string shortNumber(double value)
{
    std::array<char, 32> text{};
    const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
    std::string result(text.data());
    if (result.find('.') != std::string::npos) {
        result.erase(result.find_last_not_of('0') + 1);
        if (result.back() == '.')
            result.pop_back();
    }
    return result;
}

} // namespace

std::vector<ShelfTile> shelfTiles(const PlaceWorld &world)
{
    std::vector<ShelfTile> tiles;
    ShelfTile free;
    free.target.free = true;
    free.label = "Free";
    tiles.push_back(std::move(free));
    const auto add = [&](PlaceTarget target, std::string label) {
        ShelfTile tile;
        tile.devices = devicesOf(target, world);
        tile.target = std::move(target);
        tile.label = std::move(label);
        if (tile.devices.size() > 1)
            tile.detail = rangesOf(tile.devices, 1);
        tiles.push_back(std::move(tile));
    };
    if (world.deviceCount <= kMostSingleTiles) {
        for (std::int32_t device = 0; device < world.deviceCount; ++device) {
            PlaceTarget target;
            target.devices = {DeviceId{device}};
            add(std::move(target), world.device + " " + std::to_string(device));
        }
        return tiles;
    }
    for (const auto &axis : world.mesh) {
        for (std::int32_t index = 0; axis.size > 1 && index < axis.size; ++index) {
            PlaceTarget target;
            target.coordinates = {{axis.name, index}};
            add(std::move(target), axis.name + " " + std::to_string(index));
        }
    }
    for (std::int32_t host = 0; host < world.hostCount(); ++host) {
        PlaceTarget target;
        target.devices = world.devicesOfHost(host);
        add(std::move(target), "host " + std::to_string(host));
    }
    return tiles;
}

SceneRect ShelfLayout::rectOf(std::int32_t tile) const
{
    return {band.x + gap + tile * (tileWidth + gap) - scroll, band.y + gap, tileWidth, band.height - 2 * gap};
}

std::int32_t ShelfLayout::tileAt(double x, double y) const
{
    if (!band.contains(x, y))
        return -1;
    const double along = x - band.x - gap + scroll;
    const auto tile = static_cast<std::int32_t>(std::floor(along / (tileWidth + gap)));
    return tile >= 0 && tile < count && rectOf(tile).contains(x, y) ? tile : -1;
}

double ShelfLayout::mostScroll() const
{
    return std::max(0.0, gap + count * (tileWidth + gap) - band.width);
}

void ShelfLayout::scrollBy(double pixels)
{
    scroll = std::clamp(scroll + pixels, 0.0, mostScroll());
}

ShelfLayout layOutShelf(
    std::int32_t tiles, double windowWidth, double windowHeight, double tileWidth, double height)
{
    ShelfLayout layout;
    layout.count = tiles;
    layout.tileWidth = tileWidth;
    height = std::min(height, windowHeight * 0.6);
    layout.band = {0, windowHeight - height, windowWidth, height};
    return layout;
}

ShelfLoad loadOf(const ShelfTile &tile, const TimelineSummary *summary, const Cluster &cluster)
{
    ShelfLoad load;
    if (summary == nullptr)
        return load;
    double most = 0; // of the device that is fullest
    double capacity = 0;
    for (const auto device : tile.devices) {
        const double memory = cluster.deviceAt(device).memory.value;
        if (at(device.index) >= summary->devices.size() || memory <= 0)
            continue;
        const auto peak = static_cast<double>(summary->devices[at(device.index)].peak.count);
        if (capacity == 0 || peak / memory > most / capacity) {
            most = peak;
            capacity = memory;
        }
    }
    if (capacity == 0)
        return load;
    load.share = most / capacity;
    load.state = load.share > 1 ? LoadState::Over : load.share >= kTight ? LoadState::Tight : LoadState::Fits;
    load.text = loadText(most, capacity);
    return load;
}

std::string loadText(double used, double capacity)
{
    static constexpr std::array<const char *, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double unit = 1;
    std::size_t name = 0;
    while (name + 1 < kUnits.size() && std::max(used, capacity) / unit >= 1024) {
        unit *= 1024;
        ++name;
    }
    return shortNumber(used / unit) + "/" + shortNumber(capacity / unit) + " " + kUnits[name];
}

std::vector<std::int32_t> operatorsOnDevices(const Plan &plan)
{
    std::vector<std::int32_t> counts(at(std::max(0, plan.deviceCount)), 0);
    if (!plan.graph || plan.decisions.size() != plan.graph->operators.size())
        return counts;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        if (plan.graph->operators[i].direction != Direction::Forward)
            continue;
        const auto &devices = plan.decisions[i].devices;
        for (std::size_t part = 0; part < devices.size(); ++part) {
            // Parts on one device follow one another mostly: one operator counts once there.
            const bool again = part > 0 && devices[part] == devices[part - 1];
            if (!again && devices[part].valid() && at(devices[part].index) < counts.size())
                ++counts[at(devices[part].index)];
        }
    }
    return counts;
}

std::vector<std::int32_t> operatorCounts(
    const std::vector<ShelfTile> &tiles, const std::vector<std::int32_t> &operatorsOnDevice)
{
    std::vector<std::int32_t> counts(tiles.size(), 0);
    for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
        for (const auto device : tiles[tile].devices) {
            if (at(device.index) < operatorsOnDevice.size())
                counts[tile] = std::max(counts[tile], operatorsOnDevice[at(device.index)]);
        }
    }
    return counts;
}

} // namespace planloom
