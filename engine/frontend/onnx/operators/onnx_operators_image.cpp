// Operators on images: resizing, sampling, cropping.
#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_functions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

// --- Resize
// -------------------------------------------------------------------------------------------------

/// Extents, factors and region of a Resize, by dimension.
struct Resizing {
    Shape shape{};
    Reals scales{};
    Reals region{}; ///< Begins, then ends, as fractions; empty unless a region is cropped.
};

/// The dimensions that a node's lists are for: those of attribute "axes", or all.
Result<Integers> namedAxes(Context &context)
{
    TRY(const auto given, context.integers("axes"));
    Integers axes(static_cast<std::size_t>(context.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
    if (!given)
        return axes;
    axes.clear();
    for (const std::int64_t value : *given) {
        TRY(const std::int64_t axis, context.axis(value, context.rank(0)));
        if (std::find(axes.begin(), axes.end(), axis) != axes.end())
            return context.invalid("its axes name dimension " + std::to_string(axis) + " twice");
        axes.push_back(axis);
    }
    return axes;
}

/// The factors that are written down, as attribute or input; empty if there are none.
Result<Reals> writtenScales(Context &context, std::size_t slot)
{
    if (context.hasAttribute("scales")) {
        const auto *list = std::get_if<std::vector<float>>(&context.node().attributes.find("scales")->second);
        if (list == nullptr)
            return context.invalid("attribute 'scales' should be numbers");
        return Reals(list->begin(), list->end());
    }
    if (!context.has(slot) || elementCount(context.shape(slot)) == 0)
        return Reals{};
    return context.constantReals(slot, "scales");
}

Result<void> resizeByScales(Context &context, const Reals &given, const Integers &axes, Resizing &resizing)
{
    if (given.size() != axes.size())
        return context.invalid("it has " + std::to_string(given.size()) + " scales for "
            + std::to_string(axes.size()) + " dimensions");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<std::size_t>(axes[i]);
        const std::int64_t from = resizing.shape[axis];
        const double extent = std::floor(static_cast<double>(from) * given[i]);
        if (!(given[i] > 0) || !(extent >= 1) || extent > 1e12)
            return context.invalid(
                "it scales a dimension of " + std::to_string(from) + " by " + std::to_string(given[i]));
        resizing.shape[axis] = static_cast<std::int64_t>(extent);
        resizing.scales[axis] = given[i];
    }
    return {};
}

Result<void> resizeToSizes(Context &context, const Integers &sizes, const Integers &axes, Resizing &resizing)
{
    if (sizes.size() != axes.size())
        return context.invalid("it has " + std::to_string(sizes.size()) + " sizes for "
            + std::to_string(axes.size()) + " dimensions");
    TRY(const std::string policy, context.text("keep_aspect_ratio_policy", "stretch"));
    Reals scales;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t from = resizing.shape[static_cast<std::size_t>(axes[i])];
        if (sizes[i] < 1 || from < 1 || sizes[i] > (std::int64_t{1} << 40))
            return context.invalid(
                "it resizes a dimension of " + std::to_string(from) + " to " + std::to_string(sizes[i]));
        scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(from));
    }
    if (policy != "stretch" && !scales.empty()) {
        const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
        scales.assign(scales.size(), policy == "not_larger" ? *least : *most);
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<std::size_t>(axes[i]);
        const double extent = std::floor(static_cast<double>(resizing.shape[axis]) * scales[i] + 0.5);
        resizing.shape[axis] =
            policy == "stretch" ? sizes[i] : static_cast<std::int64_t>(std::max(1.0, extent));
        resizing.scales[axis] = scales[i];
    }
    return {};
}

/// The region of "tf_crop_and_resize": begins of all axes, then their ends.
Result<void> readRegion(Context &context, const Integers &axes, Resizing &resizing)
{
    TRY(const Reals given, context.constantReals(1, "roi"));
    if (given.size() != 2 * axes.size())
        return context.invalid("its roi has " + std::to_string(given.size()) + " numbers for "
            + std::to_string(axes.size()) + " dimensions");
    const std::size_t rank = resizing.shape.size();
    resizing.region.assign(rank, 0.0);
    resizing.region.resize(2 * rank, 1.0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<std::size_t>(axes[i]);
        resizing.region[axis] = given[i];
        resizing.region[rank + axis] = given[axes.size() + i];
    }
    return {};
}

Result<Resizing> readResizing(Context &context, bool old, bool crops)
{
    TRY(const Integers axes, namedAxes(context));
    Resizing resizing{context.shape(0), Reals(context.shape(0).size(), 1.0), {}};
    TRY(const Reals scales, writtenScales(context, old ? 1 : 2));
    if (!scales.empty()) {
        TRY_VOID(resizeByScales(context, scales, axes, resizing));
    } else if (!old && context.has(3)) {
        TRY(const Integers sizes, context.constantIntegers(3, "sizes"));
        TRY_VOID(resizeToSizes(context, sizes, axes, resizing));
    } else {
        return context.invalid("neither scales nor sizes are given");
    }
    if (crops)
        TRY_VOID(readRegion(context, axes, resizing));
    return resizing;
}

