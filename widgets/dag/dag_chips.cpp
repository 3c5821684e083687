#include "widgets/dag/dag_chips.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// `from` moved as little as possible so that `size` of it lies in [0, room]; the start wins if it does not
/// fit.
double within(double from, double size, double room)
{
    return std::max(0.0, std::min(from, room - size));
}

} // namespace

std::string chipText(const DimensionChip &chip)
{
    const std::string label = chip.mark == DimensionMark::Reduce ? "Σ " + chip.label : chip.label;
    return chip.meaning.empty() ? label : label + " " + chip.meaning;
}

bool isLocked(const DimensionChip &chip)
{
    return chip.mark == DimensionMark::Frozen || !chip.locked.empty();
}

std::vector<PlacedChip> placeChips(const std::vector<DimensionChip> &chips, const SceneRect &node,
    const std::vector<double> &widths, double windowWidth, double windowHeight, const ChipMetrics &metrics)
{
    std::vector<PlacedChip> placed;
    if (!node.intersects({0, 0, windowWidth, windowHeight}))
        return placed;
    const bool bar = node.width < metrics.leastNodeWidth;
    const auto row = [&](bool output, double y) {
        double total = -metrics.gap;
        double slots = 0; // a wider gap between tensors
        std::int32_t lastSlot = -1;
        for (std::size_t i = 0; i < chips.size(); ++i) {
            if (!bar && chips[i].output != output)
                continue;
            const std::int32_t slot = chips[i].slot + (chips[i].output ? 1000 : 0);
            if (lastSlot >= 0 && slot != lastSlot)
                slots += 2 * metrics.gap;
            lastSlot = slot;
            total += widths[i] + 2 * metrics.padding + metrics.gap;
        }
        // Left on the node while it is wide enough, for devices are written at its right; else around its
        // middle.
        const bool fits = total + slots <= node.width - 8;
        double x = fits ? node.x + 8 : node.x + (node.width - total - slots) / 2;
        x = within(x, total + slots, windowWidth);
        lastSlot = -1;
        for (std::size_t i = 0; i < chips.size(); ++i) {
            if (!bar && chips[i].output != output)
                continue;
            const std::int32_t slot = chips[i].slot + (chips[i].output ? 1000 : 0);
            if (lastSlot >= 0 && slot != lastSlot)
                x += 2 * metrics.gap;
            lastSlot = slot;
            const double width = widths[i] + 2 * metrics.padding;
            placed.push_back({static_cast<std::int32_t>(i), {x, y, width, metrics.height}});
            x += width + metrics.gap;
        }
    };
    if (bar) {
        row(false, within(node.y - metrics.height - 6, metrics.height, windowHeight));
        return placed;
    }
    // Mostly outside, so that the node's own text stays readable.
    row(false, within(node.y - metrics.height + 4, metrics.height, windowHeight));
    row(true, within(node.bottom() - 4, metrics.height, windowHeight));
    return placed;
}

std::int32_t chipAt(const std::vector<PlacedChip> &placed, double x, double y)
{
    for (const auto &chip : placed) {
        if (chip.rect.contains(x, y))
            return chip.index;
    }
    return -1;
}

std::int32_t snapParts(
    double distance, const std::vector<std::int32_t> &counts, const std::vector<MeshAxis> &mesh)
{
    if (distance <= kPullStart || counts.empty())
        return 1;
    double left = distance - kPullStart;
    for (const auto count : counts) {
        const bool axis =
            std::any_of(mesh.begin(), mesh.end(), [&](const MeshAxis &each) { return each.size == count; });
        left -= axis ? kPullAxisStep : kPullStep;
        if (left < 0)
            return count;
    }
    return counts.back();
}

std::int32_t stepParts(std::int32_t parts, const std::vector<std::int32_t> &counts, std::int32_t by)
{
    if (counts.empty())
        return parts;
    const auto next = by > 0 ? std::upper_bound(counts.begin(), counts.end(), parts)
                             : std::lower_bound(counts.begin(), counts.end(), parts);
    auto place = static_cast<std::int64_t>(next - counts.begin()) + (by > 0 ? by - 1 : by);
    place = std::clamp<std::int64_t>(place, 0, static_cast<std::int64_t>(counts.size()) - 1);
    return counts[static_cast<std::size_t>(place)];
}

std::vector<std::int32_t> replicaCounts(std::int32_t deviceCount, const std::vector<MeshAxis> &mesh)
{
    std::vector<std::int32_t> counts;
    for (std::int32_t count = 2; count <= deviceCount && counts.size() < 32; ++count) {
        if (deviceCount % count == 0)
            counts.push_back(count);
    }
    for (const auto &axis : mesh) {
        if (axis.size >= 2)
            counts.push_back(axis.size);
    }
    if (counts.empty())
        counts = {2, 4, 8};
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
}

std::vector<SliceRange> sliceRanges(std::int64_t size, std::int32_t parts, std::int32_t most)
{
    std::vector<SliceRange> ranges;
    for (std::int32_t i = 0; i < std::min(parts, most); ++i)
        ranges.push_back({size * i / parts, size * (i + 1) / parts});
    return ranges;
}

std::vector<SceneRect> placeSlices(const SceneRect &node, std::int32_t count, bool below, double cellWidth,
    double cellHeight, double windowWidth, double windowHeight)
{
    std::vector<SceneRect> cells;
    if (count <= 0)
        return cells;
    constexpr double kGap = 4;
    const double room = std::max(node.width, std::min(windowWidth * 0.6, 4 * (cellWidth + kGap)));
    const auto columns =
        std::clamp(static_cast<std::int32_t>(std::floor((room + kGap) / (cellWidth + kGap))), 1, count);
    const std::int32_t rows = (count + columns - 1) / columns;
    const double width = columns * (cellWidth + kGap) - kGap;
    const double height = rows * (cellHeight + kGap) - kGap;
    const double x = within(node.x + (node.width - width) / 2, width, windowWidth);
    constexpr double kAway = 22; // behind the chips
    const double y = within(below ? node.bottom() + kAway : node.y - kAway - height, height, windowHeight);
    for (std::int32_t i = 0; i < count; ++i)
        cells.push_back({x + (i % columns) * (cellWidth + kGap), y + (i / columns) * (cellHeight + kGap),
            cellWidth, cellHeight});
    return cells;
}

SceneRect placeTag(double x, double y, double width, double height, double windowWidth, double windowHeight)
{
    constexpr double kAway = 16;
    SceneRect rect{x + kAway, y + kAway, width, height};
    if (rect.right() > windowWidth)
        rect.x = x - kAway - width;
    if (rect.bottom() > windowHeight)
        rect.y = y - kAway - height;
    rect.x = within(rect.x, width, windowWidth);
    rect.y = within(rect.y, height, windowHeight);
    return rect;
}

} // namespace planloom
