#include "engine/frontend/aten_operators.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- indices -----------------------------------------------------------------------------------------------

Result<void> atenGather(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const TensorId indices, context.tensor("index"));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    return context.finishOnnx("GatherElements", {x, indices}, {{"axis", axis}});
}

Result<void> indexSelect(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const TensorId indices, context.tensor("index"));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    return context.finishOnnx("Gather", {x, indices}, {{"axis", axis}});
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
        return context.finishOnnx(
            "Gather", {x, picks.indices.front()}, {{"axis", static_cast<std::int64_t>(first)}});
    const std::size_t rank = context.shapeOf(x).size();
    TRY(const TensorId turned, context.permute(x, indexedFirst(picks, rank), "indexed_first"));
    TRY(const TensorId places, joinedIndices(context, picks));
    const bool together = picks.axes.back() - first + 1 == picks.axes.size();
    if (!together || first == 0)
        return context.finishOnnx("GatherND", {turned, places});
    // Indices side by side leave what they pick in their place.
    TRY(const TensorId picked, context.onnx("GatherND", {turned, places}, {}, "picked"));
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

/// x with values written, or added, at places.
Result<void> indexPut(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(TensorId values, context.tensor("values"));
    TRY(const bool accumulate, context.flag("accumulate", false));
    TRY(values, context.cast(values, context.typeOf(x).dataType));
    TRY(const auto given, context.tensors("indices"));
    if (given.size() == 1 && given.front() && context.typeOf(given.front()).dataType == DataType::Bool
        && elementCount(context.shapeOf(values)) == 1 && !accumulate) { // x[mask] = number
        Shape mask = context.shapeOf(given.front());
        mask.resize(std::max(mask.size(), context.shapeOf(x).size()), 1);
        TRY(const TensorId condition, context.reshape(given.front(), std::move(mask), "mask"));
        TRY(const TensorId number, context.reshape(values, {}, "number"));
        return context.finish(OperatorKind::Where, {condition, number, x});
    }
    TRY(const Picks picks, picksOf(context, x));
    if (picks.axes.empty() || picks.axes.back() + 1 != picks.axes.size())
        return context.keepUnknown("writing at indices of dimensions that are not the first is not computed");
    TRY(const TensorId places, joinedIndices(context, picks));
    Shape shape(context.shapeOf(places).begin(), context.shapeOf(places).end() - 1);
    const Shape &whole = context.shapeOf(x);
    shape.insert(shape.end(), whole.begin() + static_cast<std::ptrdiff_t>(picks.axes.size()), whole.end());
    TRY(values, context.expand(values, shape, "values"));
    return context.finishOnnx(
        "ScatterND", {x, places, values}, {{"reduction", std::string(accumulate ? "add" : "none")}});
}

/// x with rows of `source` added at the indices along a dimension.
Result<void> indexAdd(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(TensorId indices, context.tensor("index"));
    TRY(TensorId source, context.tensor("source"));
    TRY(const double factor, context.real("alpha", 1));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    const DataType type = context.typeOf(x).dataType;
    TRY(source, context.cast(source, type));
    TRY(indices, context.cast(indices, DataType::Int64, "index"));
    if (factor != 1) {
        TRY(source,
            context.make(OperatorKind::Mul, {source, context.scalar(type, factor)}, {}, {}, "scaled"));
    }
    TRY(indices, context.reshape(indices, {elementCount(context.shapeOf(indices)), 1}, "places"));
    // ScatterND writes along the first dimension: that of the indices comes there, and goes back.
    Integers order{axis};
    for (std::int64_t d = 0; d < context.rankOf(x); ++d) {
        if (d != axis)
            order.push_back(d);
    }
    TRY(const TensorId turned, context.permute(x, order, "turned"));
    TRY(source, context.permute(source, order, "source"));
    if (axis == 0)
        return context.finishOnnx(
            "ScatterND", {turned, indices, source}, {{"reduction", std::string("add")}});
    TRY(const TensorId added,
        context.onnx("ScatterND", {turned, indices, source}, {{"reduction", std::string("add")}}, "added"));
    Integers back(order.size());
    for (std::size_t d = 0; d < order.size(); ++d)
        back[axisIndex(order[d])] = static_cast<std::int64_t>(d);
    return context.finishPermuted(added, std::move(back));
}

/// The places of what is not zero, [c rank].
Result<void> atenNonZero(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const TensorId places, context.onnx("NonZero", {x}, {}, "places"));
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
    TRY(const TensorId places, context.onnx("NonZero", {mask}, {}, "places"));
    TRY(const TensorId rows, context.permute(places, {1, 0}, "rows"));
    return context.finishOnnx("GatherND", {x, rows});
}

