// Windows over a dimension, overlapping or not: what they see side by side, and the sums of what lies over
// one another. Samples of an image at places that a tensor names.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <numeric>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// Windows over one dimension.
struct Windows {
    std::int64_t size = 1; ///< Places of a window.
    std::int64_t dilation = 1; ///< From place to place.
    std::int64_t stride = 1; ///< From window to window.
    std::int64_t count = 0;

    /// Where each place of each window lies, windows first or places first.
    Integers places(bool windowsFirst) const
    {
        Integers all;
        for (std::int64_t outer = 0; outer < (windowsFirst ? count : size); ++outer) {
            for (std::int64_t inner = 0; inner < (windowsFirst ? size : count); ++inner)
                all.push_back(
                    windowsFirst ? outer * stride + inner * dilation : outer * dilation + inner * stride);
        }
        return all;
    }
};

/// As many as fit into `extent`. @return InvalidInput if none does
Result<Windows> windowsIn(
    AtenContext &context, std::int64_t extent, std::int64_t size, std::int64_t dilation, std::int64_t stride)
{
    if (size < 1 || dilation < 1 || stride < 1 || (size - 1) * dilation >= extent)
        return context.invalid("windows of " + std::to_string(size) + " places, " + std::to_string(dilation)
            + " apart, do not fit into " + std::to_string(extent));
    return Windows{size, dilation, stride, (extent - (size - 1) * dilation - 1) / stride + 1};
}

/// Dimension `axis` as windows and places in them, windows first or places first.
Result<TensorId> unfolded(
    AtenContext &context, TensorId x, std::int64_t axis, const Windows &windows, bool windowsFirst)
{
    Shape shape = context.shapeOf(x);
    const std::int64_t extent = shape[axisIndex(axis)];
    Shape apart{windowsFirst ? windows.count : windows.size, windowsFirst ? windows.size : windows.count};
    // Windows side by side are a view, where they are what the dimension is made of.
    if (windowsFirst && windows.stride == windows.size && windows.dilation == 1) {
        if (windows.count * windows.size != extent) {
            TRY(x, context.slice(x, axis, 0, windows.count * windows.size, 1, "whole"));
        }
        shape.erase(shape.begin() + axis);
        shape.insert(shape.begin() + axis, apart.begin(), apart.end());
        return context.reshape(x, std::move(shape), "windows");
    }
    const TensorId places =
        context.graph().addConstant(integerTensor(windows.places(windowsFirst), std::move(apart)));
    return context.part("windows", emitGather, x, places, axis);
}

/// Tensor.unfold: windows take the place of the dimension, their places come last.
Result<void> atenUnfold(AtenContext &context, TensorId x)
{
    const std::int64_t rank = context.rankOf(x);
    TRY(const std::int64_t axis, context.dimension("dimension", rank, 0));
    TRY(const std::int64_t size, context.integer("size"));
    TRY(const std::int64_t step, context.integer("step"));
    const std::int64_t extent = rank == 0 ? 1 : context.shapeOf(x)[axisIndex(axis)];
    TRY(const Windows windows, windowsIn(context, extent, size, 1, step));
    if (rank == 0)
        return context.finish(context.reshape(x, {1}, ""));
    TRY(const TensorId parts, unfolded(context, x, axis, windows, true));
    Integers order(axisIndex(rank) + 1);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    order.erase(order.begin() + axis + 1);
    order.push_back(axis + 1);
    return context.finishPermuted(parts, std::move(order));
}

/// What im2col and col2im are told of rows and columns.
struct KernelWindows {
    Windows rows{};
    Windows columns{};
    Integers padding{};
    std::int64_t height = 0; ///< With its padding, as is the width.
    std::int64_t width = 0;
    std::int64_t places() const { return rows.size * columns.size; }
};

Result<KernelWindows> kernelOver(AtenContext &context, std::int64_t height, std::int64_t width)
{
    TRY(const auto size, context.perDimension("kernel_size", 2, 1));
    TRY(const auto dilation, context.perDimension("dilation", 2, 1));
    TRY(const auto stride, context.perDimension("stride", 2, 1));
    KernelWindows kernel;
    TRY(kernel.padding, context.perDimension("padding", 2, 0));
    kernel.height = height + 2 * kernel.padding[0];
    kernel.width = width + 2 * kernel.padding[1];
    TRY(kernel.rows, windowsIn(context, kernel.height, size[0], dilation[0], stride[0]));
    TRY(kernel.columns, windowsIn(context, kernel.width, size[1], dilation[1], stride[1]));
    return kernel;
}

