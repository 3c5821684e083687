// Moves along one axis or by coordinates, and tensors that are made of nothing but their attributes.

#include "engine/graph/operators/kind_entry.h"

#include <utility>

namespace planloom {

namespace {

// --- types

TypesOutcome inferOneHot(const InferCall &call)
{
    const std::int64_t depth = call.attributes.integer("depth");
    if (depth < 1)
        return call.badAttribute("depth", "a positive number");
    TRY(const std::size_t axis, call.axis(call.rank(0) + 1));
    Shape y = call.in(0);
    y.insert(y.begin() + static_cast<std::ptrdiff_t>(axis), depth);
    return one(call.declared.empty() ? DataType::Float32 : call.declared[0].dataType, std::move(y));
}

TypesOutcome inferTopK(const InferCall &call)
{
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    const std::int64_t k = call.attributes.integer("k");
    if (k < 0 || k > call.in(0)[axis])
        return call.badAttribute(
            "k", "at most " + std::to_string(call.in(0)[axis]) + ", found " + std::to_string(k));
    TensorType values = call.type(0);
    values.shape[axis] = k;
    TensorType indices{DataType::Int64, values.shape};
    return std::vector<TensorType>{std::move(values), std::move(indices)};
}

TypesOutcome inferGridSample(const InferCall &call)
{
    const Shape &x = call.in(0);
    const Shape &grid = call.in(1);
    if (x.size() < 3 || !isFloating(call.type(0).dataType))
        return call.misfit(0, "a sample, channel and at least one more dimension of floating numbers");
    if (x.size() != grid.size() || grid[0] != x[0] || call.type(1).dataType != call.type(0).dataType
        || grid.back() != static_cast<std::int64_t>(x.size()) - 2)
        return call.misfit(1,
            "places for each of " + std::to_string(x[0]) + " samples, of " + std::to_string(x.size() - 2)
                + " numbers of the element type of input 0 each");
    const std::string mode = call.attributes.text("mode", "linear");
    if (mode != "linear" && mode != "nearest" && mode != "cubic")
        return call.badAttribute("mode", "linear, nearest or cubic, found " + mode);
    const std::string padding = call.attributes.text("padding_mode", "zeros");
    if (padding != "zeros" && padding != "border" && padding != "reflection")
        return call.badAttribute("padding_mode", "zeros, border or reflection, found " + padding);
    Shape y{x[0], x[1]};
    y.insert(y.end(), grid.begin() + 1, grid.end() - 1);
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferReverseSequence(const InferCall &call)
{
    TRY(const std::size_t batch, call.axis(call.rank(0), "batch_axis"));
    TRY(const std::size_t time, call.axis(call.rank(0), "time_axis"));
    if (batch == time)
        return call.badAttribute("time_axis", "another dimension than 'batch_axis'");
    if (!isIndexType(call.type(1).dataType) || call.in(1) != Shape{call.in(0)[batch]})
        return call.misfit(1, "one integer per sequence, " + toString(Shape{call.in(0)[batch]}));
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome inferCumSum(const InferCall &call)
{
    TRY_VOID(call.axis(call.rank(0)));
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome inferTrilu(const InferCall &call)
{
    if (call.rank(0) < 2)
        return call.misfit(0, "at least two dimensions");
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome inferEyeLike(const InferCall &call)
{
    if (call.rank(0) != 2)
        return call.misfit(0, "two dimensions");
    return one(call.declared.empty() ? call.type(0).dataType : call.declared[0].dataType, call.in(0));
}

TypesOutcome inferRange(const InferCall &call)
{
    if (call.declared.empty() || call.declared[0].shape.size() != 1)
        return call.badOutput("a declared type of one dimension");
    return one(call.declared[0].dataType, call.declared[0].shape);
}

TypesOutcome inferFill(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared type");
    return one(call.declared[0].dataType, call.declared[0].shape);
}

// --- annotations

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
    const DimensionList x =
        dimensionsWith(builder, call.in(0), kFrozen, [axis](std::size_t i) { return i == axis; });
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
    // The diagonal ties rows and columns together; EyeLike is nothing but that.
    const DimensionList x = dimensionsWith(builder, call.in(0), kFrozen,
        [&](std::size_t i) { return call.kind == OperatorKind::EyeLike || i + 2 >= call.inRank(0); });
    builder.input(0, x);
    builder.output(0, x);
    return {};
}

/// Every place may read any element of its sample's channel.
std::string annotateGridSample(const AnnotateCall &call, AnnotationBuilder &builder)
{
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

std::string annotateReverseSequence(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto batch = static_cast<std::size_t>(call.attributes.integer("batch_axis"));
    const auto time = static_cast<std::size_t>(call.attributes.integer("time_axis"));
    if (batch >= call.inRank(0) || time >= call.inRank(0))
        return misshapen(call);
    const DimensionList x =
        dimensionsWith(builder, call.in(0), kFrozen, [time](std::size_t i) { return i == time; });
    builder.input(0, x);
    builder.input(1, DimensionList{x[batch]});
    builder.output(0, x);
    return {};
}

std::string annotateMade(const AnnotateCall &call, AnnotationBuilder &builder)
{
    builder.output(0, builder.freshAll(call.out(0)));
    return {};
}

} // namespace

std::vector<KindEntry> axisKinds()
{
    using enum OperatorKind;
    constexpr auto kMovement = OperatorCategory::Movement;
    constexpr auto kReduction = OperatorCategory::Reduction;
    constexpr auto kWhole = DimensionLock::Whole;
    const GradientNeeds nothing{{NeedOfInput{}}};
    const KindMarks declared{.isDeclared = true};
    return {
        {OneHot, "OneHot", kMovement, {}, inferOneHot, {annotateOneHot}},
        {TopK, "TopK", kReduction, {}, inferTopK, {annotateAxisFrozen, DimensionLock::Along},
            {{NeedOfInput{{}, {1}}}}, {8, firstInput}},
        {CumSum, "CumSum", kReduction, {}, inferCumSum, {annotateAxisFrozen, DimensionLock::Steps, {0}},
            nothing, {1, firstInput}},
        {Trilu, "Trilu", kMovement, {}, inferTrilu, {annotateTrilu, kWhole, {0}}, nothing},
        {GridSample, "GridSample", kMovement, {2, 2}, inferGridSample,
            {annotateGridSample, DimensionLock::LookedUp, {0}}, {{NeedOfInput{{1}}, NeedOfInput{{0, 1}}}},
            {8, firstOutput}},
        {ReverseSequence, "ReverseSequence", kMovement, {2, 2}, inferReverseSequence,
            {annotateReverseSequence, kWhole, {0}}, {{NeedOfInput{{1}}}}},
        {EyeLike, "EyeLike", kMovement, {}, inferEyeLike, {annotateTrilu}, {}, {}, declared},
        {Range, "Range", kMovement, {0, 0}, inferRange, {annotateMade}, {}, {}, declared},
        {Fill, "Fill", kMovement, {0, 0}, inferFill, {annotateMade}, {}, {}, declared},
    };
}

} // namespace planloom
