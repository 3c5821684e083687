#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- indices -----------------------------------------------------------------------------------------------

Result<void> atenGather(AtenContext &context, TensorId x)
{
    TRY(const TensorId indices, context.tensor("index"));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    return context.finishWith(emitGatherElements, x, indices, axis);
}

Result<void> indexSelect(AtenContext &context, TensorId x)
{
    TRY(const TensorId indices, context.tensor("index"));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    return context.finishWith(emitGather, x, indices, axis);
}

/// What x[i, j, :, k] picks. Truth values as indices pick where they are true.
struct Picks {
    std::vector<std::size_t> axes{}; ///< Of x, with an index.
    std::vector<TensorId> indices{}; ///< Int64, of broadcastable shapes.
};

Result<Picks> picksOf(AtenContext &context, TensorId x)
{
    TRY(const auto given, context.tensors("indices"));
    Picks picks;
    std::size_t axis = 0;
    for (const TensorId one : given) {
        if (one && context.typeOf(one).dataType == DataType::Bool) {
            TRY(const auto lists, context.placesIn(one));
            for (const TensorId list : lists) {
                picks.axes.push_back(axis++);
                picks.indices.push_back(list);
            }
            continue;
        }
        if (one) {
            TRY(const TensorId index, context.cast(one, DataType::Int64, "index"));
            picks.axes.push_back(axis);
            picks.indices.push_back(index);
        }
        ++axis;
    }
    if (axis > context.shapeOf(x).size())
        return context.invalid("it has " + std::to_string(axis) + " indices for "
            + std::to_string(context.rankOf(x)) + " dimensions");
    return picks;
}

/// The indices beside one another, [.. number of indices].
Result<TensorId> joinedIndices(AtenContext &context, const Picks &picks)
{
    const Shape shape = context.broadcastShape(picks.indices);
    std::vector<TensorId> columns;
    for (std::size_t i = 0; i < picks.indices.size(); ++i) {
        const std::string number = std::to_string(i);
        TensorId index = picks.indices[i];
        // Places counted from the end: GatherND and ScatterND have them as well.
        TRY(index, context.expand(index, shape, "index_" + number));
        Shape column = shape;
        column.push_back(1);
        TRY(index, context.reshape(index, std::move(column), "column_" + number));
        columns.push_back(index);
    }
    return context.concat(std::move(columns), static_cast<std::int64_t>(shape.size()), "places");
}

/// The dimensions with an index first, the others behind, in order.
Integers indexedFirst(const Picks &picks, std::size_t rank)
{
    Integers order;
    for (const std::size_t axis : picks.axes)
        order.push_back(static_cast<std::int64_t>(axis));
    for (std::size_t axis = 0; axis < rank; ++axis) {
        if (std::find(picks.axes.begin(), picks.axes.end(), axis) == picks.axes.end())
            order.push_back(static_cast<std::int64_t>(axis));
    }
    return order;
}

Result<void> atenIndex(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(const Picks picks, picksOf(context, x));
    if (picks.axes.empty())
        return context.bind(0, x);
    const std::size_t first = picks.axes.front();
    if (picks.axes.size() == 1)
        return context.finishWith(emitGather, x, picks.indices.front(), static_cast<std::int64_t>(first));
    const std::size_t rank = context.shapeOf(x).size();
    TRY(const TensorId turned, context.permute(x, indexedFirst(picks, rank), "indexed_first"));
    TRY(const TensorId places, joinedIndices(context, picks));
    const bool together = picks.axes.back() - first + 1 == picks.axes.size();
    if (!together || first == 0)
        return context.finishWith(emitGatherND, turned, places, std::int64_t{0});
    // Indices side by side leave what they pick in their place.
    TRY(const TensorId picked, context.part("picked", emitGatherND, turned, places, std::int64_t{0}));
    const std::int64_t chosen = context.rankOf(places) - 1;
    Integers order;
    for (std::size_t axis = 0; axis < first; ++axis)
        order.push_back(chosen + static_cast<std::int64_t>(axis));
    for (std::int64_t axis = 0; axis < chosen; ++axis)
        order.push_back(axis);
    for (std::int64_t axis = chosen + static_cast<std::int64_t>(first); axis < context.rankOf(picked); ++axis)
        order.push_back(axis);
    return context.finishPermuted(picked, std::move(order));
}

