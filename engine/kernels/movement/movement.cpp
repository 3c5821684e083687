#include "engine/kernels/movement/movement.h"

#include "engine/kernels/kernel_table.h"

#include <algorithm>

namespace planloom {

namespace {

// --- Reshape, Transpose
// ----------------------------------------------------------------------------------------

Result<void> copyAll(const KernelCall &call, const Buffer &from, const Buffer &to)
{
    if (from.data != to.data && call.mover != nullptr)
        call.mover->move(1, {static_cast<std::int64_t>(byteCount(to))}, from.data, {1}, to.data, {1});
    else if (from.data != to.data)
        std::memmove(to.data, from.data, byteCount(to));
    return {};
}

Result<void> permute(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    const bool inverse = call.op->direction == Direction::Backward;
    const auto permutation = call.op->attributes.integers("permutation");
    const Shape dense = denseStrides(x.shape);
    Shape strides(dense.size());
    for (std::size_t d = 0; d < strides.size(); ++d) {
        const auto axis = static_cast<std::size_t>(permutation[d]);
        (inverse ? strides[axis] : strides[d]) = dense[inverse ? d : axis];
    }
    return withElement(x.dataType, [&]<typename T>(T) {
        if (call.mover != nullptr)
            call.mover->move(sizeof(T), y.shape, x.data, strides, y.data, denseStrides(y.shape));
        else
            copyTransposed(y.shape, elements<const T>(x), strides, elements<T>(y));
    });
}

// --- Expand, Tile: y is x read with strides
// --------------------------------------------------------------------

/// Extents of y and, for each, the stride with which x is read.
struct ReadPlan {
    Shape extents{};
    Shape strides{};
};

ReadPlan planExpand(const Shape &x, const Shape &y)
{
    return {y, broadcastStrides(x, y)};
}

/// Each dimension of y is (repeat, element of x).
ReadPlan planTile(const Shape &x, const Shape &y)
{
    ReadPlan plan;
    const Shape dense = denseStrides(x);
    for (std::size_t d = 0; d < x.size(); ++d) {
        plan.extents.push_back(x[d] == 0 ? 0 : y[d] / x[d]);
        plan.strides.push_back(0);
        plan.extents.push_back(x[d]);
        plan.strides.push_back(dense[d]);
    }
    return plan;
}

template<ReadPlan (*plan)(const Shape &, const Shape &)>
Result<void> read(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    const ReadPlan way = plan(x.shape, y.shape);
    return withElement(x.dataType, [&]<typename T>(T) {
        copyStrided(
            call, way.extents, elements<const T>(x), way.strides, elements<T>(y), denseStrides(way.extents));
    });
}

template<ReadPlan (*plan)(const Shape &, const Shape &)> Result<void> readBackward(const KernelCall &call)
{
    return addUpGradient(call, [](const auto *from, double *sums, const Buffer &dx, const Buffer &dy) {
        const ReadPlan read = plan(dx.shape, dy.shape);
        addStrided(read.extents, from, denseStrides(read.extents), sums, read.strides);
    });
}

// --- DepthToSpace, SpaceToDepth
// --------------------------------------------------------------------------------

/// Both read "wide" [n c (h b) (w b)] as [n c h b w b]; "deep" holds the same with the blocks (b b) among its
/// channels. Copies from one to the other.
Result<void> rearrange(const KernelCall &call, const Buffer &from, const Buffer &to)
{
    const bool forward = call.op->direction == Direction::Forward;
    const bool toWide = (call.op->kind == OperatorKind::DepthToSpace) == forward;
    const std::int64_t block = call.op->attributes.integer("blocksize", 1);
    const Buffer &wide = toWide ? to : from;
    const std::int64_t n = wide.shape[0];
    const std::int64_t c = wide.shape[1];
    const std::int64_t h = wide.shape[2] / block;
    const std::int64_t w = wide.shape[3] / block;
    const Shape extents{n, c, h, block, w, block};
    const Shape wideStrides = denseStrides(extents);
    Shape deepStrides;
    if (call.op->kind == OperatorKind::DepthToSpace && call.op->attributes.text("mode", "DCR") == "CRD") {
        const Shape s = denseStrides({n, c, block, block, h, w});
        deepStrides = {s[0], s[1], s[4], s[2], s[5], s[3]};
    } else {
        const Shape s = denseStrides({n, block, block, c, h, w});
        deepStrides = {s[0], s[3], s[4], s[1], s[5], s[2]};
    }
    return withElement(wide.dataType, [&]<typename T>(T) {
        copyStrided(call, extents, elements<const T>(from), toWide ? deepStrides : wideStrides,
            elements<T>(to), toWide ? wideStrides : deepStrides);
    });
}

} // namespace

void addMovementKernels(KernelTable &table)
{
    table.add({OperatorKind::Reshape}, moved<copyAll>, moved<copyAll>);
    table.add({OperatorKind::Transpose}, moved<permute>, moved<permute>);
    table.add({OperatorKind::Expand}, moved<read<planExpand>>, readBackward<planExpand>);
    table.add({OperatorKind::Tile}, moved<read<planTile>>, readBackward<planTile>);
    table.add({OperatorKind::DepthToSpace, OperatorKind::SpaceToDepth}, moved<rearrange>, moved<rearrange>);
}

} // namespace planloom
