// Normalisations, and the statistics that some are made of.

#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

// --- types

/// Statistics and affine parameters may be float32 beside a half-precision input.
Result<void> checkAllFloating(const InferCall &call)
{
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot) && !isFloating(call.type(slot).dataType))
            return call.misfit(slot, "a floating element type");
    }
    return {};
}

TypesOutcome inferAlongAxis(const InferCall &call)
{
    TRY_VOID(checkAllFloating(call));
    TRY_VOID(call.axis(call.rank(0)));
    return one(call.type(0).dataType, call.in(0));
}

/// From dimension `axis` on.
TypesOutcome inferFromAxis(const InferCall &call)
{
    TRY_VOID(checkAllFloating(call));
    const Shape &x = call.in(0);
    TRY(const std::size_t axis, call.axis(x.size()));
    const Shape normalized(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (call.has(slot) && broadcast(normalized, call.in(slot)) != normalized)
            return call.misfit(slot, "the normalised shape " + toString(normalized));
    }
    return one(call.type(0).dataType, x);
}

/// With statistics per channel.
TypesOutcome inferChannelNorm(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkAllFloating(call));
    const Shape &x = call.in(0);
    if (x.size() < 2)
        return call.misfit(0, "at least two dimensions");
    const bool batch = call.kind == BatchMean || call.kind == BatchVariance || call.kind == BatchNormalize;
    const std::int64_t groups = batch ? call.attributes.integer("groups") : 0;
    if (groups < 0 || (groups > 0 && x[1] % groups != 0))
        return call.badAttribute("groups", "a divisor of the channels, found " + std::to_string(groups));
    const Shape statistics = groups > 0 ? Shape{x[0], groups} : Shape{x[1]};
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        const bool ofGroups = groups > 0 && slot <= 2;
        if (call.has(slot) && call.in(slot) != (ofGroups ? statistics : Shape{x[1]}))
            return call.misfit(slot,
                ofGroups ? "one element per sample and group, " + toString(statistics)
                         : "one element per channel, " + toString(Shape{x[1]}));
    }
    const bool statistic = call.kind == BatchMean || call.kind == BatchVariance;
    return one(call.type(0).dataType, statistic ? statistics : x);
}

// --- annotations

/// @param following  the dimensions behind `axis` are normalised, too
std::string annotateNormalized(const AnnotateCall &call, AnnotationBuilder &builder, bool following)
{
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    const DimensionList dimensions = dimensionsWith(
        builder, call.in(0), kFrozen, [&](std::size_t i) { return following ? i >= axis : i == axis; });
    builder.input(0, dimensions);
    // The scale and bias of a layer norm lie along the normalised dimensions.
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, builder.broadcast(dimensions, call.in(slot)));
    }
    builder.output(0, dimensions);
    return {};
}

std::string annotateAlongAxis(const AnnotateCall &call, AnnotationBuilder &builder)
{
    return annotateNormalized(call, builder, false);
}

std::string annotateFromAxis(const AnnotateCall &call, AnnotationBuilder &builder)
{
    return annotateNormalized(call, builder, true);
}

/// [n c ..] with the marks of the batch, of the channels and of what follows.
DimensionList channelDimensions(AnnotationBuilder &builder, const Shape &shape, DimensionMark batch,
    DimensionMark channels, DimensionMark rest)
{
    DimensionList list;
    const std::size_t spatial = shape.size() - 2;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i == 0)
            list.push_back(builder.named("n", shape[i], batch));
        else if (i == 1)
            list.push_back(builder.named("c", shape[i], channels));
        else if (spatial <= 3)
            list.push_back(builder.named(kSpatialNames[spatial][i - 2], shape[i], rest));
        else
            list.push_back(builder.fresh(shape[i], rest));
    }
    return list;
}