/// The single mask among indices, the others of which are absent.
struct MaskIndex {
    TensorId mask{};
    std::size_t axis = 0; ///< Its first dimension's.
};
std::optional<MaskIndex> onlyMask(AtenContext &context, const std::vector<TensorId> &indices)
{
    std::optional<MaskIndex> found;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!indices[i])
            continue;
        if (found || context.typeOf(indices[i]).dataType != DataType::Bool)
            return std::nullopt;
        found = MaskIndex{indices[i], i};
    }
    return found;
}

/// The values that all places of a mask get alike, in a shape that broadcasts against x; invalid if each
/// place has values of its own.
Result<TensorId> valuesOfMask(AtenContext &context, TensorId x, TensorId values, const MaskIndex &index)
{
    const std::size_t behind = context.shapeOf(x).size() - index.axis - context.shapeOf(index.mask).size();
    Shape shape = context.shapeOf(values);
    if (shape.size() <= behind)
        return values;
    const auto places = shape.end() - static_cast<std::ptrdiff_t>(behind) - 1;
    if (*places != 1)
        return TensorId{};
    shape.insert(places, context.shapeOf(index.mask).size() - 1, 1);
    return context.reshape(values, std::move(shape), "of_all_places");
}

/// Order of dimensions that undoes `order`.
Integers inverseOf(const Integers &order)
{
    Integers back(order.size());
    for (std::size_t d = 0; d < order.size(); ++d)
        back[axisIndex(order[d])] = static_cast<std::int64_t>(d);
    return back;
}

/// Values in the shape that x has at the places, the places first.
Result<TensorId> valuesAtPlaces(
    AtenContext &context, TensorId x, TensorId values, const Picks &picks, const Shape &places)
{
    const Shape whole = context.shapeOf(x);
    const bool together = picks.axes.back() - picks.axes.front() + 1 == picks.axes.size();
    const std::size_t before = together ? picks.axes.front() : 0; // dimensions that stay before the places
    Shape shape;
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
        if (std::find(picks.axes.begin(), picks.axes.end(), axis) == picks.axes.end())
            shape.push_back(whole[axis]);
    }
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(before), places.begin(), places.end());
    Integers order(shape.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(before),
        order.begin() + static_cast<std::ptrdiff_t>(before + places.size()));
    TRY(values, context.expand(values, shape, "values"));
    return before == 0 ? Result<TensorId>(values) : context.permute(values, std::move(order), "places_first");
}

/// x with values written, or added, at places.
Result<void> indexPut(AtenContext &context, TensorId x)
{
    TRY(TensorId values, context.tensor("values"));
    TRY(const bool accumulate, context.flag("accumulate", false));
    TRY(values, context.cast(values, context.typeOf(x).dataType));
    TRY(const auto given, context.tensors("indices"));
    if (const auto index = onlyMask(context, given)) { // x[mask] = number
        TRY(TensorId own, valuesOfMask(context, x, values, *index));
        if (own) {
            Shape mask = context.shapeOf(index->mask);
            mask.resize(context.shapeOf(x).size() - index->axis, 1);
            TRY(const TensorId condition, context.reshape(index->mask, std::move(mask), "mask"));
            if (accumulate) {
                TRY(own, context.make(OperatorKind::Add, {x, own}, {}, {}, "sum"));
            }
            return context.finish(OperatorKind::Where, {condition, own, x});
        }
    }
    TRY(const Picks picks, picksOf(context, x));
    if (picks.axes.empty())
        return context.invalid("it has no index");
    TRY(const TensorId places, joinedIndices(context, picks));
    const Shape shape(context.shapeOf(places).begin(), context.shapeOf(places).end() - 1);
    TRY(values, valuesAtPlaces(context, x, values, picks, shape));
    const std::string reduction = accumulate ? "add" : "none";
    if (picks.axes.back() + 1 == picks.axes.size())
        return context.finishWith(emitScatterND, x, places, values, reduction);
    Integers order = indexedFirst(picks, context.shapeOf(x).size());
    TRY(const TensorId turned, context.permute(x, order, "indexed_first"));
    TRY(const TensorId written, context.part("written", emitScatterND, turned, places, values, reduction));
    return context.finishPermuted(written, inverseOf(order));
}

/// The places of what is not zero, [c rank].
Result<void> atenNonZero(AtenContext &context, TensorId x)
{
    TRY(const TensorId places, context.part("places", emitNonZero, x));
    return context.finishPermuted(places, {1, 0});
}

