// Windows that move over the dimensions behind the first two: convolutions, pools.

#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

// --- types

/// Attributes of a sliding window, with their defaults, checked.
struct WindowCount {
    std::vector<std::int64_t> strides{};
    std::vector<std::int64_t> pads{};
    std::vector<std::int64_t> dilations{};
};

Result<WindowCount> windowOf(const InferCall &call, std::size_t count)
{
    const auto read = [&](const char *name, std::size_t size, std::int64_t fallback, std::int64_t least,
                          std::vector<std::int64_t> &into) -> Result<void> {
        into = call.attributes.has(name) ? call.attributes.integers(name)
                                         : std::vector<std::int64_t>(size, fallback);
        if (into.size() != size)
            return call.badAttribute(name, std::to_string(size) + " numbers");
        for (const std::int64_t value : into) {
            if (value < least || value >= kLargestExtent)
                return call.badAttribute(
                    name, "numbers from " + std::to_string(least) + ", found " + std::to_string(value));
        }
        return {};
    };
    WindowCount window;
    TRY_VOID(read("strides", count, 1, 1, window.strides));
    TRY_VOID(read("pads", 2 * count, 0, 0, window.pads));
    TRY_VOID(read("dilations", count, 1, 1, window.dilations));
    return window;
}

/// Places of a window of extent `kernel` along dimension `i` of `count`.
std::int64_t placesOf(const WindowCount &window, std::size_t i, std::size_t count, std::int64_t extent,
    std::int64_t kernel, bool ceiling)
{
    const std::int64_t before = window.pads[i];
    const std::int64_t span = window.dilations[i] * (kernel - 1) + 1;
    const std::int64_t room = extent + before + window.pads[i + count] - span;
    if (room < 0)
        return 0;
    const std::int64_t stride = window.strides[i];
    std::int64_t places = room / stride + 1;
    // A last window that would start behind the input and its left padding is dropped.
    if (ceiling && room % stride != 0 && places * stride < extent + before)
        ++places;
    return places;
}

TypesOutcome inferConvolution(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkFloating(call, 3));
    const Shape &x = call.in(0);
    const Shape &w = call.in(1);
    if (x.size() < 3)
        return call.misfit(0, "at least three dimensions");
    if (w.size() != x.size())
        return call.misfit(1, "as many dimensions as input 0, " + toString(x));
    const std::size_t count = x.size() - 2;
    TRY(const WindowCount window, windowOf(call, count));
    const std::int64_t groups = call.attributes.integer("group", 1);
    if (groups < 1 || groups > x[1] || x[1] % groups != 0)
        return call.badAttribute("group", "a divisor of the " + std::to_string(x[1]) + " input channels");
    const bool transposed = call.kind == ConvTranspose;
    for (std::size_t i = 2; i < w.size(); ++i) {
        if (w[i] < 1 || w[i] >= kLargestExtent)
            return call.misfit(1, "a kernel of at least one element");
    }
    if (transposed ? w[0] != x[1] : w[1] != x[1] / groups || w[0] % groups != 0) {
        return call.misfit(
            1, "channels that fit input 0, " + toString(x) + ", in " + std::to_string(groups) + " groups");
    }
    std::vector<std::int64_t> padding(count, 0);
    if (transposed && call.attributes.has("output_padding"))
        padding = call.attributes.integers("output_padding");
    if (padding.size() != count
        || std::any_of(padding.begin(), padding.end(), [](auto p) { return p < 0 || p >= kLargestExtent; }))
        return call.badAttribute("output_padding", "one number per spatial dimension");
    Shape y{x[0], transposed ? w[1] * groups : w[0]};
    for (std::size_t i = 0; i < count; ++i) {
        if (!transposed) {
            y.push_back(placesOf(window, i, count, x[i + 2], w[i + 2], false));
            continue;
        }
        std::int64_t extent = 0;
        if (__builtin_mul_overflow(window.strides[i], x[i + 2] - 1, &extent) || extent > kMostElements)
            return call.badAttribute("strides", "a smaller stride");
        extent +=
            padding[i] + (w[i + 2] - 1) * window.dilations[i] + 1 - window.pads[i] - window.pads[i + count];
        y.push_back(extent);
    }
    if (std::any_of(y.begin() + 2, y.end(), [](std::int64_t extent) { return extent < 1; }))
        return call.misfit(1, "a kernel that fits into the padded input " + toString(x));
    if (call.has(2) && call.in(2) != Shape{y[1]})
        return call.misfit(2, toString(Shape{y[1]}));
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferPooling(const InferCall &call)
{
    if (call.kind != OperatorKind::MaxPool)
        TRY_VOID(checkFloating(call, 1));
    const Shape &x = call.in(0);
    if (x.size() < 3)
        return call.misfit(0, "at least three dimensions");
    const std::size_t count = x.size() - 2;
    TRY(const WindowCount window, windowOf(call, count));
    const auto kernel = call.attributes.integers("kernel_shape");
    if (kernel.size() != count
        || std::any_of(kernel.begin(), kernel.end(), [](auto k) { return k < 1 || k >= kLargestExtent; }))
        return call.badAttribute("kernel_shape", std::to_string(count) + " positive numbers");
    Shape y{x[0], x[1]};
    for (std::size_t i = 0; i < count; ++i)
        y.push_back(
            placesOf(window, i, count, x[i + 2], kernel[i], call.attributes.integer("ceil_mode") != 0));
    if (std::any_of(y.begin() + 2, y.end(), [](std::int64_t extent) { return extent < 1; }))
        return call.misfit(0, "a padded input into which the kernel fits");
    return one(call.type(0).dataType, std::move(y));
}