/// [n c h w] -> [n c*kh*kw windows], or without n.
Result<void> atenIm2col(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    Shape shape = context.shapeOf(x);
    if (shape.size() != 3 && shape.size() != 4)
        return context.invalid("its image has the shape " + toString(shape));
    const std::int64_t row = context.rankOf(x) - 2;
    TRY(const KernelWindows kernel, kernelOver(context, shape[axisIndex(row)], shape.back()));
    const std::int64_t down = kernel.padding[0];
    const std::int64_t aside = kernel.padding[1];
    if (down != 0 || aside != 0) {
        TRY(x,
            context.other(
                "constant_pad_nd", {{"self", x}, {"pad", Integers{aside, aside, down, down}}}, "padded"));
    }
    TRY(x, unfolded(context, x, row, kernel.rows, true)); // [.. oh kh w]
    TRY(x, unfolded(context, x, row + 2, kernel.columns, true)); // [.. oh kh ow kw]
    Integers order(axisIndex(row));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    order.insert(order.end(), {row + 1, row + 3, row, row + 2});
    TRY(x, context.permute(x, std::move(order), "kernels_first"));
    shape.resize(axisIndex(row));
    shape.back() *= kernel.places();
    shape.push_back(kernel.rows.count * kernel.columns.count);
    TRY(const TensorId y, context.reshape(x, std::move(shape), ""));
    return context.bind(0, y);
}

/// Sums of what lies over one another: dimensions `axis` and `axis` + 1, places and windows, become one.
Result<TensorId> folded(
    AtenContext &context, TensorId x, std::int64_t axis, const Windows &windows, std::int64_t extent)
{
    Shape shape = context.shapeOf(x);
    shape.erase(shape.begin() + axis);
    shape[axisIndex(axis)] = windows.size * windows.count;
    TRY(const TensorId source, context.reshape(x, shape, "laid_out"));
    shape[axisIndex(axis)] = extent;
    TRY(const TensorId zero,
        context.filled({context.typeOf(x).dataType, std::move(shape)}, AtenValue(0.0), "empty"));
    return context.other("index_add",
        {{"self", zero}, {"dim", axis}, {"index", context.list(windows.places(false))}, {"source", source}},
        "folded");
}

/// [n c*kh*kw windows] -> [n c h w], or without n.
Result<void> atenCol2im(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(const auto size, context.perDimension("output_size", 2, 1));
    TRY(const KernelWindows kernel, kernelOver(context, size[0], size[1]));
    Shape shape = context.shapeOf(x);
    const std::int64_t channels = shape.size() < 2 ? 0 : shape[shape.size() - 2] / kernel.places();
    if (channels < 1 || shape[shape.size() - 2] != channels * kernel.places()
        || shape.back() != kernel.rows.count * kernel.columns.count)
        return context.invalid("its columns have the shape " + toString(shape));
    shape.resize(shape.size() - 2);
    shape.insert(shape.end(),
        {channels, kernel.rows.size, kernel.columns.size, kernel.rows.count, kernel.columns.count});
    const std::int64_t row = static_cast<std::int64_t>(shape.size()) - 4;
    TRY(x, context.reshape(x, std::move(shape), "apart"));
    Integers order(axisIndex(row));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    order.insert(order.end(), {row, row + 2, row + 1, row + 3});
    TRY(x, context.permute(x, std::move(order), "rows_first"));
    TRY(x, folded(context, x, row, kernel.rows, kernel.height));
    TRY(x, folded(context, x, row + 1, kernel.columns, kernel.width));
    const std::int64_t down = kernel.padding[0];
    const std::int64_t aside = kernel.padding[1];
    if (down != 0) {
        TRY(x, context.slice(x, row, down, down + size[0], 1, "rows"));
    }
    if (aside != 0) {
        TRY(x, context.slice(x, row + 1, aside, aside + size[1], 1, "columns"));
    }
    return context.bind(0, x);
}

/// Modes and paddings are numbers: torch.nn.functional.grid_sample has their names.
Result<void> gridSampler(AtenContext &context)
{
    const std::vector<std::string> modes{"linear", "nearest", "cubic"};
    const std::vector<std::string> paddings{"zeros", "border", "reflection"};
    TRY(const TensorId x, context.tensor("input"));
    TRY(const TensorId grid, context.tensor("grid"));
    TRY(const std::int64_t mode, context.integer("interpolation_mode", 0));
    TRY(const std::int64_t padding, context.integer("padding_mode", 0));
    TRY(const bool aligned, context.flag("align_corners", false));
    if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
        return context.invalid("its mode is " + std::to_string(mode) + " and its padding "
            + std::to_string(padding) + ", where 0 to 2 were expected");
    return context.finish(OperatorKind::GridSample, {x, grid},
        attributesFrom({{"mode", modes[axisIndex(mode)]}, {"padding_mode", paddings[axisIndex(padding)]},
            {"align_corners", std::int64_t{aligned ? 1 : 0}}}));
}

Result<void> affineGrid(AtenContext &context)
{
    TRY(const TensorId theta, context.tensor("theta"));
    TRY(const Integers size, context.integers("size"));
    TRY(const bool aligned, context.flag("align_corners", false));
    return context.finishWith(emitAffineGrid, theta, size, aligned);
}

} // namespace

const AtenHandlers &atenWindowHandlers()
{
    static const AtenHandlers kHandlers = {{"unfold", ofSelf<atenUnfold>},
        {"unfold_copy", ofSelf<atenUnfold>}, {"im2col", atenIm2col}, {"grid_sampler", gridSampler},
        {"grid_sampler_2d", gridSampler}, {"grid_sampler_3d", gridSampler},
        {"affine_grid_generator", affineGrid}, {"col2im", atenCol2im}};
    return kHandlers;
}

} // namespace planloom