std::string annotateChannelNorm(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    if (call.inRank(0) < 2)
        return std::string(nameOf(call.kind)) + " needs an input of at least two dimensions";
    const bool statistic = call.kind == BatchMean || call.kind == BatchVariance;
    const auto spatial = DimensionMark::Spatial;
    const std::int64_t groups = call.kind == InstanceNorm ? 0 : call.attributes.integer("groups");
    DimensionList x = channelDimensions(builder, call.in(0), statistic && groups == 0 ? kReduce : spatial,
        call.kind == LocalResponseNorm ? kFrozen : spatial,
        statistic                       ? kReduce
            : call.kind == InstanceNorm ? kFrozen
                                        : spatial);
    std::vector<Term> terms = termsOf(x);
    Term channels = terms[1];
    std::vector<Term> statistics{channels};
    if (groups > 0) { // each of its own channels
        const std::int32_t group = builder.named("g", groups);
        const std::int64_t each = call.in(0)[1] / groups;
        channels = builder.compound({group, builder.named("k", each, kFrozen)});
        terms[1] = channels;
        statistics = {terms[0], Term{{group}}};
    }
    builder.input(0, terms);
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        const bool ofStatistics = call.kind != InstanceNorm && call.kind != LocalResponseNorm && slot <= 2;
        if (call.has(slot))
            builder.input(slot, ofStatistics ? statistics : std::vector<Term>{channels});
    }
    builder.output(0, statistic ? statistics : terms);
    return {};
}

// --- work

double largestElements(const WorkShapes &shapes)
{
    return std::max(shapes.inElements(0), shapes.outElements(0));
}

/// The window of channels, and a power.
double responseOperations(const WorkShapes &shapes)
{
    return (2 * static_cast<double>(shapes.attributes().integer("size", 1)) + 12) * largestElements(shapes);
}

double halfMore(const WorkShapes & /*shapes*/, double forward)
{
    return 1.5 * forward;
}

} // namespace

std::vector<KindEntry> normKinds()
{
    using enum OperatorKind;
    constexpr auto kNorm = OperatorCategory::Normalization;
    constexpr auto kWhole = DimensionLock::Whole;
    constexpr auto kStatistics = DimensionLock::Statistics;
    constexpr std::string_view kLetters = "nchwdlgk";
    const auto perElement = [](double operations) -> WorkRule {
        return {operations, largestElements, halfMore};
    };
    const SplitRule channels{annotateChannelNorm, kWhole, {}, kLetters};
    const SplitRule ofSamples{annotateChannelNorm, kStatistics, {}, kLetters};
    const SplitRule fromAxis{annotateFromAxis, kStatistics};
    const SplitRule alongAxis{annotateAlongAxis, DimensionLock::Reduced};
    const GradientNeeds affine{{NeedOfInput{{0, 1}}, NeedOfInput{{0}}, NeedOfInput{}}}; // (x, scale, bias)
    const GradientNeeds output{{NeedOfInput{{}, {0}}}};
    const GradientNeeds input{{NeedOfInput{{0}}}};
    return {
        {BatchMean, "BatchMean", kNorm, {}, inferChannelNorm, {annotateChannelNorm, kWhole, {0}, kLetters},
            {{NeedOfInput{}}}, perElement(1), {.statistics = {0}}},
        {BatchVariance, "BatchVariance", kNorm, {2, 2}, inferChannelNorm, channels,
            {{NeedOfInput{{0, 1}}, NeedOfInput{{0, 1}}}}, perElement(3), {.statistics = {0}}},
        {BatchNormalize, "BatchNormalize", kNorm, {5, 5}, inferChannelNorm, channels,
            {{NeedOfInput{{2, 3}}, NeedOfInput{{2, 3}}, NeedOfInput{{0, 1, 2, 3}}, NeedOfInput{{0, 1, 2}},
                NeedOfInput{}}},
            perElement(4)},
        {InstanceNorm, "InstanceNorm", kNorm, {3, 3}, inferChannelNorm, ofSamples, affine, perElement(8)},
        {LayerNorm, "LayerNorm", kNorm, {1, 3}, inferFromAxis, fromAxis, affine, perElement(8),
            {.words = "layer norm"}},
        {RmsNorm, "RmsNorm", kNorm, {1, 2}, inferFromAxis, fromAxis, affine, perElement(8),
            {.words = "RMS norm"}},
        {LocalResponseNorm, "LocalResponseNorm", kNorm, {}, inferChannelNorm, ofSamples, input,
            {1, responseOperations, halfMore}},
        {Softmax, "Softmax", kNorm, {}, inferAlongAxis, alongAxis, output, perElement(14),
            {.words = "softmax"}},
        {LogSoftmax, "LogSoftmax", kNorm, {}, inferAlongAxis, alongAxis, output, perElement(14),
            {.words = "softmax"}},
        {LpNormalize, "LpNormalize", kNorm, {}, inferAlongAxis, alongAxis, input, perElement(8)},
    };
}

} // namespace planloom