// --- annotations

std::int64_t valueAt(const std::vector<std::int64_t> &values, std::size_t position, std::int64_t fallback)
{
    return position < values.size() ? values[position] : fallback;
}

/// The stride along spatial dimension `i` of `count` if windows of extent `kernel` meet every element at most
/// once and tile the dimension, so that it may be cut between windows; else 0. `wide` is the side that
/// windows lie on, `narrow` the one with an element per window.
std::int64_t tileOf(const Attributes &attributes, std::size_t i, std::size_t count, std::int64_t kernel,
    std::int64_t wide, std::int64_t narrow)
{
    const auto pads = attributes.integers("pads");
    const std::int64_t stride = valueAt(attributes.integers("strides"), i, 1);
    std::int64_t span = 0;
    if (kernel < 1 || stride < 1
        || __builtin_mul_overflow(valueAt(attributes.integers("dilations"), i, 1), kernel - 1, &span))
        return 0;
    const bool tiles = span < stride && valueAt(pads, i, 0) == 0 && valueAt(pads, i + count, 0) == 0
        && wide % stride == 0 && wide / stride == narrow;
    return tiles ? stride : 0;
}

/// The terms of the dimensions behind the first two of input and output. Where windows tile the input, as in
/// "(h 2)" -> "h", whole windows are cut; where they overlap, leave gaps or reach over the border, parts read
/// what their windows read.
std::pair<std::vector<Term>, std::vector<Term>> windowTerms(
    const AnnotateCall &call, AnnotationBuilder &builder, const std::vector<std::int64_t> &kernel)
{
    std::vector<Term> in;
    std::vector<Term> out;
    const bool transposed = call.kind == OperatorKind::ConvTranspose;
    const std::size_t count = call.inRank(0) - 2;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t extent = call.in(0)[i + 2];
        const std::int64_t made = call.out(0)[i + 2];
        const std::int64_t wide = transposed ? made : extent;
        const std::int64_t narrow = transposed ? extent : made;
        const std::string_view name = count <= 3 ? kSpatialNames[count][i] : std::string_view{};
        const std::int64_t stride = tileOf(call.attributes, i, count, valueAt(kernel, i, 0), wide, narrow);
        if (stride == 0) {
            auto terms = builder.windows(name, narrow,
                {.extent = wide,
                    .kernel = valueAt(kernel, i, 0),
                    .stride = valueAt(call.attributes.integers("strides"), i, 1),
                    .dilation = valueAt(call.attributes.integers("dilations"), i, 1),
                    .pad = valueAt(call.attributes.integers("pads"), i, 0)});
            if (transposed && terms.elements.reach == WindowReach::Windows) {
                terms.elements.reach = WindowReach::Share;
                terms.windows.reach = WindowReach::Met;
            }
            in.push_back(transposed ? std::move(terms.windows) : terms.elements);
            out.push_back(transposed ? std::move(terms.elements) : std::move(terms.windows));
            continue;
        }
        const std::int32_t windows = name.empty() ? builder.fresh(narrow) : builder.named(name, narrow);
        const Term tiled = builder.compound({windows, builder.literal(stride)});
        in.push_back(transposed ? Term{{windows}} : tiled);
        out.push_back(transposed ? tiled : Term{{windows}});
    }
    return {std::move(in), std::move(out)};
}

