#include "engine/cuda/kernels/nests.h"

#include <algorithm>

namespace planloom {

Move boxMove(const std::byte *from, const IndexMask &fromBox, std::byte *to, const IndexMask &toBox,
    const IndexMask &region, std::int64_t elementSize)
{
    Move move{from, to, elementSize, {}, {}, {}};
    Shape fromShape;
    Shape toShape;
    for (std::size_t d = 0; d < region.ranges.size(); ++d) {
        move.extents.push_back(region.ranges[d].size());
        fromShape.push_back(fromBox.ranges[d].size());
        toShape.push_back(toBox.ranges[d].size());
    }
    move.fromStrides = denseStrides(fromShape);
    move.toStrides = denseStrides(toShape);
    for (std::size_t d = 0; d < region.ranges.size(); ++d) {
        from += (region.ranges[d].begin - fromBox.ranges[d].begin) * move.fromStrides[d] * elementSize;
        to += (region.ranges[d].begin - toBox.ranges[d].begin) * move.toStrides[d] * elementSize;
    }
    move.from = from;
    move.to = to;
    return move;
}

Result<void> launchMove(CudaQueue &queue, const Move &move)
{
    const std::int64_t count = elementCount(move.extents);
    if (count == 0)
        return {};
    const auto nest = nestOf<2>(move.extents, {move.fromStrides, move.toStrides});
    if (!nest) { // its outermost loop here
        Move inner = move;
        inner.extents.erase(inner.extents.begin());
        inner.fromStrides.erase(inner.fromStrides.begin());
        inner.toStrides.erase(inner.toStrides.begin());
        for (std::int64_t i = 0; i < move.extents[0]; ++i) {
            inner.from =
                static_cast<const std::byte *>(move.from) + i * move.fromStrides[0] * move.elementSize;
            inner.to = static_cast<std::byte *>(move.to) + i * move.toStrides[0] * move.elementSize;
            TRY_VOID(launchMove(queue, inner));
        }
        return {};
    }
    if (nest->loops == 0 || (nest->loops == 1 && nest->strides[0][0] == 1 && nest->strides[1][0] == 1)) {
        queue.copy(static_cast<std::byte *>(move.to), static_cast<const std::byte *>(move.from),
            static_cast<std::size_t>(count * move.elementSize));
        return queue.outcome();
    }
    return queue.launch(
        MoveKernel{move.from, move.to, static_cast<std::int32_t>(move.elementSize), *nest}, count);
}

} // namespace planloom
