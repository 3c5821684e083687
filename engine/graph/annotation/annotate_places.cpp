// Operators whose indices are places that data choose, in groups (places.h).
#include "engine/graph/annotation/annotation_builder.h"
#include "engine/graph/operators/places.h"

#include <string>
#include <utility>

namespace planloom {

namespace {

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

/// (x [.. (g i) ..], places [j.. (g c)]) -> [.. j.. (g c) ..]
std::string annotateGatherPlaces(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto axis = static_cast<std::size_t>(call.attributes.integer("axis"));
    if (!call.has(1) || axis >= call.inRank(0))
        return misranked(call);
    const auto grouped = static_cast<std::size_t>(call.attributes.integer("grouped"));
    const std::int32_t group = builder.fresh(call.attributes.integer("groups", 1));
    DimensionList x;
    for (std::size_t d = 0; d < call.inRank(0); ++d)
        x.push_back(d == axis ? builder.literal(call.in(0)[d]) : builder.fresh(call.in(0)[d]));
    DimensionList indices;
    for (std::size_t d = 0; d < call.inRank(1); ++d)
        indices.push_back(d == grouped ? builder.literal(call.in(1)[d]) : builder.fresh(call.in(1)[d]));
    DimensionList y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
    y.insert(y.end(), indices.begin(), indices.end());
    y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
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
    if (!call.has(1) || (scatters && !call.has(2)))
        return missing(call);
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
    DimensionList picked = places;
    picked.insert(picked.end(), slice.begin(), slice.end());
    places.push_back(builder.literal(call.in(1).back()));
    const DimensionList x = literalsBefore(builder, whole, named, slice);
    builder.input(0, termsInGroups(builder, x, 0, group));
    builder.input(1, termsInGroups(builder, places, grouped, group));
    if (scatters)
        builder.input(2, termsInGroups(builder, picked, grouped, group));
    builder.output(
        0, scatters ? termsInGroups(builder, x, 0, group) : termsInGroups(builder, picked, grouped, group));
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
    DimensionList x;
    for (std::size_t d = 0; d < call.inRank(0); ++d)
        x.push_back(d < static_cast<std::size_t>(kept) ? builder.fresh(call.in(0)[d])
                                                       : builder.literal(call.in(0)[d]));
    DimensionList y(x.begin(), x.begin() + kept);
    y.push_back(builder.literal(call.out(0)[static_cast<std::size_t>(kept)]));
    y.push_back(builder.literal(call.out(0).back()));
    builder.input(0, termsInGroups(builder, x, axis, group));
    builder.output(0, termsInGroups(builder, y, y.size() - 1, group));
    return {};
}

} // namespace

std::string annotatePlaces(const AnnotateCall &call, AnnotationBuilder &builder)
{
    if (call.kind == OperatorKind::NonZero)
        return annotateNonZero(call, builder);
    return call.kind == OperatorKind::Gather ? annotateGatherPlaces(call, builder)
                                             : annotatePlacesND(call, builder);
}

} // namespace planloom
