#include "engine/traces/trace_cells.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr std::size_t kLooksBack = 64; ///< At events that began before a place and may last beyond it.
constexpr std::size_t kLooksInRun = 32; ///< For the longest event of a run.

/// The first event of [from, to) that begins at `time` or later.
std::size_t firstFrom(const RankTrace &rank, std::size_t from, std::size_t to, double time)
{
    const auto begin = rank.events.begin();
    return static_cast<std::size_t>(
        std::lower_bound(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to),
            time, [](const TraceEvent &event, double at) { return static_cast<double>(event.start) < at; })
        - begin);
}

} // namespace

std::vector<TraceCell> cellsOf(
    const RankTrace &rank, std::size_t lane, std::int64_t begin, double perPixel, int width)
{
    std::vector<TraceCell> cells;
    const std::size_t first = rank.laneBegin[lane];
    const std::size_t last = rank.laneBegin[lane + 1];
    const auto pixelOf = [&](std::int64_t time) { return static_cast<double>(time - begin) / perPixel; };
    std::size_t i = firstFrom(rank, first, last, static_cast<double>(begin));
    for (std::size_t back = std::min(kLooksBack, i - first); back > 0; --back)
        if (const TraceEvent &event = rank.events[i - back]; event.end() > begin)
            cells.push_back({static_cast<float>(std::max(0.0, pixelOf(event.start))),
                static_cast<float>(std::min(pixelOf(event.end()), static_cast<double>(width))),
                static_cast<std::uint32_t>(i - back), false});
    while (i < last) {
        const TraceEvent &event = rank.events[i];
        const double left = pixelOf(event.start);
        if (left >= width)
            break;
        const double right = pixelOf(event.end());
        if (right - left >= 1) {
            cells.push_back(
                {static_cast<float>(left), static_cast<float>(std::min(right, static_cast<double>(width))),
                    static_cast<std::uint32_t>(i), false});
            ++i;
            continue;
        }
        // All that begin in this pixel are one.
        const double pixel = std::floor(left);
        const std::size_t next =
            std::max(i + 1, firstFrom(rank, i, last, static_cast<double>(begin) + (pixel + 1) * perPixel));
        std::size_t longest = i;
        const std::size_t stride = std::max<std::size_t>(1, (next - i) / kLooksInRun);
        for (std::size_t k = i; k < next; k += stride)
            if (rank.events[k].duration > rank.events[longest].duration)
                longest = k;
        const double end =
            std::max(pixel + 1, std::min(pixelOf(rank.events[longest].end()), static_cast<double>(width)));
        cells.push_back({static_cast<float>(pixel), static_cast<float>(end),
            static_cast<std::uint32_t>(longest), next - i > 1});
        i = next;
    }
    return cells;
}

std::optional<std::uint32_t> eventAt(const RankTrace &rank, std::size_t lane, std::int64_t time)
{
    const std::size_t first = rank.laneBegin[lane];
    std::size_t i = firstFrom(rank, first, rank.laneBegin[lane + 1], static_cast<double>(time) + 1);
    std::optional<std::uint32_t> found;
    for (std::size_t back = 0; back < kLooksBack && i > first; ++back) {
        const TraceEvent &event = rank.events[--i];
        if (event.end() > time && (!found || event.duration < rank.events[*found].duration))
            found = static_cast<std::uint32_t>(i);
    }
    return found;
}

} // namespace planloom
