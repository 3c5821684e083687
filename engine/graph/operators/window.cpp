#include "engine/graph/operators/window.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

std::int64_t dividedDown(std::int64_t value, std::int64_t by)
{
    return value >= 0 ? value / by : -((-value + by - 1) / by);
}

Range joined(Range a, Range b)
{
    return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// A piece of [0, extent) of at least one element, the nearest if `range` lies outside.
Range within(Range range, std::int64_t extent)
{
    const std::int64_t begin = std::clamp<std::int64_t>(range.begin, 0, extent - 1);
    return {begin, std::clamp<std::int64_t>(range.end, begin + 1, extent)};
}

Range readBy(const Window &window, Range windows)
{
    return within(
        {windows.begin * window.stride - window.pad,
            (windows.end - 1) * window.stride + (window.kernel - 1) * window.dilation + 1 - window.pad},
        window.extent);
}

Range shareOf(const Window &window, std::int64_t count, Range windows)
{
    return {windows.begin * window.extent / count, windows.end * window.extent / count};
}

/// The windows that read one of the elements, and `windows`.
Range metBy(const Window &window, std::int64_t count, Range windows)
{
    const Range share = shareOf(window, count, windows);
    const std::int64_t reach = (window.kernel - 1) * window.dilation;
    // The first whose last element is not before the share, the last whose first is not behind it.
    const std::int64_t first = -dividedDown(-(share.begin + window.pad - reach), window.stride);
    const std::int64_t last = dividedDown(share.end - 1 + window.pad, window.stride);
    const Range reading{std::max<std::int64_t>(first, 0), std::min(last + 1, count)};
    return reading.begin < reading.end ? joined(reading, windows) : windows;
}

} // namespace

const char *nameOf(WindowReach reach)
{
    constexpr std::array<const char *, kReachCount> kNames{
        "", "windows", "share", "met", "around", "covered"};
    return kNames[static_cast<std::size_t>(reach)];
}

bool isSane(const Window &window, std::int64_t windows)
{
    const auto counts = [](std::int64_t value) { return value >= 1 && value <= kFarthestWindow; };
    return counts(window.extent) && counts(window.kernel) && counts(window.stride) && counts(window.dilation)
        && window.pad >= -kFarthestWindow && window.pad <= kFarthestWindow && windows >= 1
        && windows <= 2 * window.extent;
}

Range reached(const Window &window, std::int64_t count, Range windows, WindowReach reach)
{
    if (reach == WindowReach::Own)
        return windows;
    const bool ofWindows = reach == WindowReach::Met;
    if (windows == Range{0, count})
        return {0, ofWindows ? count : window.extent};
    if (windows.size() <= 0)
        return {0, 0};
    switch (reach) {
    case WindowReach::Windows:
        return readBy(window, windows);
    case WindowReach::Share:
        return shareOf(window, count, windows);
    case WindowReach::Met:
        return metBy(window, count, windows);
    case WindowReach::Around:
        return joined(readBy(window, metBy(window, count, windows)), shareOf(window, count, windows));
    case WindowReach::Covered:
        return joined(readBy(window, windows), shareOf(window, count, windows));
    case WindowReach::Own:
        break;
    }
    return windows;
}

} // namespace planloom
