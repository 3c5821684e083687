#pragma once

#include "engine/graph/attributes.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// How windows lie over the dimensions of a tensor behind its first two (convolution and pooling).
struct WindowGeometry {
    Shape in{}; ///< Extents the windows lie over.
    Shape out{}; ///< Number of windows along each.
    Shape kernel{};
    Shape strides{};
    Shape dilations{};
    Shape pads{}; ///< At the beginning of each.
    Shape padsAfter{};

    std::size_t rank() const { return in.size(); }
    std::int64_t inCount() const { return elementCount(in); }
    std::int64_t outCount() const { return elementCount(out); }
    std::int64_t kernelCount() const { return elementCount(kernel); }
};

inline WindowGeometry windowGeometry(
    const Attributes &attributes, const Shape &in, const Shape &out, Shape kernel)
{
    WindowGeometry g;
    g.in.assign(in.begin() + 2, in.end());
    g.out.assign(out.begin() + 2, out.end());
    g.kernel = std::move(kernel);
    const std::size_t rank = g.in.size();
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

/// Calls visit(tap, offset) for the elements of the window at `position` that lie inside the input.
template<typename Visit> void forEachTap(const WindowGeometry &g, const Shape &position, Visit &&visit)
{
    Shape tap(g.rank(), 0);
    std::int64_t number = 0;
    do {
        std::int64_t offset = 0;
        bool inside = true;
        for (std::size_t d = 0; d < g.rank() && inside; ++d) {
            const std::int64_t at = position[d] * g.strides[d] - g.pads[d] + tap[d] * g.dilations[d];
            inside = at >= 0 && at < g.in[d];
            offset = offset * g.in[d] + at;
        }
        if (inside)
            visit(number, offset);
        ++number;
    } while (advance(tap, g.kernel));
}

} // namespace planloom
