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

/// Where a row covers nothing of what is `taken`: as little further from where it is as possible, up or down
/// first. Where there is no such place within some rows, the one that covers least.
double freeHeight(SceneRect row, bool down, double room, const std::vector<SceneRect> &taken)
{
    constexpr int kMostSteps = 48;
    const double step = row.height / 4;
    const double from = row.y;
    double best = from;
    double least = -1;
    for (int i = 0; i <= 2 * kMostSteps; ++i) {
        const bool along = i <= kMostSteps;
        row.y = from + (along == down ? step : -step) * (along ? i : i - kMostSteps);
        if (row.y < 0 || row.bottom() > room)
            continue;
        double covered = 0;
        for (const SceneRect &other : taken)
            covered += std::max(0.0, std::min(row.right(), other.right()) - std::max(row.x, other.x))
                * std::max(0.0, std::min(row.bottom(), other.bottom()) - std::max(row.y, other.y));
        if (least < 0 || covered < least) {
            least = covered;
            best = row.y;
        }
        if (covered == 0)
            break;
    }
    return best;
}

} // namespace

double chipsAway(const SceneRect &box)
{
    return std::clamp(box.height / 4, 4.0, 16.0);
}

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
    const std::vector<double> &widths, double windowWidth, double windowHeight, const ChipMetrics &metrics,
    std::vector<SceneRect> taken)
{
    std::vector<PlacedChip> placed;
    if (!node.intersects({0, 0, windowWidth, windowHeight}))
        return placed;
    taken.push_back(node);
    const bool bar = node.width < metrics.leastNodeWidth;
    const auto row = [&](bool output) {
        const std::size_t first = placed.size();
        double x = 0;
        std::int32_t lastSlot = -1;
        for (std::size_t i = 0; i < chips.size(); ++i) {
            if (!bar && chips[i].output != output)
                continue;
            const std::int32_t slot = chips[i].slot + (chips[i].output ? 1000 : 0);
            if (lastSlot >= 0)
                x += slot != lastSlot ? 3 * metrics.gap : metrics.gap; // a wider gap between tensors
            lastSlot = slot;
            const double width = widths[i] + 2 * metrics.padding;
            placed.push_back({static_cast<std::int32_t>(i), {x, 0, width, metrics.height}});
            x += width;
        }
        if (placed.size() == first)
            return;
        const double away = chipsAway(node) + (output ? 0 : metrics.height);
        SceneRect whole{within(node.x + (node.width - x) / 2, x, windowWidth),
            within(output ? node.bottom() + away : node.y - away, metrics.height, windowHeight), x,
            metrics.height};
        whole.y = freeHeight(whole, output, windowHeight, taken);
        for (std::size_t i = first; i < placed.size(); ++i) {
            placed[i].rect.x += whole.x;
            placed[i].rect.y = whole.y;
        }
        taken.push_back(whole);
    };
    row(false);
    if (!bar)
        row(true);
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
    constexpr double kAway = 6;
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