Result<void> scatterBy(AtenContext &context, const std::string &reduction)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const TensorId indices, context.tensor("index"));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    const char *name = context.given("src") ? "src" : "value";
    TRY(TensorId source, context.operand(name, context.typeOf(x).dataType));
    TRY(source, context.cast(source, context.typeOf(x).dataType));
    if (context.shapeOf(source) != context.shapeOf(indices)) {
        if (context.shapeOf(source).empty()) {
            TRY(source, context.expand(source, Shape(context.shapeOf(indices)), "values"));
        } else { // of a larger source the first elements count
            for (std::int64_t d = 0; d < context.rankOf(indices); ++d) {
                const std::int64_t extent = context.shapeOf(indices)[axisIndex(d)];
                TRY(source, context.slice(source, d, 0, extent, 1, "values"));
            }
        }
    }
    return context.finishOnnx(
        "ScatterElements", {x, indices, source}, {{"axis", axis}, {"reduction", reduction}});
}
Result<void> atenScatter(AtenContext &context)
{
    TRY(const std::string reduce, context.text("reduce", ""));
    const std::map<std::string, std::string> kReductions{{"", "none"}, {"add", "add"}, {"multiply", "mul"}};
    const auto found = kReductions.find(reduce);
    if (found == kReductions.end())
        return context.invalid("argument 'reduce' is '" + reduce + "'");
    return scatterBy(context, found->second);
}
Result<void> scatterAdd(AtenContext &context)
{
    return scatterBy(context, "add");
}

template<bool upper> Result<void> triangle(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const std::int64_t diagonal, context.integer("diagonal", 0));
    return context.finishOnnx(
        "Trilu", {x, context.integerScalar(diagonal)}, {{"upper", std::int64_t{upper ? 1 : 0}}});
}

Result<void> atenOneHot(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const std::int64_t classes, context.integer("num_classes", -1));
    if (classes < 1)
        return context.unsupported("its number of classes is found from data", "give num_classes");
    Shape shape = context.shapeOf(x);
    shape.push_back(classes);
    return context.finish(OperatorKind::OneHot, {x},
        attributesFrom({{"axis", context.rankOf(x)}, {"depth", classes}, {"on", 1.0}, {"off", 0.0}}),
        TensorType{DataType::Int64, std::move(shape)});
}

Result<void> pixelShuffle(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const std::int64_t factor, context.integer("upscale_factor"));
    return context.finishOnnx("DepthToSpace", {x}, {{"blocksize", factor}, {"mode", std::string("CRD")}});
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

/// What a kernel sees at each of its places, as columns: [n c h w] -> [n c*kh*kw places]. One strided slice
/// for each element of the kernel.
Result<void> atenIm2col(AtenContext &context)
{
    constexpr std::int64_t kMostSlices = 1024;
    TRY(TensorId x, context.tensor("self"));
    TRY(const auto kernel, context.perDimension("kernel_size", 2, 1));
    TRY(const auto dilation, context.perDimension("dilation", 2, 1));
    TRY(const auto padding, context.perDimension("padding", 2, 0));
    TRY(const auto stride, context.perDimension("stride", 2, 1));
    if (context.rankOf(x) != 4 || kernel[0] < 1 || kernel[1] < 1 || kernel[0] > kMostSlices / kernel[1])
        return context.keepUnknown("im2col of this shape is not computed");
    Shape shape = context.shapeOf(x);
    if (padding[0] != 0 || padding[1] != 0) {
        TRY(x,
            context.onnx("Pad",
                {x, context.list({0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]}),
                    context.scalar(context.typeOf(x).dataType, 0)},
                {}, "pad"));
    }
    std::int64_t places[2];
    for (std::size_t d = 0; d < 2; ++d) {
        const std::int64_t room = shape[2 + d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
        if (room < 0 || stride[d] < 1 || dilation[d] < 1)
            return context.invalid("its kernel is larger than its image");
        places[d] = room / stride[d] + 1;
    }
    std::vector<TensorId> columns;
    for (std::int64_t i = 0; i < kernel[0]; ++i) {
        const std::int64_t row = i * dilation[0];
        TRY(const TensorId rows,
            context.slice(x, 2, row, row + stride[0] * (places[0] - 1) + 1, stride[0], "rows"));
        for (std::int64_t j = 0; j < kernel[1]; ++j) {
            const std::int64_t column = j * dilation[1];
            TRY(const TensorId part,
                context.slice(rows, 3, column, column + stride[1] * (places[1] - 1) + 1, stride[1], "part"));
            TRY(const TensorId own,
                context.reshape(part, {shape[0], shape[1], 1, places[0] * places[1]}, "column"));
            columns.push_back(own);
        }
    }
    TRY(x, context.concat(std::move(columns), 2, "columns"));
    TRY(const TensorId y,
        context.reshape(x, {shape[0], shape[1] * kernel[0] * kernel[1], places[0] * places[1]}, ""));
    return context.bind(0, y);
}

} // namespace

AtenHandler findAtenIndex(std::string_view name)
{
    static const std::map<std::string, AtenHandler, std::less<>> kHandlers = {{"gather", atenGather},
        {"index_select", indexSelect}, {"index", atenIndex}, {"_unsafe_index", atenIndex},
        {"index_put", indexPut}, {"_unsafe_index_put", indexPut}, {"index_add", indexAdd},
        {"nonzero", atenNonZero}, {"masked_select", maskedSelect}, {"scatter", atenScatter},
        {"scatter_add", scatterAdd}, {"tril", triangle<false>}, {"triu", triangle<true>},
        {"one_hot", atenOneHot}, {"pixel_shuffle", pixelShuffle}, {"pixel_unshuffle", pixelUnshuffle},
        {"im2col", atenIm2col}};
    const auto found = kHandlers.find(name);
    return found == kHandlers.end() ? nullptr : found->second;
}

} // namespace planloom