/// Before operator set 11 elements that are nearest are those below where an image grows, and above where it
/// shrinks (ONNX's test_resize_downsample_nearest of set 10).
Result<std::string> oldNearest(Context &context, const Resizing &resizing)
{
    const auto shrinks = [](double scale) { return scale < 1; };
    const auto grows = [](double scale) { return scale > 1; };
    const Reals &scales = resizing.scales;
    if (std::none_of(scales.begin(), scales.end(), shrinks))
        return std::string("floor");
    if (std::any_of(scales.begin(), scales.end(), grows))
        return context.unsupported(
            "its 'scales' make some dimensions larger and others smaller, in mode nearest "
            "of operator set 10",
            "export the model with operator set 13");
    return std::string("ceil");
}

/// Resize and its forerunner Upsample. Before operator set 11 coordinates are asymmetric.
Result<void> importResize(Context &context)
{
    const bool old = context.opset() < 11 || context.node().type == "Upsample";
    TRY(std::string mode, context.text("mode", "nearest"));
    if (mode == "bilinear" || mode == "trilinear")
        mode = "linear";
    TRY(const std::string coordinates,
        context.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"));
    TRY(const double cubic, context.real("cubic_coeff_a", -0.75));
    TRY(const double outside, context.real("extrapolation_value", 0.0));
    Attributes attributes = attributesFrom(
        {{"mode", mode}, {"coordinate_transformation_mode", coordinates}, {"cubic_coeff_a", cubic}});
    for (const char *name : {"antialias", "exclude_outside"}) {
        TRY(const std::int64_t flag, context.integer(name, 0));
        if (flag != 0 && mode != "nearest")
            attributes.set(name, std::int64_t{1});
    }
    TRY(const Resizing resizing, readResizing(context, old, coordinates == "tf_crop_and_resize"));
    TRY(std::string nearest, context.text("nearest_mode", "round_prefer_floor"));
    if (old && mode == "nearest") {
        TRY(nearest, oldNearest(context, resizing));
    }
    attributes.set("nearest_mode", std::move(nearest));
    if (!resizing.region.empty()) {
        attributes.set("roi", resizing.region);
        attributes.set("extrapolation_value", outside);
    } else if (resizing.shape == context.shape(0)) {
        return context.bind(0, context.input(0));
    }
    attributes.set("scales", resizing.scales);
    return context.finish(OperatorKind::Resize, {context.input(0)}, std::move(attributes),
        TensorType{context.type(0).dataType, resizing.shape});
}

// --- GridSample, AffineGrid
// ---------------------------------------------------------------------------------

Result<void> importGridSample(Context &context)
{
    TRY(std::string mode, context.text("mode", "linear"));
    if (mode == "bilinear" || mode == "bicubic") // before operator set 20
        mode.erase(0, 2);
    TRY(const std::string padding, context.text("padding_mode", "zeros"));
    TRY(const std::int64_t aligned, context.integer("align_corners", 0));
    return context.finish(OperatorKind::GridSample, {context.input(0), context.input(1)},
        attributesFrom({{"mode", mode}, {"padding_mode", padding}, {"align_corners", aligned}}));
}

Result<void> importAffineGrid(Context &context)
{
    TRY(const Integers size, context.constantIntegers(1, "size"));
    TRY(const std::int64_t aligned, context.integer("align_corners", 0));
    return context.finish(emitAffineGrid(context, context.input(0), size, aligned != 0));
}

// --- Col2Im
// -------------------------------------------------------------------------------------------------

/// Attribute `name`: `count` numbers of at least `least`, or `fallback` each.
Result<Integers> blockNumbers(Context &context, const char *name, std::size_t count, std::int64_t least)
{
    TRY(const auto given, context.integers(name));
    Integers numbers = given.value_or(Integers(count, least));
    const bool fits = numbers.size() == count && std::all_of(numbers.begin(), numbers.end(), [&](auto value) {
        return value >= least && value < (std::int64_t{1} << 31);
    });
    if (!fits)
        return context.invalid("attribute '" + std::string(name) + "' is " + toString(numbers) + ", where "
            + std::to_string(count) + " numbers of at least " + std::to_string(least) + " were expected");
    return numbers;
}

/// Sums blocks where they overlap: a transposed convolution whose kernel puts each element in its place.
Result<void> importCol2Im(Context &context)
{
    TRY(const Integers image, context.constantIntegers(1, "image_shape"));
    TRY(const Integers block, context.constantIntegers(2, "block_shape"));
    const std::size_t rank = image.size();
    TRY(const Integers strides, blockNumbers(context, "strides", rank, 1));
    TRY(const Integers dilations, blockNumbers(context, "dilations", rank, 1));
    TRY(const Integers pads, blockNumbers(context, "pads", 2 * rank, 0));
    const auto count = checkedElementCount(block);
    const Shape &x = context.shape(0);
    if (rank < 1 || block.size() != rank || x.size() != 3 || !count || *count < 1 || x[1] % *count != 0)
        return context.invalid("its input has the shape " + toString(x) + ", its images " + toString(image)
            + " and its blocks " + toString(block) + ", which do not go together");
    const DataType type = context.type(0).dataType;
    const std::int64_t channels = x[1] / *count;
    Shape apart{x[0] * channels, *count};
    Integers extra;
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t span = dilations[d] * (block[d] - 1) + 1;
        const std::int64_t room = image[d] + pads[d] + pads[rank + d] - span;
        if (image[d] < 1 || room < 0)
            return context.invalid(
                "its blocks " + toString(block) + " do not fit into its images " + toString(image));
        apart.push_back(room / strides[d] + 1);
        extra.push_back(room % strides[d]);
    }
    if (checkedElementCount(apart) != std::optional(elementCount(x)))
        return context.invalid("its input has " + std::to_string(x[2]) + " blocks, where "
            + toString(Shape(apart.begin() + 2, apart.end())) + " were expected");
    TRY(const TensorId blocks, context.reshape(context.input(0), apart, "blocks"));
    Shape kernel{*count, 1};
    kernel.insert(kernel.end(), block.begin(), block.end());
    const TensorType kernelType{type, kernel};
    if (!context.graph().constants().take(kernelType))
        return context.unsupported("its blocks are too large");
    TensorData places = filledTensor(kernelType, Number::ofReal(0));
    for (std::int64_t i = 0; i < *count; ++i)
        writeNumber(type, places.bytes.data(), static_cast<std::size_t>(i * *count + i), Number::ofReal(1));
    const TensorId weight =
        context.graph().addConstant(std::make_shared<const TensorData>(std::move(places)));
    TRY(const TensorId summed,
        context.make(OperatorKind::ConvTranspose, {blocks, weight},
            attributesFrom({{"strides", strides}, {"pads", pads}, {"dilations", dilations},
                {"group", std::int64_t{1}}, {"output_padding", extra}}),
            {}, "summed"));
    Shape shape{context.shape(0)[0], channels};
    shape.insert(shape.end(), image.begin(), image.end());
    return context.finish(OperatorKind::Reshape, {summed}, {}, TensorType{type, std::move(shape)});
}

