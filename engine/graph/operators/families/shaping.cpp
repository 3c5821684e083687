// Moves that regroup, repeat, join, cut, pad or enlarge tensors.

#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

namespace planloom {

namespace {

// --- types

TypesOutcome inferReshape(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    const Shape &y = call.declared[0].shape;
    const bool negative = std::any_of(y.begin(), y.end(), [](std::int64_t extent) { return extent < 0; });
    std::int64_t product = 1;
    bool overflow = negative;
    for (const std::int64_t extent : y)
        overflow = overflow || __builtin_mul_overflow(product, extent, &product);
    if (overflow || product != elementCount(call.in(0)))
        return call.badOutput("as many elements as input 0 has, " + std::to_string(elementCount(call.in(0))));
    return one(call.type(0).dataType, y);
}

TypesOutcome inferTranspose(const InferCall &call)
{
    const auto permutation = call.attributes.integers("permutation");
    const Shape &x = call.in(0);
    std::vector<std::int64_t> sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    bool valid = sorted.size() == x.size();
    for (std::size_t i = 0; valid && i < sorted.size(); ++i)
        valid = sorted[i] == static_cast<std::int64_t>(i);
    if (!valid)
        return call.badAttribute("permutation", "each dimension of " + toString(x) + " once");
    Shape y;
    for (const std::int64_t axis : permutation)
        y.push_back(x[static_cast<std::size_t>(axis)]);
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferExpand(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    const Shape &x = call.in(0);
    const Shape &y = call.declared[0].shape;
    bool fits = y.size() >= x.size();
    for (std::size_t i = 0; fits && i < x.size(); ++i) {
        const std::int64_t from = x[x.size() - 1 - i];
        fits = from == 1 || from == y[y.size() - 1 - i];
    }
    if (!fits)
        return call.badOutput("a shape to which input 0's " + toString(x) + " broadcasts");
    return one(call.type(0).dataType, y);
}

TypesOutcome inferTile(const InferCall &call)
{
    const auto repeats = call.attributes.integers("repeats");
    Shape y = call.in(0);
    if (repeats.size() != y.size())
        return call.badAttribute("repeats", std::to_string(y.size()) + " numbers, one per dimension");
    for (std::size_t i = 0; i < y.size(); ++i) {
        if (repeats[i] < 0 || __builtin_mul_overflow(y[i], repeats[i], &y[i]))
            return call.badAttribute("repeats", "numbers that are not negative, and not so large");
    }
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferConcat(const InferCall &call)
{
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    Shape y = call.in(0);
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            return call.misfit(slot, "a tensor, found none");
        Shape expected = call.in(0);
        if (call.rank(slot) == expected.size())
            expected[axis] = call.in(slot)[axis];
        if (call.in(slot) != expected)
            return call.misfit(
                slot, "input 0's shape, " + toString(y) + ", but for dimension " + std::to_string(axis));
        if (call.type(slot).dataType != call.type(0).dataType)
            return call.misfit(
                slot, std::string("the element type of input 0, ") + nameOf(call.type(0).dataType));
        y[axis] += call.in(slot)[axis];
    }
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferSplit(const InferCall &call)
{
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    const auto sizes = call.attributes.integers("sizes");
    std::int64_t left = call.in(0)[axis];
    std::vector<TensorType> types;
    for (const std::int64_t size : sizes) {
        if (size < 0 || size > left)
            return call.badAttribute("sizes", "sizes that add up to " + std::to_string(call.in(0)[axis]));
        left -= size;
        types.push_back(call.type(0));
        types.back().shape[axis] = size;
    }
    if (left != 0 || types.empty())
        return call.badAttribute("sizes", "sizes that add up to " + std::to_string(call.in(0)[axis]));
    return types;
}

TypesOutcome inferSlice(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    const Shape &x = call.in(0);
    const Shape &y = call.declared[0].shape;
    const auto starts = call.attributes.integers("starts");
    const auto steps = call.attributes.integers("steps");
    if (y.size() != x.size())
        return call.badOutput("as many dimensions as input 0 has, " + toString(x));
    if (starts.size() != x.size())
        return call.badAttribute("starts", "one number per dimension of " + toString(x));
    if (steps.size() != x.size())
        return call.badAttribute("steps", "one number per dimension of " + toString(x));
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (y[i] == 0)
            continue;
        std::int64_t last = 0;
        const bool overflow = __builtin_mul_overflow(y[i] - 1, steps[i], &last)
            || __builtin_add_overflow(last, starts[i], &last);
        if (y[i] < 0 || steps[i] == 0 || overflow || starts[i] < 0 || starts[i] >= x[i] || last < 0
            || last >= x[i])
            return call.badOutput(
                "a slice that lies inside dimension " + std::to_string(i) + " of " + toString(x));
    }
    return one(call.type(0).dataType, y);
}

TypesOutcome inferPad(const InferCall &call)
{
    const auto pads = call.attributes.integers("pads");
    Shape y = call.in(0);
    if (pads.size() != 2 * y.size())
        return call.badAttribute("pads", "two numbers per dimension of " + toString(y));
    const std::string mode = call.attributes.text("mode", "constant");
    if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
        return call.badAttribute(
            "mode", "\"constant\", \"reflect\", \"edge\" or \"wrap\", found \"" + mode + "\"");
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::int64_t extent = y[i];
        const std::int64_t most = std::max(pads[i], pads[i + y.size()]);
        if ((mode == "reflect" && most >= std::max<std::int64_t>(extent, 1))
            || ((mode == "edge" || mode == "wrap") && extent == 0 && most > 0))
            return call.badAttribute("pads",
                "no more than dimension " + std::to_string(i) + " of " + toString(call.in(0)) + " can give");
        y[i] += pads[i] + pads[i + y.size()];
        if (y[i] < 0)
            return call.badAttribute("pads", "to leave something of dimension " + std::to_string(i));
    }
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferResize(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    if (call.declared[0].shape.size() != call.rank(0))
        return call.badOutput("as many dimensions as input 0 has, " + toString(call.in(0)));
    return one(call.type(0).dataType, call.declared[0].shape);
}

TypesOutcome inferBlocks(const InferCall &call)
{
    using enum OperatorKind;
    const std::int64_t size = call.attributes.integer("blocksize");
    const Shape &x = call.in(0);
    if (x.size() != 4)
        return call.misfit(0, "four dimensions");
    if (size < 1 || size > (std::int64_t{1} << 15))
        return call.badAttribute("blocksize", "a small positive number");
    if (call.kind == DepthToSpace) {
        if (x[1] % (size * size) != 0)
            return call.misfit(0, "a multiple of " + std::to_string(size * size) + " channels");
        return one(call.type(0).dataType, {x[0], x[1] / (size * size), x[2] * size, x[3] * size});
    }
    if (x[2] % size != 0 || x[3] % size != 0)
        return call.misfit(0, "heights and widths that are multiples of " + std::to_string(size));
    return one(call.type(0).dataType, {x[0], x[1] * size * size, x[2] / size, x[3] / size});
}

// --- annotations

/// One term per dimension of extents `shape`, with an identifier that is `term[i]` where dimension i is part
/// of a regrouped run, and 1 where it has no extent.
struct ReshapeSide {
    const Shape &shape;
    std::vector<Term> terms{};
    std::vector<std::size_t> dimensions{}; ///< Those of extent other than 1.

    ReshapeSide(AnnotationBuilder &builder, const Shape &extents)
        : shape(extents)
    {
        for (std::size_t i = 0; i < shape.size(); ++i) {
            terms.push_back(Term{{builder.literal(shape[i])}});
            if (shape[i] != 1)
                dimensions.push_back(i);
        }
    }
};

/// Both shapes are walked together and cut into the smallest runs of equal product. Row-major order makes
/// equal leading slabs of a run coincide, so the greatest common divisor of its leading extents may be split.
std::string annotateReshape(const AnnotateCall &call, AnnotationBuilder &builder)
{
    ReshapeSide in(builder, call.in(0));
    ReshapeSide out(builder, call.out(0));
    const bool empty = std::any_of(call.in(0).begin(), call.in(0).end(), [](auto size) { return size <= 0; })
        || std::any_of(call.out(0).begin(), call.out(0).end(), [](auto size) { return size <= 0; });
    std::size_t i = 0;
    std::size_t o = 0;
    while (!empty && i < in.dimensions.size() && o < out.dimensions.size()) {
        const std::size_t leadIn = in.dimensions[i];
        const std::size_t leadOut = out.dimensions[o];
        std::int64_t left = in.shape[leadIn];
        std::int64_t right = out.shape[leadOut];
        ++i;
        ++o;
        while (left != right) {
            if (left < right) {
                if (i == in.dimensions.size())
                    return "Reshape's input and output differ in their number of elements";
                left *= in.shape[in.dimensions[i++]];
            } else {
                if (o == out.dimensions.size())
                    return "Reshape's input and output differ in their number of elements";
                right *= out.shape[out.dimensions[o++]];
            }
        }
        const std::int64_t common = std::gcd(in.shape[leadIn], out.shape[leadOut]);
        if (common == 1)
            continue;
        const std::int32_t leading = builder.fresh(common);
        const auto divide = [&](ReshapeSide &side, std::size_t dimension) {
            side.terms[dimension] =
                builder.compound({leading, builder.literal(side.shape[dimension] / common)});
        };
        divide(in, leadIn);
        divide(out, leadOut);
    }
    builder.input(0, std::move(in.terms));
    builder.output(0, std::move(out.terms));
    return {};
}

std::string annotateTranspose(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto permutation = call.attributes.integers("permutation");
    if (permutation.size() != call.inRank(0))
        return misshapen(call);
    const DimensionList x = builder.freshAll(call.in(0));
    DimensionList y;
    for (const std::int64_t axis : permutation) {
        if (axis < 0 || static_cast<std::size_t>(axis) >= x.size())
            return "Transpose's permutation has an axis that its input lacks";
        y.push_back(x[static_cast<std::size_t>(axis)]);
    }
    builder.input(0, x);
    builder.output(0, y);
    return {};
}

std::string annotateExpand(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const DimensionList y = builder.freshAll(call.out(0));
    builder.input(0, builder.broadcast(y, call.in(0)));
    builder.output(0, y);
    return {};
}

std::string annotateTile(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto repeats = call.attributes.integers("repeats");
    if (repeats.size() != call.inRank(0) || call.outRank(0) != call.inRank(0))
        return misshapen(call);
    DimensionList x;
    std::vector<Term> y;
    for (std::size_t i = 0; i < repeats.size(); ++i) {
        if (repeats[i] == 1) {
            x.push_back(builder.fresh(call.in(0)[i]));
            y.push_back(Term{{x.back()}});
        } else {
            x.push_back(builder.fresh(call.in(0)[i], kFrozen));
            y.push_back(builder.compound({builder.fresh(repeats[i]), x.back()}));
        }
    }
    builder.input(0, x);
    builder.output(0, std::move(y));
    return {};
}

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
        std::vector<Term> terms = termsOf(along(call.in(slot)));
        if (static_cast<std::int32_t>(slot) == largest && place < terms.size())
            terms[place] = pieces.elements;
        builder.input(slot, std::move(terms));
        all.push_back(static_cast<std::int32_t>(slot));
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        std::vector<Term> terms = termsOf(along(call.out(slot)));
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
    if (isFloatingCall(call) && call.attributes.real("extrapolation_value") == 0)
        builder.linear({0});
    return {};
}

std::string annotateBlocks(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    const std::int64_t size = call.attributes.integer("blocksize", 1);
    if (call.inRank(0) != 4 || call.outRank(0) != 4 || size < 1 || size > (std::int64_t{1} << 15))
        return misshapen(call);
    const bool toSpace = call.kind == DepthToSpace;
    const Shape &deep = toSpace ? call.in(0) : call.out(0);
    const Shape &wide = toSpace ? call.out(0) : call.in(0);
    const std::int32_t n = builder.fresh(deep[0]);
    const std::int32_t block = builder.literal(size);
    std::vector<Term> deepTerms{Term{{n}}};
    std::vector<Term> wideTerms{Term{{n}}};
    if (toSpace && call.attributes.text("mode", "DCR") == "CRD") {
        // Depth is (channel, row in block, column in block): whole channels stay together.
        const std::int32_t channel = builder.fresh(wide[1]);
        deepTerms.push_back(builder.compound({channel, builder.literal(size * size)}));
        wideTerms.push_back(Term{{channel}});
    } else {
        deepTerms.push_back(Term{{builder.literal(deep[1])}});
        wideTerms.push_back(Term{{builder.literal(wide[1])}});
    }
    for (std::size_t i = 2; i < 4; ++i) {
        const std::int32_t extent = builder.fresh(deep[i]);
        deepTerms.push_back(Term{{extent}});
        wideTerms.push_back(builder.compound({extent, block}));
    }
    builder.input(0, toSpace ? deepTerms : wideTerms);
    builder.output(0, toSpace ? wideTerms : deepTerms);
    return {};
}

// --- gradients, entries

NeedsOfInputs needsOfConcat(const Operator &op)
{
    return NeedsOfInputs(op.inputs.size(), NeedOfInput{});
}

} // namespace

std::vector<KindEntry> shapingKinds()
{
    using enum OperatorKind;
    constexpr auto kMovement = OperatorCategory::Movement;
    constexpr auto kWhole = DimensionLock::Whole;
    constexpr auto kAlong = DimensionLock::Along;
    const GradientNeeds nothing{{NeedOfInput{}}};
    const WorkRule added{0, nullptr, onePerOutput};
    return {
        {Reshape, "Reshape", kMovement, {}, inferReshape, {annotateReshape, DimensionLock::Mixed, {0}},
            nothing, {}, {.isDeclared = true, .isView = true}},
        {Transpose, "Transpose", kMovement, {}, inferTranspose, {annotateTranspose, kWhole, {0}}, nothing},
        {Expand, "Expand", kMovement, {}, inferExpand, {annotateExpand, kWhole, {0}}, nothing, added,
            {.isDeclared = true}},
        {Tile, "Tile", kMovement, {}, inferTile, {annotateTile, kWhole, {0}}, nothing, added},
        {Concat, "Concat", kMovement, {1, kAnyNumber}, inferConcat, {annotateJoined, kAlong},
            {{}, needsOfConcat}},
        {Split, "Split", kMovement, {}, inferSplit, {annotateJoined, kAlong}, nothing},
        {Slice, "Slice", kMovement, {}, inferSlice, {annotateSlice, kAlong, {0}}, nothing, {},
            {.isDeclared = true}},
        {Pad, "Pad", kMovement, {}, inferPad, {annotatePad, kAlong}, nothing},
        {Resize, "Resize", kMovement, {}, inferResize, {annotateResize, DimensionLock::Borders}, nothing,
            {8, firstOutput}, {.isDeclared = true}},
        {DepthToSpace, "DepthToSpace", kMovement, {}, inferBlocks, {annotateBlocks, kWhole, {0}}, nothing},
        {SpaceToDepth, "SpaceToDepth", kMovement, {}, inferBlocks, {annotateBlocks, kWhole, {0}}, nothing},
    };
}

} // namespace planloom
