// Picking elements by indices, and writing them back; places that data choose (places.h).

#include "engine/graph/operators/kind_entry.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

// --- types

Result<void> checkIndices(const InferCall &call)
{
    if (!isIndexType(call.type(1).dataType))
        return call.misfit(1, "int32 or int64 indices");
    return {};
}

/// Of indices that are places: `groups` divides dimension `axis` of x and dimension `grouped` of the indices.
Result<void> checkGroups(const InferCall &call, std::size_t axis)
{
    if (!hasPlaces(call.attributes))
        return {};
    const std::int64_t groups = call.attributes.integer("groups");
    TRY(const std::size_t grouped, call.axis(call.rank(1), "grouped"));
    if (groups < 1 || axis >= call.rank(0) || call.in(0)[axis] % groups != 0
        || call.in(1)[grouped] % groups != 0)
        return call.badAttribute("groups",
            "a divisor of the dimension of " + toString(call.in(0))
                + " that is picked from, and of dimension " + std::to_string(grouped) + " of "
                + toString(call.in(1)));
    return {};
}

TypesOutcome inferGather(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkIndices(call));
    const Shape &x = call.in(0);
    if (call.kind == Embedding && x.size() != 2)
        return call.misfit(0, "a table of two dimensions");
    std::size_t axis = 0;
    if (call.kind == Gather) {
        TRY(const std::size_t given, call.axis(x.size()));
        axis = given;
        TRY_VOID(checkGroups(call, axis));
    }
    Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
    y.insert(y.end(), call.in(1).begin(), call.in(1).end());
    y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferElements(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkIndices(call));
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    bool fits = call.rank(1) == call.rank(0);
    for (std::size_t i = 0; fits && i < call.rank(0); ++i)
        fits = i == axis || call.in(1)[i] <= call.in(0)[i];
    if (!fits)
        return call.misfit(
            1, "extents no larger than input 0's " + toString(call.in(0)) + " but along the axis");
    if (call.kind == GatherElements)
        return one(call.type(0).dataType, call.in(1));
    if (call.in(2) != call.in(1) || call.type(2).dataType != call.type(0).dataType)
        return call.misfit(2, "input 0's element type and the indices' shape, " + toString(call.in(1)));
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome inferND(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkIndices(call));
    const Shape &x = call.in(0);
    const Shape &indices = call.in(1);
    const std::int64_t batch = call.kind == GatherND ? call.attributes.integer("batch_dims") : 0;
    if (indices.empty() || batch < 0 || static_cast<std::size_t>(batch) >= indices.size()
        || static_cast<std::size_t>(batch) > x.size()
        || indices.back() > static_cast<std::int64_t>(x.size()) - batch
        || !std::equal(x.begin(), x.begin() + batch, indices.begin()))
        return call.misfit(1,
            "indices into input 0, " + toString(x) + ", with " + std::to_string(batch) + " batch dimensions");
    TRY_VOID(checkGroups(call, 0));
    if (hasPlaces(call.attributes)
        && (batch != 0 || indices.back() < 1
            || call.attributes.integer("grouped") + 1 >= static_cast<std::int64_t>(indices.size())))
        return call.badAttribute("grouped", "a dimension of the indices before the last");
    Shape picked(indices.begin(), indices.end() - 1);
    picked.insert(picked.end(), x.begin() + batch + indices.back(), x.end());
    if (call.kind == GatherND)
        return one(call.type(0).dataType, std::move(picked));
    if (call.in(2) != picked || call.type(2).dataType != call.type(0).dataType)
        return call.misfit(2, "input 0's element type and shape " + toString(picked));
    return one(call.type(0).dataType, x);
}

TypesOutcome inferNonZero(const InferCall &call)
{
    const Shape &x = call.in(0);
    const std::int64_t kept = call.attributes.integer("kept");
    const std::int64_t groups = call.attributes.integer("groups", 1);
    const std::int64_t capacity = call.attributes.integer("capacity");
    if (kept < 0 || static_cast<std::size_t>(kept) >= x.size())
        return call.badAttribute("kept", "fewer dimensions than input 0 has, " + toString(x));
    TRY(const std::size_t axis, call.axis(x.size(), "group_axis"));
    if (groups < 1 || x[axis] % groups != 0 || axis < static_cast<std::size_t>(kept))
        return call.badAttribute(
            "groups", "a divisor of dimension " + std::to_string(axis) + " of " + toString(x));
    if (capacity < 1 || capacity % groups != 0)
        return call.badAttribute("capacity", "a multiple of the number of groups");
    Shape y(x.begin(), x.begin() + kept);
    y.push_back(static_cast<std::int64_t>(x.size()) - kept);
    y.push_back(capacity);
    return one(DataType::Int64, std::move(y));
}

// --- annotations

