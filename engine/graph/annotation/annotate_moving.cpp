#include "engine/graph/annotation/annotation_builder.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace planloom {

namespace {

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

} // namespace

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
    if (isFloatingCall(call))
        builder.linear({0});
    return {};
}

namespace {

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

/// Every place may read any element of its sample's channel.
std::string annotateGridSample(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(1))
        return missing(call);
    if (call.inRank(0) < 3 || call.inRank(1) != call.inRank(0) || call.outRank(0) != call.inRank(0))
        return misshapen(call);
    DimensionList y = builder.freshAll(call.out(0));
    DimensionList x = builder.literals(call.in(0));
    x[0] = y[0];
    x[1] = y[1];
    DimensionList grid{y[0]};
    grid.insert(grid.end(), y.begin() + 2, y.end());
    grid.push_back(builder.literal(call.in(1).back()));
    builder.input(0, x);
    builder.input(1, grid);
    builder.output(0, y);
    return {};
}

std::string annotateGather(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(1))
        return missing(call);
    const std::int64_t axis = call.attributes.integer("axis");
    if (axis < 0 || static_cast<std::size_t>(axis) >= call.inRank(0))
        return misshapen(call);
    DimensionList x;
    for (std::size_t i = 0; i < call.inRank(0); ++i) {
        x.push_back(builder.fresh(
            call.in(0)[i], i == static_cast<std::size_t>(axis) ? kFrozen : DimensionMark::Spatial));
    }
    const DimensionList indices = builder.freshAll(call.in(1));
    DimensionList y(x.begin(), x.begin() + axis);
    y.insert(y.end(), indices.begin(), indices.end());
    y.insert(y.end(), x.begin() + axis + 1, x.end());
    builder.input(0, x);
    builder.input(1, indices);
    builder.output(0, y);
    return {};
}

std::string annotateEmbedding(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(1))
        return missing(call);
    if (call.inRank(0) != 2)
        return misshapen(call);
    const DimensionList table{
        builder.named("v", call.in(0)[0], DimensionMark::Reduce), builder.named("e", call.in(0)[1])};
    const DimensionList indices = builder.freshAll(call.in(1));
    DimensionList y = indices;
    y.push_back(table[1]);
    builder.input(0, table);
    builder.input(1, indices);
    builder.output(0, y);
    return {};
}

/// GatherElements and ScatterElements address the same place in every dimension but `axis`.
std::string annotateElements(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    const std::size_t inputs = call.kind == GatherElements ? 2 : 3;
    for (std::size_t slot = 1; slot < inputs; ++slot) {
        if (!call.has(slot))
            return missing(call);
        if (call.inRank(slot) != call.inRank(0))
            return misshapen(call);
    }
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    DimensionList x;
    DimensionList indices;
    for (std::size_t i = 0; i < call.inRank(0); ++i) {
        if (i != axis && call.in(0)[i] == call.in(1)[i]) {
            x.push_back(builder.fresh(call.in(0)[i]));
            indices.push_back(x.back());
        } else {
            x.push_back(builder.literal(call.in(0)[i]));
            indices.push_back(builder.literal(call.in(1)[i]));
        }
    }
    builder.input(0, x);
    builder.input(1, indices);
    if (call.kind == ScatterElements)
        builder.input(2, indices);
    builder.output(0, call.kind == GatherElements ? indices : x);
    return {};
}

/// (x [b.. i.. s..], indices [b.. j.. q]) -> [b.. j.. s..]: an index names q dimensions i.
std::string annotateGatherND(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(1))
        return missing(call);
    const std::int64_t batch = call.attributes.integer("batch_dims");
    if (call.inRank(1) == 0 || batch < 0 || static_cast<std::size_t>(batch) >= call.inRank(1))
        return misshapen(call);
    const std::int64_t named = batch + call.in(1).back();
    if (call.in(1).back() < 0 || named < 0 || static_cast<std::size_t>(named) > call.inRank(0))
        return misshapen(call);
    DimensionList x;
    for (std::size_t i = 0; i < call.inRank(0); ++i) {
        const auto position = static_cast<std::int64_t>(i);
        x.push_back(position < batch || position >= named ? builder.fresh(call.in(0)[i])
                                                          : builder.literal(call.in(0)[i]));
    }
    DimensionList y(x.begin(), x.begin() + batch);
    for (std::size_t i = static_cast<std::size_t>(batch); i + 1 < call.inRank(1); ++i)
        y.push_back(builder.fresh(call.in(1)[i]));
    DimensionList indices = y;
    indices.push_back(builder.literal(call.in(1).back()));
    y.insert(y.end(), x.begin() + named, x.end());
    builder.input(0, x);
    builder.input(1, indices);
    builder.output(0, y);
    return {};
}

std::string annotateScatterND(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(1) || !call.has(2))
        return missing(call);
    if (call.inRank(1) == 0 || call.in(1).back() < 0
        || static_cast<std::size_t>(call.in(1).back()) > call.inRank(0))
        return misshapen(call);
    const std::int64_t named = call.in(1).back();
    DimensionList x;
    for (std::size_t i = 0; i < call.inRank(0); ++i) {
        x.push_back(static_cast<std::int64_t>(i) >= named ? builder.fresh(call.in(0)[i])
                                                          : builder.literal(call.in(0)[i]));
    }
    const DimensionList indices = builder.literals(call.in(1));
    DimensionList updates(indices.begin(), indices.end() - 1);
    updates.insert(updates.end(), x.begin() + named, x.end());
    builder.input(0, x);
    builder.input(1, indices);
    builder.input(2, updates);
    builder.output(0, x);
    return {};
}