// --- CenterCropPad
// ------------------------------------------------------------------------------------------

/// Crops dimensions that are too large at both ends, then pads those that are too small.
Result<void> importCenterCropPad(Context &context)
{
    TRY(const Integers wanted, context.constantIntegers(1, "shape"));
    TRY(const Integers axes, namedAxes(context));
    if (wanted.size() != axes.size())
        return context.invalid("its shape has " + std::to_string(wanted.size()) + " numbers for "
            + std::to_string(axes.size()) + " dimensions");
    const DataType type = context.type(0).dataType;
    Shape cropped = context.shape(0);
    const std::size_t rank = cropped.size();
    Integers starts(rank, 0);
    Integers pads(2 * rank, 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<std::size_t>(axes[i]);
        if (wanted[i] < 1 || wanted[i] > (std::int64_t{1} << 40))
            return context.invalid("it makes a dimension of " + std::to_string(wanted[i]) + " elements");
        const std::int64_t more = wanted[i] - cropped[axis];
        if (more < 0) {
            starts[axis] = -more / 2;
            cropped[axis] = wanted[i];
        } else {
            pads[axis] = more / 2;
            pads[rank + axis] = more - more / 2;
        }
    }
    TensorId x = context.input(0);
    if (cropped != context.shape(0)) {
        TRY(x,
            context.make(OperatorKind::Slice, {x},
                attributesFrom({{"starts", starts}, {"steps", Integers(rank, 1)}}), TensorType{type, cropped},
                "cropped"));
    }
    if (std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad == 0; }))
        return context.bind(0, x);
    return context.finish(OperatorKind::Pad, {x},
        attributesFrom({{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}}));
}

} // namespace

const OnnxHandlers &onnxImageHandlers()
{
    static const OnnxHandlers kHandlers = {{"Resize", needs<1, importResize>},
        {"Upsample", needs<1, importResize>}, {"GridSample", needs<2, importGridSample>},
        {"AffineGrid", needs<2, importAffineGrid>}, {"Col2Im", needs<3, importCol2Im>},
        {"CenterCropPad", needs<2, importCenterCropPad>}};
    return kHandlers;
}

} // namespace planloom
