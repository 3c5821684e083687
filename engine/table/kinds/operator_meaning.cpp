#include "engine/table/kinds/operator_meaning.h"

#include "engine/table/mesh_axes.h"

#include <algorithm>

namespace planloom {

std::optional<OperatorMeaning> composedSplits(
    const OperatorMeaning &a, const OperatorMeaning &b, const std::vector<MeshAxis> &mesh)
{
    if (!a.splits() || !b.splits()) {
        OperatorMeaning both;
        both.axes = a.splits() ? a.axes : b.axes;
        both.within = a.splits() ? a.within : b.within;
        return both;
    }
    OperatorMeaning both;
    both.within = intersection(a.within, b.within);
    if (both.within.isEmpty())
        return std::nullopt;
    const auto sameAxes = [](const AxisMeaning &x, const AxisMeaning &y) { return x.axis == y.axis; };
    // Who speaks of a device's own parts says all there is.
    const bool whole = !a.within.isAnything() || !b.within.isAnything();
    if (whole
        && (a.within.isAnything() != b.within.isAnything()
            || !std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(), sameAxes)))
        return std::nullopt;
    both.axes = a.axes;
    for (const AxisMeaning &theirs : b.axes) {
        const auto mine = std::find_if(both.axes.begin(), both.axes.end(),
            [&](const AxisMeaning &each) { return each.axis == theirs.axis; });
        if (mine == both.axes.end()) {
            both.axes.push_back(theirs);
            continue;
        }
        mine->allowed = intersection(mine->allowed, theirs.allowed);
        if (mine->allowed.isEmpty())
            return std::nullopt;
    }
    std::stable_sort(both.axes.begin(), both.axes.end(), [&](const AxisMeaning &x, const AxisMeaning &y) {
        return meshPosition(mesh, x.axis) < meshPosition(mesh, y.axis);
    });
    return both;
}

std::optional<AllowedPlaceSnapshot> both(const AllowedPlaceSnapshot &a, const AllowedPlaceSnapshot &b)
{
    if (!a || !b || a == b)
        return a ? a : b;
    const auto onMesh = [](const AllowedPlaceSnapshot &place) {
        const Domain *exact = place->exact();
        return exact && exact->onMesh;
    };
    auto allowed = onMesh(b) && !onMesh(a) ? intersection(*b, *a) : intersection(*a, *b);
    if (allowed.isEmpty())
        return std::nullopt;
    return std::make_shared<const AllowedPlace>(std::move(allowed));
}

std::optional<std::optional<RecomputeRule>> both(
    const std::optional<RecomputeRule> &a, const std::optional<RecomputeRule> &b)
{
    if (a && b && (a->when == Switched::Always || b->when == Switched::Always))
        return std::nullopt;
    return a ? a : b;
}

std::optional<std::optional<PrecisionRule>> both(
    const std::optional<PrecisionRule> &a, const std::optional<PrecisionRule> &b)
{
    if (!a || !b)
        return a ? a : b;
    if (clashingSetting(*a, *b))
        return std::nullopt;
    return std::optional(joined(*a, *b));
}

std::int64_t partsOf(const std::vector<Split> &splits, std::int32_t dimension)
{
    std::int64_t parts = 1;
    for (const Split &split : splits)
        if (split.kind == SplitKind::Dimension && (dimension < 0 || split.dimension == dimension))
            parts = std::min<std::int64_t>(parts * split.parts, kMostCount);
    return parts;
}

bool keepTo(const std::vector<PartsMeaning> &bounds, const std::vector<Split> &splits)
{
    return std::all_of(bounds.begin(), bounds.end(),
        [&](const PartsMeaning &each) { return each.bound.allows(partsOf(splits, each.dimension)); });
}

namespace {

/// What rows decide of how an operator is cut, alone.
std::vector<Split> exactSplits(const OperatorMeaning &meaning)
{
    std::vector<Split> splits;
    for (const AxisMeaning &axis : meaning.axes)
        if (const Split *exact = axis.allowed.exact())
            splits.push_back(*exact);
    if (const std::vector<Split> *within = meaning.within.exact())
        splits.insert(splits.end(), within->begin(), within->end());
    for (const Allowed<Split> *each : {&meaning.coshard, &meaning.slices})
        if (const Split *exact = each->exact())
            splits.push_back(*exact);
    return splits;
}

/// Whether some number of parts that two meanings decide together can still grow into one that both allow.
bool partsCanHold(const OperatorMeaning &a, const OperatorMeaning &b)
{
    if (a.parts.empty() && b.parts.empty())
        return true;
    std::vector<PartsMeaning> all = a.parts;
    all.insert(all.end(), b.parts.begin(), b.parts.end());
    std::vector<Split> splits = exactSplits(a);
    for (Split &split : exactSplits(b))
        if (std::find(splits.begin(), splits.end(), split) == splits.end())
            splits.push_back(std::move(split));
    for (const PartsMeaning &one : all) {
        std::vector<CountBound> bounds;
        for (const PartsMeaning &other : all)
            if (other.dimension == one.dimension)
                bounds.push_back(other.bound);
        const std::int64_t least = partsOf(splits, one.dimension);
        const bool grows = one.bound.kind == CountBound::Kind::OneOf
            ? std::any_of(one.bound.values.begin(), one.bound.values.end(),
                [&](std::int32_t value) { return value % least == 0; })
            : one.bound.kind == CountBound::Kind::AtLeast || least <= one.bound.values.front();
        if (!grows || !canAgree(bounds))
            return false;
    }
    return true;
}

} // namespace

std::optional<Aspect> clashOf(const OperatorMeaning &a, const OperatorMeaning &b)
{
    if (!composedSplits(a, b, {}))
        return Aspect::Split;
    if (!partsCanHold(a, b))
        return Aspect::Parts;
    std::optional<Aspect> clash;
    anyAspect([&](const auto &entry) {
        const auto &mine = a.*entry.value;
        const auto &theirs = b.*entry.value;
        if (speaks(mine) && speaks(theirs) && !both(mine, theirs))
            clash = entry.aspect;
        return clash.has_value();
    });
    return clash;
}

const char *clashWords(Aspect aspect)
{
    const char *words =
        aspect == Aspect::Split ? "split in different ways" : "ask for different numbers of parts of";
    anyAspect([&](const auto &entry) {
        if (entry.aspect == aspect)
            words = entry.clash;
        return entry.aspect == aspect;
    });
    return words;
}

} // namespace planloom