std::string annotateOneHot(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const std::int64_t axis = call.attributes.integer("axis");
    if (axis < 0 || static_cast<std::size_t>(axis) > call.inRank(0) || call.outRank(0) != call.inRank(0) + 1)
        return misshapen(call);
    const DimensionList indices = builder.freshAll(call.in(0));
    DimensionList y = indices;
    y.insert(y.begin() + axis, builder.literal(call.out(0)[static_cast<std::size_t>(axis)]));
    builder.input(0, indices);
    builder.output(0, y);
    return {};
}

std::string annotateAxisFrozen(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    DimensionList x;
    for (std::size_t i = 0; i < call.inRank(0); ++i)
        x.push_back(builder.fresh(call.in(0)[i], i == axis ? kFrozen : DimensionMark::Spatial));
    builder.input(0, x);
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        DimensionList y = x;
        if (axis < y.size() && axis < call.outRank(slot) && call.out(slot)[axis] != call.in(0)[axis])
            y[axis] = builder.literal(call.out(slot)[axis]);
        builder.output(slot, y);
    }
    return {};
}

std::string annotateTrilu(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    DimensionList x;
    const std::size_t rank = call.inRank(0);
    for (std::size_t i = 0; i < rank; ++i) {
        // The diagonal ties rows and columns together; EyeLike is nothing but that.
        const bool tied = call.kind == EyeLike || i + 2 >= rank;
        x.push_back(builder.fresh(call.in(0)[i], tied ? kFrozen : DimensionMark::Spatial));
    }
    builder.input(0, x);
    builder.output(0, x);
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

std::string annotateReverseSequence(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (!call.has(1))
        return missing(call);
    const auto batch = static_cast<std::size_t>(call.attributes.integer("batch_axis"));
    const auto time = static_cast<std::size_t>(call.attributes.integer("time_axis"));
    if (batch >= call.inRank(0) || time >= call.inRank(0))
        return misshapen(call);
    DimensionList x;
    for (std::size_t i = 0; i < call.inRank(0); ++i)
        x.push_back(builder.fresh(call.in(0)[i], i == time ? kFrozen : DimensionMark::Spatial));
    builder.input(0, x);
    builder.input(1, DimensionList{x[batch]});
    builder.output(0, x);
    return {};
}

/// True for kinds whose output is linear in input 0 whatever their attributes.
bool isLinearMove(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case Transpose:
    case Expand:
    case Tile:
    case Slice:
    case Gather:
    case Embedding:
    case GatherElements:
    case GatherND:
    case CumSum:
    case Trilu:
    case GridSample:
    case DepthToSpace:
    case SpaceToDepth:
    case ReverseSequence:
        return true;
    default:
        return false;
    }
}

std::string annotateMove(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    switch (call.kind) {
    case Transpose:
        return annotateTranspose(call, builder);
    case Expand: {
        const DimensionList y = builder.freshAll(call.out(0));
        builder.input(0, builder.broadcast(y, call.in(0)));
        builder.output(0, y);
        return {};
    }
    case Tile:
        return annotateTile(call, builder);
    case Concat:
    case Split:
        return annotateJoined(call, builder);
    case Slice:
        return annotateSlice(call, builder);
    case Pad:
        return annotatePad(call, builder);
    case Gather:
        return annotateGather(call, builder);
    case Embedding:
        return annotateEmbedding(call, builder);
    case GatherElements:
    case ScatterElements:
        return annotateElements(call, builder);
    case GatherND:
        return annotateGatherND(call, builder);
    case ScatterND:
        return annotateScatterND(call, builder);
    case OneHot:
        return annotateOneHot(call, builder);
    case TopK:
    case CumSum:
        return annotateAxisFrozen(call, builder);
    case Trilu:
    case EyeLike:
        return annotateTrilu(call, builder);
    case Resize:
        return annotateResize(call, builder);
    case GridSample:
        return annotateGridSample(call, builder);
    case DepthToSpace:
    case SpaceToDepth:
        return annotateBlocks(call, builder);
    case ReverseSequence:
        return annotateReverseSequence(call, builder);
    default:
        return std::string(nameOf(call.kind)) + " has no annotation";
    }
}

} // namespace

std::string annotateMoving(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (call.outputs.empty())
        return missing(call);
    if (call.kind == OperatorKind::Range || call.kind == OperatorKind::Fill) {
        builder.output(0, builder.freshAll(call.out(0)));
        return {};
    }
    if (!call.has(0))
        return missing(call);
    if (call.kind == OperatorKind::NonZero || hasPlaces(call.attributes))
        return annotatePlaces(call, builder);
    std::string problem = annotateMove(call, builder);
    const bool affine = call.kind == OperatorKind::Resize && call.attributes.real("extrapolation_value") != 0;
    if (problem.empty() && (isLinearMove(call.kind) || call.kind == OperatorKind::Resize) && !affine
        && isFloatingCall(call))
        builder.linear({0});
    return problem;
}

} // namespace planloom
