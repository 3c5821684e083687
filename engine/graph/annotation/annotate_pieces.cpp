// Moves that take tensors apart, put them together or enlarge them: along these dimensions, too, parts have
// pieces.

#include "engine/graph/annotation/annotation_builder.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace planloom {

namespace {

/// The input that is more than half of what a Concat makes along `axis`, and what lies before it; -1 if none
/// is.
std::pair<std::int32_t, std::int64_t> largestJoined(const AnnotateCall &call, std::size_t axis)
{
    std::int64_t before = 0;
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot) || axis >= call.inRank(slot))
            continue;
        if (2 * call.in(slot)[axis] > call.out(0)[axis])
            return {static_cast<std::int32_t>(slot), before};
        before += call.in(slot)[axis];
    }
    return {-1, 0};
}

/// What the input and the output have of one dimension.
using TermPair = std::pair<Term, Term>;

TermPair keptWhole(const AnnotateCall &call, AnnotationBuilder &builder, std::size_t i)
{
    return {Term{{builder.literal(call.in(0)[i])}}, Term{{builder.literal(call.out(0)[i])}}};
}

/// Dimensions for which `through` holds go through as they are, `other` gives the terms of the others.
template<typename Predicate, typename Other>
void annotateThrough(const AnnotateCall &call, AnnotationBuilder &builder, Predicate &&through, Other &&other)
{
    std::vector<Term> x;
    std::vector<Term> y;
    for (std::size_t i = 0; i < call.inRank(0); ++i) {
        TermPair pair;
        if (call.in(0)[i] == call.out(0)[i] && through(i)) {
            pair.first = Term{{builder.fresh(call.in(0)[i])}};
            pair.second = pair.first;
        } else {
            pair = other(i);
        }
        x.push_back(std::move(pair.first));
        y.push_back(std::move(pair.second));
    }
    builder.input(0, std::move(x));
    builder.output(0, std::move(y));
}

/// How often an element is repeated where each is repeated alike: nearest neighbours by a whole factor.
std::int64_t repeatedBy(const AnnotateCall &call, std::size_t i, double scale)
{
    const std::int64_t factor = call.in(0)[i] == 0 ? 0 : call.out(0)[i] / call.in(0)[i];
    if (factor < 2 || factor * call.in(0)[i] != call.out(0)[i] || scale != static_cast<double>(factor)
        || call.attributes.text("mode", "nearest") != "nearest")
        return 0;
    const std::string coordinates = call.attributes.text("coordinate_transformation_mode", "half_pixel");
    const std::string rounding = call.attributes.text("nearest_mode", "round_prefer_floor");
    const bool rounds = rounding == "round_prefer_floor" || rounding == "round_prefer_ceil";
    const bool middle = coordinates == "half_pixel" || coordinates == "pytorch_half_pixel";
    const bool corner = coordinates == "asymmetric" || coordinates == "tf_half_pixel_for_nn";
    return (corner && rounding == "floor") || (middle && rounds) ? factor : 0;
}

} // namespace

/// Dimension `axis` of every tensor is a literal, all others go through. But where one input of a Concat is
/// more than half of it (an image that is rolled, tokens behind a class token), parts have the pieces of it
/// that belong to theirs, and the others whole.
std::string annotateJoined(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const std::int64_t axis = call.attributes.integer("axis");
    if (axis < 0 || static_cast<std::size_t>(axis) >= call.inRank(0))
        return misshapen(call);
    const DimensionList dimensions = builder.freshAll(call.in(0));
    const auto along = [&](const Shape &shape) {
        DimensionList list = dimensions;
        if (shape.size() == list.size())
            list[static_cast<std::size_t>(axis)] = builder.literal(shape[static_cast<std::size_t>(axis)]);
        return list;
    };
    const auto place = static_cast<std::size_t>(axis);
    const auto termsOf = [&](const Shape &shape) {
        std::vector<Term> terms;
        for (const std::int32_t dimension : along(shape))
            terms.push_back(Term{{dimension}});
        return terms;
    };
    const auto [largest, before] = call.kind == OperatorKind::Concat && call.outRank(0) == call.inRank(0)
        ? largestJoined(call, place)
        : std::pair<std::int32_t, std::int64_t>{-1, 0};
    AnnotationBuilder::WindowTerms pieces;
    if (largest >= 0)
        pieces = builder.windows({}, call.out(0)[place],
            {.extent = call.in(static_cast<std::size_t>(largest))[place], .pad = before});
    std::vector<std::int32_t> all;
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        std::vector<Term> terms = termsOf(call.in(slot));
        if (static_cast<std::int32_t>(slot) == largest && place < terms.size())
            terms[place] = pieces.elements;
        builder.input(slot, std::move(terms));
        all.push_back(static_cast<std::int32_t>(slot));
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        std::vector<Term> terms = termsOf(call.out(slot));
        if (largest >= 0 && place < terms.size())
            terms[place] = pieces.windows;
        builder.output(slot, std::move(terms));
    }
    if (isFloatingCall(call))
        builder.linear(std::move(all));
    return {};
}

