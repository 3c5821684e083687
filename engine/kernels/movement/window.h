#pragma once

#include "engine/graph/attributes.h"
#include "engine/graph/shape.h"
#include "engine/kernels/kernel_call.h"

#include <cstdint>

namespace planloom {

/// How windows lie over the dimensions of a tensor behind its first two (convolution and pooling). Of a part,
/// the windows that it has and the elements that it has of what they lie over; taps elsewhere are outside, as
/// those in the padding are.
struct WindowGeometry {
    Shape in{}; ///< Extents the windows lie over.
    Shape out{}; ///< Number of windows along each.
    Shape first{}; ///< The first window's number along each, in the whole operator.
    Shape inFirst{}; ///< The first element's.
    Shape inWhole{}; ///< Extents of the whole operator.
    Shape kernel{};
    Shape strides{};
    Shape dilations{};
    Shape pads{}; ///< At the beginning of each.
    Shape padsAfter{};

    std::size_t rank() const { return in.size(); }
    std::int64_t inCount() const { return elementCount(in); }
    std::int64_t outCount() const { return elementCount(out); }
    std::int64_t kernelCount() const { return elementCount(kernel); }
    /// The element of the whole that tap `tap` of the part's window `position` reads along dimension `d`.
    std::int64_t elementAt(std::size_t d, std::int64_t position, std::int64_t tap) const
    {
        return (first[d] + position) * strides[d] - pads[d] + tap * dilations[d];
    }
};

/// @param in  the tensor that the windows lie over, or a part of it; @param out  that of a window's elements
inline WindowGeometry windowGeometry(
    const Attributes &attributes, const Buffer &in, const Buffer &out, Shape kernel)
{
    WindowGeometry g;
    g.kernel = std::move(kernel);
    const std::size_t rank = in.shape.size() - 2;
    for (std::size_t d = 2; d < in.shape.size(); ++d) {
        g.in.push_back(in.shape[d]);
        g.out.push_back(out.shape[d]);
        g.first.push_back(firstOf(out, d));
        g.inFirst.push_back(firstOf(in, d));
        g.inWhole.push_back(wholeExtent(in, d));
    }
    g.strides = attributes.integers("strides");
    g.strides.resize(rank, 1);
    g.dilations = attributes.integers("dilations");
    g.dilations.resize(rank, 1);
    Shape pads = attributes.integers("pads");
    pads.resize(2 * rank, 0);
    g.pads.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
    g.padsAfter.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
    return g;
}

/// Counts through all indices below `extents`, last dimension fastest. @return false after the last
inline bool advance(Shape &counter, const Shape &extents)
{
    for (std::size_t d = counter.size(); d-- > 0;) {
        if (++counter[d] < extents[d])
            return true;
        counter[d] = 0;
    }
    return false;
}

/// Calls visit(tap, offset) for the elements of the window at `position` that lie inside what the part has.
template<typename Visit> void forEachTap(const WindowGeometry &g, const Shape &position, Visit &&visit)
{
    Shape tap(g.rank(), 0);
    std::int64_t number = 0;
    do {
        std::int64_t offset = 0;
        bool inside = true;
        for (std::size_t d = 0; d < g.rank() && inside; ++d) {
            const std::int64_t at = g.elementAt(d, position[d], tap[d]) - g.inFirst[d];
            inside = at >= 0 && at < g.in[d];
            offset = offset * g.in[d] + at;
        }
        if (inside)
            visit(number, offset);
        ++number;
    } while (advance(tap, g.kernel));
}

} // namespace planloom