/// Terms in which one dimension comes in groups, of which there are as many as identifier `group` has.
std::vector<Term> termsInGroups(
    AnnotationBuilder &builder, const DimensionList &dimensions, std::size_t grouped, std::int32_t group)
{
    std::vector<Term> terms;
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
        const std::int64_t inGroup = builder.sizeOf(dimensions[d]) / builder.sizeOf(group);
        terms.push_back(
            d == grouped ? builder.compound({group, builder.literal(inGroup)}) : Term{{dimensions[d]}});
    }
    return terms;
}

/// `shape` as literals, but for identifiers `through` from dimension `from` on.
DimensionList literalsBefore(
    AnnotationBuilder &builder, const Shape &shape, std::size_t from, const DimensionList &through)
{
    DimensionList dimensions =
        builder.literals(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(from)));
    dimensions.insert(dimensions.end(), through.begin(), through.end());
    return dimensions;
}

std::string misranked(const AnnotateCall &call)
{
    return std::string(nameOf(call.kind)) + "'s tensors do not have the ranks that places need";
}

/// x, but what `indices` have in place of dimension `axis`.
DimensionList picked(const DimensionList &x, std::size_t axis, const DimensionList &indices)
{
    const auto position = x.begin() + static_cast<std::ptrdiff_t>(axis);
    DimensionList y(x.begin(), position);
    y.insert(y.end(), indices.begin(), indices.end());
    y.insert(y.end(), position + 1, x.end());
    return y;
}

/// (x [.. (g i) ..], places [j.. (g c)]) -> [.. j.. (g c) ..]
std::string annotateGatherPlaces(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    if (axis >= call.inRank(0))
        return misranked(call);
    const auto grouped = static_cast<std::size_t>(call.attributes.integer("grouped"));
    const std::int32_t group = builder.fresh(call.attributes.integer("groups", 1));
    const DimensionList x = literalsWhere(builder, call.in(0), [axis](std::size_t d) { return d == axis; });
    const DimensionList indices =
        literalsWhere(builder, call.in(1), [grouped](std::size_t d) { return d == grouped; });
    const DimensionList y = picked(x, axis, indices);
    builder.input(0, termsInGroups(builder, x, axis, group));
    builder.input(1, termsInGroups(builder, indices, grouped, group));
    builder.output(0, termsInGroups(builder, y, axis + grouped, group));
    return {};
}

/// (x [(g i) i.. s..], places [j.. (g c) q]) -> [j.. (g c) s..], and the way back: (x, places, updates
/// [j+.. (g c) s..]) -> [(g i) i.. s..], where updates that are added come in summands along j.
std::string annotatePlacesND(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const bool scatters = call.kind == OperatorKind::ScatterND;
    const auto grouped = static_cast<std::size_t>(call.attributes.integer("grouped"));
    if (call.inRank(1) < 2 || grouped + 1 >= call.inRank(1) || call.in(1).back() < 1
        || static_cast<std::size_t>(call.in(1).back()) > call.inRank(0))
        return misranked(call);
    const auto named = static_cast<std::size_t>(call.in(1).back());
    const std::int32_t group = builder.fresh(call.attributes.integer("groups", 1));
    const Shape &whole = call.in(0);
    const DimensionList slice =
        builder.freshAll(Shape(whole.begin() + static_cast<std::ptrdiff_t>(named), whole.end()));
    const bool adds = call.attributes.text("reduction", "none") == "add";
    DimensionList places;
    for (std::size_t d = 0; d + 1 < call.inRank(1); ++d) {
        if (d == grouped || (scatters && !adds))
            places.push_back(builder.literal(call.in(1)[d]));
        else
            places.push_back(builder.fresh(call.in(1)[d], scatters ? kReduce : DimensionMark::Spatial));
    }
    DimensionList updates = places;
    updates.insert(updates.end(), slice.begin(), slice.end());
    places.push_back(builder.literal(call.in(1).back()));
    const DimensionList x = literalsBefore(builder, whole, named, slice);
    builder.input(0, termsInGroups(builder, x, 0, group));
    builder.input(1, termsInGroups(builder, places, grouped, group));
    if (scatters)
        builder.input(2, termsInGroups(builder, updates, grouped, group));
    builder.output(
        0, scatters ? termsInGroups(builder, x, 0, group) : termsInGroups(builder, updates, grouped, group));
    if (scatters && isFloating(call.inputs[0].dataType) && adds)
        builder.linear({0, 2});
    return {};
}

/// x [d.. e.. (g i) e..] -> [d.. r (g c)]
std::string annotateNonZero(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const std::int64_t kept = call.attributes.integer("kept");
    const auto axis = static_cast<std::size_t>(call.attributes.integer("group_axis"));
    if (kept < 0 || static_cast<std::size_t>(kept) > axis || axis >= call.inRank(0)
        || call.outRank(0) != static_cast<std::size_t>(kept) + 2)
        return misranked(call);
    const std::int32_t group = builder.fresh(call.attributes.integer("groups", 1));
    const DimensionList x = literalsWhere(
        builder, call.in(0), [kept](std::size_t d) { return d >= static_cast<std::size_t>(kept); });
    DimensionList y(x.begin(), x.begin() + kept);
    y.push_back(builder.literal(call.out(0)[static_cast<std::size_t>(kept)]));
    y.push_back(builder.literal(call.out(0).back()));
    builder.input(0, termsInGroups(builder, x, axis, group));
    builder.output(0, termsInGroups(builder, y, y.size() - 1, group));
    return {};
}