/// Parts of a slice read the elements from their first to their last.
std::string annotateSlice(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto starts = call.attributes.integers("starts");
    const auto steps = call.attributes.integers("steps");
    if (call.outRank(0) != call.inRank(0) || starts.size() != call.inRank(0)
        || steps.size() != call.inRank(0))
        return misshapen(call);
    annotateThrough(
        call, builder, [&](std::size_t i) { return starts[i] == 0 && steps[i] == 1; },
        [&](std::size_t i) -> TermPair {
            if (starts[i] < 0 || steps[i] < 1)
                return keptWhole(call, builder, i);
            auto terms = builder.windows(
                {}, call.out(0)[i], {.extent = call.in(0)[i], .stride = steps[i], .pad = -starts[i]});
            return {std::move(terms.elements), std::move(terms.windows)};
        });
    return {};
}

/// What is padded with a constant is cut as it was, and each part makes its share of the padding.
std::string annotatePad(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto pads = call.attributes.integers("pads");
    if (call.outRank(0) != call.inRank(0) || pads.size() != 2 * call.inRank(0))
        return misshapen(call);
    const bool constant = call.attributes.text("mode", "constant") == "constant";
    annotateThrough(
        call, builder, [&](std::size_t i) { return pads[i] == 0 && pads[i + call.inRank(0)] == 0; },
        [&](std::size_t i) -> TermPair {
            if (!constant || pads[i] < 0 || pads[i + call.inRank(0)] < 0)
                return keptWhole(call, builder, i);
            auto terms = builder.windows({}, call.in(0)[i], {.extent = call.out(0)[i], .pad = -pads[i]});
            if (terms.elements.reach == WindowReach::Windows) {
                terms.elements.reach = WindowReach::Share;
                terms.windows.reach = WindowReach::Met;
            }
            return {std::move(terms.windows), std::move(terms.elements)};
        });
    const bool affine = constant && call.attributes.real("value") != 0;
    if (isFloatingCall(call) && !affine)
        builder.linear({0});
    return {};
}

std::string annotateResize(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (call.outRank(0) != call.inRank(0))
        return misshapen(call);
    const auto found = call.attributes.all().find("scales");
    const auto *scales =
        found == call.attributes.all().end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
    const auto region = call.attributes.all().find("roi");
    const auto *crops =
        region == call.attributes.all().end() ? nullptr : std::get_if<std::vector<double>>(&region->second);
    annotateThrough(
        call, builder,
        [&](std::size_t i) {
            const bool whole = crops == nullptr || crops->size() != 2 * call.inRank(0)
                || ((*crops)[i] == 0.0 && (*crops)[i + call.inRank(0)] == 1.0);
            return whole && (scales == nullptr || i >= scales->size() || (*scales)[i] == 1.0);
        },
        [&](std::size_t i) -> TermPair {
            const double scale = scales != nullptr && i < scales->size()
                ? (*scales)[i]
                : static_cast<double>(call.out(0)[i]) / static_cast<double>(call.in(0)[i]);
            const std::int64_t factor = repeatedBy(call, i, scale);
            if (factor == 0)
                return keptWhole(call, builder, i);
            const std::int32_t element = builder.fresh(call.in(0)[i]);
            return {Term{{element}}, builder.compound({element, builder.literal(factor)})};
        });
    return {};
}

} // namespace planloom