std::string annotateConvolution(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const Shape &x = call.in(0);
    const Shape &w = call.in(1);
    const Shape &y = call.out(0);
    if (x.size() < 3 || w.size() != x.size() || y.size() != x.size())
        return std::string(nameOf(call.kind)) + " needs input, weight and output of equal rank, at least 3";
    const std::int64_t groups = call.attributes.integer("group", 1);
    if (groups < 1 || x[1] % groups != 0 || y[1] % groups != 0)
        return std::string(nameOf(call.kind)) + "'s channels do not divide into its groups";

    const std::vector<std::int64_t> kernel(w.begin() + 2, w.end());
    const auto [spatialIn, spatialOut] = windowTerms(call, builder, kernel);
    const std::int32_t n = builder.named("n", x[0]);
    const bool grouped = groups > 1;
    const std::int32_t g = grouped ? builder.named("g", groups) : builder.literal(1);
    const std::int32_t c = builder.named("c", x[1] / groups, grouped ? kFrozen : kReduce);
    const std::int32_t o = builder.named("o", y[1] / groups, grouped ? kFrozen : DimensionMark::Spatial);
    const Term channelsIn = builder.compound({g, c});
    const Term channelsOut = builder.compound({g, o});

    std::vector<Term> input{Term{{n}}, channelsIn};
    input.insert(input.end(), spatialIn.begin(), spatialIn.end());
    std::vector<Term> weight = call.kind == OperatorKind::Conv ? std::vector<Term>{channelsOut, Term{{c}}}
                                                               : std::vector<Term>{channelsIn, Term{{o}}};
    const auto ofKernel = termsOf(builder.literals(kernel));
    weight.insert(weight.end(), ofKernel.begin(), ofKernel.end());
    std::vector<Term> output{Term{{n}}, channelsOut};
    output.insert(output.end(), spatialOut.begin(), spatialOut.end());
    builder.input(0, std::move(input));
    builder.input(1, std::move(weight));
    if (call.has(2))
        builder.input(2, std::vector<Term>{channelsOut});
    builder.output(0, std::move(output));
    return {};
}

std::string annotatePooling(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const Shape &x = call.in(0);
    if (x.size() < 3 || call.outRank(0) != x.size())
        return std::string(nameOf(call.kind)) + " needs input and output of equal rank, at least 3";
    const auto [spatialIn, spatialOut] = windowTerms(call, builder, call.attributes.integers("kernel_shape"));
    std::vector<Term> in = termsOf({builder.named("n", x[0]), builder.named("c", x[1])});
    std::vector<Term> out = in;
    in.insert(in.end(), spatialIn.begin(), spatialIn.end());
    out.insert(out.end(), spatialOut.begin(), spatialOut.end());
    builder.input(0, std::move(in));
    builder.output(0, std::move(out));
    return {};
}

// --- work

/// Product of the kernel's extents and the channels it joins: all of w but its first dimension.
double kernelElements(const Shape *weight)
{
    return weight == nullptr || weight->empty() ? 0 : countOf(Shape(weight->begin() + 1, weight->end()));
}

double stepsOfConvolution(const WorkShapes &shapes)
{
    const bool transposed = shapes.op().kind == OperatorKind::ConvTranspose;
    return (transposed ? shapes.inElements(0) : shapes.outElements(0)) * kernelElements(shapes.in(1));
}

double windowElements(const WorkShapes &shapes)
{
    return shapes.outElements(0) * countOf(shapes.attributes().integers("kernel_shape"));
}

} // namespace

std::vector<KindEntry> windowKinds()
{
    using enum OperatorKind;
    constexpr auto kProduct = OperatorCategory::Product;
    constexpr auto kReduction = OperatorCategory::Reduction;
    const SplitRule convolution{annotateConvolution, DimensionLock::Borders, {0}, "ncohwdlg"};
    const GradientNeeds factors{{NeedOfInput{{1}}, NeedOfInput{{0}}, NeedOfInput{}}};
    const WorkRule product{2, stepsOfConvolution, onePerFactor, true};
    const SplitRule pool{annotatePooling, DimensionLock::Borders, {}, "ncohwdlg"};
    const SplitRule average{annotatePooling, DimensionLock::Borders, {0}, "ncohwdlg"};
    const GradientNeeds both{{NeedOfInput{{0}, {0}}}}; // input and output
    const WorkRule windows{1, windowElements};
    return {
        {Conv, "Conv", kProduct, {2, 3}, inferConvolution, convolution, factors, product},
        {ConvTranspose, "ConvTranspose", kProduct, {2, 3}, inferConvolution, convolution, factors, product},
        {MaxPool, "MaxPool", kReduction, {}, inferPooling, pool, both, windows},
        {AveragePool, "AveragePool", kReduction, {}, inferPooling, average, {{NeedOfInput{}}}, windows},
        {LpPool, "LpPool", kReduction, {}, inferPooling, pool, both, windows},
    };
}

} // namespace planloom
