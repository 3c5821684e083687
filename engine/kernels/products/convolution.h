#pragma once

#include "engine/graph/operator.h"
#include "engine/kernels/movement/window.h"

#include <algorithm>
#include <cstdint>

namespace planloom {

/// A convolution from x [n c ..] to y [n o ..] with weights [o c/g ..]. A transposed convolution is the same
/// with the parts of x and y exchanged.
struct Convolution {
    WindowGeometry window{};
    std::int64_t n = 1;
    std::int64_t groups = 1; ///< In this part.
    std::int64_t c = 1; ///< Per group.
    std::int64_t o = 1; ///< Per group.

    std::int64_t rows() const { return c * window.kernelCount(); } ///< Of the unfolded input.
    std::int64_t xGroup() const { return c * window.inCount(); }
    std::int64_t yGroup() const { return o * window.outCount(); }
    /// True if every window is one element of the input, in order: nothing to unfold.
    bool isPointwise() const
    {
        if (window.kernelCount() != 1 || window.in != window.out)
            return false;
        for (std::size_t d = 0; d < window.rank(); ++d) {
            if (window.strides[d] != 1 || window.pads[d] != 0 || window.first[d] != window.inFirst[d])
                return false;
        }
        return true;
    }
};

/// Of a part, by its buffers.
inline Convolution convolutionOf(const Operator &op, const Buffer &x, const Buffer &w, const Buffer &y)
{
    Convolution conv;
    conv.window = windowGeometry(op.attributes, x, y, Shape(w.shape.begin() + 2, w.shape.end()));
    conv.n = x.shape[0];
    conv.c = w.shape[1];
    conv.groups = conv.c == 0 ? 1 : std::max<std::int64_t>(1, x.shape[1] / conv.c);
    conv.o = w.shape[0] / conv.groups;
    return conv;
}

} // namespace planloom