std::string annotateGather(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (hasPlaces(call.attributes))
        return annotateGatherPlaces(call, builder);
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    if (axis >= call.inRank(0))
        return misshapen(call);
    const DimensionList x =
        dimensionsWith(builder, call.in(0), kFrozen, [axis](std::size_t i) { return i == axis; });
    const DimensionList indices = builder.freshAll(call.in(1));
    builder.input(0, x);
    builder.input(1, indices);
    builder.output(0, picked(x, axis, indices));
    if (isFloatingCall(call))
        builder.linear({0});
    return {};
}

std::string annotateEmbedding(const AnnotateCall &call, AnnotationBuilder &builder)
{
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
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
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
    if (hasPlaces(call.attributes))
        return annotatePlacesND(call, builder);
    const std::int64_t batch = call.attributes.integer("batch_dims");
    if (call.inRank(1) == 0 || batch < 0 || static_cast<std::size_t>(batch) >= call.inRank(1))
        return misshapen(call);
    const std::int64_t named = batch + call.in(1).back();
    if (call.in(1).back() < 0 || named < 0 || static_cast<std::size_t>(named) > call.inRank(0))
        return misshapen(call);
    const DimensionList x = literalsWhere(builder, call.in(0), [=](std::size_t i) {
        return static_cast<std::int64_t>(i) >= batch && static_cast<std::int64_t>(i) < named;
    });
    DimensionList y(x.begin(), x.begin() + batch);
    for (std::size_t i = static_cast<std::size_t>(batch); i + 1 < call.inRank(1); ++i)
        y.push_back(builder.fresh(call.in(1)[i]));
    DimensionList indices = y;
    indices.push_back(builder.literal(call.in(1).back()));
    y.insert(y.end(), x.begin() + named, x.end());
    builder.input(0, x);
    builder.input(1, indices);
    builder.output(0, y);
    if (isFloatingCall(call))
        builder.linear({0});
    return {};
}

std::string annotateScatterND(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (hasPlaces(call.attributes))
        return annotatePlacesND(call, builder);
    if (call.inRank(1) == 0 || call.in(1).back() < 0
        || static_cast<std::size_t>(call.in(1).back()) > call.inRank(0))
        return misshapen(call);
    const std::int64_t named = call.in(1).back();
    const DimensionList x = literalsWhere(
        builder, call.in(0), [named](std::size_t i) { return static_cast<std::int64_t>(i) < named; });
    const DimensionList indices = builder.literals(call.in(1));
    DimensionList updates(indices.begin(), indices.end() - 1);
    updates.insert(updates.end(), x.begin() + named, x.end());
    builder.input(0, x);
    builder.input(1, indices);
    builder.input(2, updates);
    builder.output(0, x);
    return {};
}

// --- gradients, entries

/// (x, indices, updates)
NeedsOfInputs needsOfScatter(const Operator &op)
{
    const std::string reduction = op.attributes.text("reduction", "none");
    if (reduction == "mul" || reduction == "max" || reduction == "min")
        return {NeedOfInput{{0, 1, 2}}, std::nullopt, NeedOfInput{{0, 1, 2}}};
    // An added update leaves the gradient of what it is added to as it is.
    return {reduction == "add" ? NeedOfInput{} : NeedOfInput{{1}}, std::nullopt, NeedOfInput{{1}}};
}

} // namespace

std::vector<KindEntry> pickingKinds()
{
    using enum OperatorKind;
    constexpr auto kMovement = OperatorCategory::Movement;
    constexpr auto kLookedUp = DimensionLock::LookedUp;
    constexpr auto kWhole = DimensionLock::Whole;
    const GradientNeeds indices{{NeedOfInput{{1}}}};
    const WorkRule added{0, nullptr, onePerOutput}; // to the gradient of x, those of what was picked
    return {
        {Gather, "Gather", kMovement, {2, 2}, inferGather, {annotateGather, kLookedUp}, indices, added},
        {Embedding, "Embedding", kMovement, {2, 2}, inferGather, {annotateEmbedding, kLookedUp, {0}, "ve"},
            indices, added},
        {GatherElements, "GatherElements", kMovement, {2, 2}, inferElements, {annotateElements, kWhole, {0}},
            indices, added},
        {GatherND, "GatherND", kMovement, {2, 2}, inferND, {annotateGatherND}, indices, added},
        {ScatterElements, "ScatterElements", kMovement, {3, 3}, inferElements, {annotateElements},
            {{}, needsOfScatter}},
        {ScatterND, "ScatterND", kMovement, {3, 3}, inferND, {annotateScatterND}, {{}, needsOfScatter}},
        {NonZero, "NonZero", kMovement, {}, inferNonZero, {annotateNonZero, DimensionLock::Along}},
    };
}

} // namespace planloom
