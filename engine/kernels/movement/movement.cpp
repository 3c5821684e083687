#include "engine/kernels/movement/movement.h"

#include "engine/kernels/kernel_table.h"

#include <algorithm>

namespace planloom {

namespace {

// --- Reshape, Transpose
// ----------------------------------------------------------------------------------------

Result<void> copyAll(const KernelCall &call, const Buffer *from, const Buffer *to)
{
    return moveElements(call, from, to, [&call](const Buffer &x, const Buffer &y) -> Result<void> {
        if (x.data != y.data && call.mover != nullptr)
            call.mover->move(1, {static_cast<std::int64_t>(byteCount(y))}, x.data, {1}, y.data, {1});
        else if (x.data != y.data)
            std::memmove(y.data, x.data, byteCount(y));
        return {};
    });
}

Result<void> reshapeForward(const KernelCall &call)
{
    return copyAll(call, findInput(call, 0), findOutput(call, 0));
}

Result<void> reshapeBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    return copyAll(call, back.gradient(), back.wanted(0));
}

Result<void> permute(const KernelCall &call, const Buffer &x, const Buffer &y, bool inverse)
{
    const auto permutation = call.op->attributes.integers("permutation");
    const Shape dense = denseStrides(x.shape);
    Shape strides(dense.size());
    for (std::size_t d = 0; d < strides.size(); ++d) {
        const auto axis = static_cast<std::size_t>(permutation[d]);
        (inverse ? strides[axis] : strides[d]) = dense[inverse ? d : axis];
    }
    return withElement(x.dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        if (call.mover != nullptr)
            call.mover->move(sizeof(T), y.shape, x.data, strides, y.data, denseStrides(y.shape));
        else
            copyTransposed(y.shape, elements<const T>(x), strides, elements<T>(y));
        return {};
    });
}

Result<void> transpose(const KernelCall &call, const Buffer *from, const Buffer *to, bool inverse)
{
    return moveElements(
        call, from, to, [&](const Buffer &x, const Buffer &y) { return permute(call, x, y, inverse); });
}

Result<void> transposeForward(const KernelCall &call)
{
    return transpose(call, findInput(call, 0), findOutput(call, 0), false);
}

Result<void> transposeBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    return transpose(call, back.gradient(), back.wanted(0), true);
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

template<ReadPlan (*plan)(const Shape &, const Shape &)> Result<void> readForward(const KernelCall &call)
{
    return moveElements(call, findInput(call, 0), findOutput(call, 0), [&](const Buffer &x, const Buffer &y) {
        const ReadPlan read = plan(x.shape, y.shape);
        return withElement(x.dataType, [&](auto zero) -> Result<void> {
            using T = decltype(zero);
            copyStrided(call, read.extents, elements<const T>(x), read.strides, elements<T>(y),
                denseStrides(read.extents));
            return {};
        });
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
Result<void> rearrange(const KernelCall &call, const Buffer &from, const Buffer &to, bool toWide)
{
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
    return withElement(wide.dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        copyStrided(call, extents, elements<const T>(from), toWide ? deepStrides : wideStrides,
            elements<T>(to), toWide ? wideStrides : deepStrides);
        return {};
    });
}

Result<void> copyBlocks(const KernelCall &call, const Buffer *from, const Buffer *to, bool toWide)
{
    return moveElements(
        call, from, to, [&](const Buffer &x, const Buffer &y) { return rearrange(call, x, y, toWide); });
}

Result<void> blocksForward(const KernelCall &call)
{
    return copyBlocks(
        call, findInput(call, 0), findOutput(call, 0), call.op->kind == OperatorKind::DepthToSpace);
}

Result<void> blocksBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    return copyBlocks(call, back.gradient(), back.wanted(0), call.op->kind == OperatorKind::SpaceToDepth);
}

} // namespace

void addMovementKernels(KernelTable &table)
{
    const auto add = [&table](OperatorKind kind, Kernel forward, Kernel backward) {
        table.add(kind, Direction::Forward, forward);
        table.add(kind, Direction::Backward, backward);
    };
    add(OperatorKind::Reshape, reshapeForward, reshapeBackward);
    add(OperatorKind::Transpose, transposeForward, transposeBackward);
    add(OperatorKind::Expand, readForward<planExpand>, readBackward<planExpand>);
    add(OperatorKind::Tile, readForward<planTile>, readBackward<planTile>);
    add(OperatorKind::DepthToSpace, blocksForward, blocksBackward);
    add(OperatorKind::SpaceToDepth, blocksForward, blocksBackward);
}

} // namespace planloom
