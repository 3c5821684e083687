#pragma once

#include "engine/cuda/backend/cuda_queue.h"
#include "engine/graph/operators/mask.h"
#include "engine/kernels/iteration.h"

#include <array>
#include <optional>
#include <utility>

namespace planloom {

/// The loops over `extents` with N operands, those without a gap between them made one; nothing if that are
/// more than a kernel takes. Extents of 0 must have been left out before.
template<int N>
std::optional<Nest<N>> nestOf(
    const Shape &extents, const std::array<Shape, static_cast<std::size_t>(N)> &strides)
{
    Nest<N> nest;
    for (std::size_t d = 0; d < extents.size(); ++d) {
        if (extents[d] == 1)
            continue;
        bool merged = nest.loops > 0;
        for (std::size_t n = 0; merged && n < strides.size(); ++n)
            merged = nest.strides[n][nest.loops - 1] == strides[n][d] * extents[d];
        if (!merged) {
            if (nest.loops == kMostLoops)
                return std::nullopt;
            nest.extents[nest.loops++] = 1;
        }
        nest.extents[nest.loops - 1] *= extents[d];
        for (std::size_t n = 0; n < strides.size(); ++n)
            nest.strides[n][nest.loops - 1] = strides[n][d];
    }
    return nest;
}

/// A move of elements, by strides.
struct Move {
    const void *from = nullptr;
    void *to = nullptr;
    std::int64_t elementSize = 4;
    Shape extents{};
    Shape fromStrides{};
    Shape toStrides{};
};

/// That of `copyBox` of box_copy.h.
Move boxMove(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
    const IndexMask &region, std::int64_t elementSize);

/// As one copy where nothing is apart, else a kernel; several where there are more loops than it takes.
Result<void> launchMove(CudaQueue &queue, const Move &move);

} // namespace planloom
