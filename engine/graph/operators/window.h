#pragma once

#include "engine/graph/operators/mask.h"

#include <cstdint>

namespace planloom {

/// How windows lie over a longer dimension of `extent` elements, as those of a convolution or a pool: window
/// i reads the elements i * stride - pad + t * dilation, for t below `kernel`, that are within the extent.
///
///     pad 1   stride 2, kernel 3
///     .  0  1  2  3  4  5  6  7          elements
///     [--0--]     [--2--]                windows
///           [--1--]     [--3--]
///
/// A part of an operator has windows [a, b). What it reads of the elements overlaps with what its neighbours
/// read (their halo); what it makes of them is its share, proportional to its windows, and for that it needs
/// windows of its neighbours. All of a dimension is in reach of all windows, even elements that none reads.
struct Window {
    std::int32_t dimension = -1; ///< The identifier that counts the windows.
    std::int64_t extent = 0;
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t pad = 0; ///< Before the first element; negative where the first window begins behind it.
    friend bool operator==(const Window &, const Window &) = default;
};

/// What a part that has some of the windows has of a dimension.
enum class WindowReach : std::uint8_t {
    Own, ///< The identifier's own range, as of any identifier.
    Windows, ///< The elements from the first that its windows read to the last.
    Share, ///< The elements in proportion to its windows: shares tile the dimension.
    Met, ///< Its windows, and those that read of its share.
    Around, ///< The elements that the windows of Met read.
    Covered, ///< Those of Windows, and those of Share.
};

constexpr int kReachCount = 6;
const char *nameOf(WindowReach reach); ///< "windows", "share", "met", "around", "covered"; "" for Own.

/// Greatest extent, kernel, stride, dilation and distance of padding that annotations may have.
constexpr std::int64_t kFarthestWindow = std::int64_t{1} << 30;

/// True if all numbers are in the range that `reached` can take, and there are at most two windows an
/// element.
bool isSane(const Window &window, std::int64_t windows);

/// How many windows a part must have for its share to have an element.
inline std::int64_t fewestWindows(const Window &window, std::int64_t count)
{
    return count > window.extent ? 2 : 1;
}

/// What a part that has windows [begin, end) of `count` has of a dimension. Not empty for as many windows as
/// `fewestWindows` says.
Range reached(const Window &window, std::int64_t count, Range windows, WindowReach reach);

} // namespace planloom