/// The elements where a mask is true, one after the other.
Result<void> maskedSelect(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(TensorId mask, context.tensor("mask"));
    const Shape shape = context.broadcastShape({x, mask});
    TRY(x, context.expand(x, shape, "self"));
    TRY(mask, context.expand(mask, shape, "mask"));
    TRY(const TensorId places, context.part("places", emitNonZero, mask));
    TRY(const TensorId rows, context.permute(places, {1, 0}, "rows"));
    return context.finishWith(emitGatherND, x, rows, std::int64_t{0});
}

template<bool upper> Result<void> triangle(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t diagonal, context.integer("diagonal", 0));
    return context.finishWith(emitTrilu, x, upper, diagonal);
}

Result<void> atenOneHot(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t classes, context.integer("num_classes", -1));
    if (classes < 1)
        return context.unsupported("its number of classes is found from data", "give num_classes");
    Shape shape = context.shapeOf(x);
    shape.push_back(classes);
    return context.finish(OperatorKind::OneHot, {x},
        attributesFrom({{"axis", context.rankOf(x)}, {"depth", classes}, {"on", 1.0}, {"off", 0.0}}),
        TensorType{DataType::Int64, std::move(shape)});
}

Result<void> pixelShuffle(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t factor, context.integer("upscale_factor"));
    return context.finish(OperatorKind::DepthToSpace, {x},
        attributesFrom({{"blocksize", factor}, {"mode", std::string("CRD")}}));
}

/// [n g*c ..] -> [n c*g ..]
Result<void> channelShuffle(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(const std::int64_t groups, context.integer("groups"));
    const Shape shape = context.shapeOf(x);
    if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
        return context.invalid(std::to_string(groups) + " groups do not divide " + toString(shape));
    Shape apart = shape;
    apart[1] = shape[1] / groups;
    apart.insert(apart.begin() + 1, groups);
    TRY(x, context.reshape(x, std::move(apart), "groups"));
    std::vector<std::int64_t> order(shape.size() + 1);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::swap(order[1], order[2]);
    TRY(x, context.permute(x, std::move(order), "order"));
    TRY(const TensorId y, context.reshape(x, shape, ""));
    return context.bind(0, y);
}

/// [.. c h*r w*r] -> [.. c*r*r h w]
Result<void> pixelUnshuffle(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(const std::int64_t r, context.integer("downscale_factor"));
    Shape shape = context.shapeOf(x);
    if (shape.size() < 3 || r < 1 || shape.back() % r != 0 || shape[shape.size() - 2] % r != 0)
        return context.invalid("blocks of " + std::to_string(r) + " do not divide " + toString(shape));
    const auto first = static_cast<std::int64_t>(shape.size()) - 3;
    const std::int64_t channels = shape[axisIndex(first)];
    const std::int64_t height = shape[axisIndex(first + 1)] / r;
    const std::int64_t width = shape[axisIndex(first + 2)] / r;
    shape.resize(axisIndex(first));
    Shape blocks = shape;
    blocks.insert(blocks.end(), {channels, height, r, width, r});
    TRY(x, context.reshape(x, std::move(blocks), "blocks"));
    std::vector<std::int64_t> order(axisIndex(first));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    order.insert(order.end(), {first, first + 2, first + 4, first + 1, first + 3});
    TRY(x, context.permute(x, std::move(order), "order"));
    shape.insert(shape.end(), {channels * r * r, height, width});
    TRY(const TensorId y, context.reshape(x, std::move(shape), ""));
    return context.bind(0, y);
}

} // namespace

const AtenHandlers &atenIndexHandlers()
{
    static const AtenHandlers kHandlers = {{"gather", ofSelf<atenGather>},
        {"index_select", ofSelf<indexSelect>}, {"index", atenIndex}, {"_unsafe_index", atenIndex},
        {"index_put", ofSelf<indexPut>}, {"_unsafe_index_put", ofSelf<indexPut>},
        {"nonzero", ofSelf<atenNonZero>}, {"masked_select", maskedSelect}, {"tril", ofSelf<triangle<false>>},
        {"triu", ofSelf<triangle<true>>}, {"one_hot", ofSelf<atenOneHot>},
        {"pixel_shuffle", ofSelf<pixelShuffle>}, {"pixel_unshuffle", pixelUnshuffle},
        {"channel_shuffle", channelShuffle}, {"native_channel_shuffle", channelShuffle}};
    return kHandlers;
}

} // namespace planloom
