#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- shapes ------------------------------------------------------------------------------------------------

/// Sizes of which one may be -1: what is left over.
Result<void> reshapeTo(AtenContext &context, Shape shape)
{
    TRY(const TensorId x, context.tensor("self"));
    return context.finishWith(emitReshape, x, shape, false);
}

Result<void> atenView(AtenContext &context)
{
    if (context.given("dtype"))
        return context.unsupported("it takes the same bytes for another element type",
            "convert the values (Tensor.to) instead of viewing them");
    TRY(Shape shape, context.integers(context.given("shape") ? "shape" : "size"));
    return reshapeTo(context, std::move(shape));
}

Result<void> atenViewAs(AtenContext &context)
{
    TRY(const TensorId other, context.tensor("other"));
    return reshapeTo(context, Shape(context.shapeOf(other)));
}

Result<void> atenFlatten(AtenContext &context, TensorId x)
{
    const Shape from = context.shapeOf(x);
    if (from.empty())
        return reshapeTo(context, {1});
    TRY(const std::int64_t first, context.dimension("start_dim", context.rankOf(x), 0));
    TRY(const std::int64_t last, context.dimension("end_dim", context.rankOf(x), -1));
    if (first > last)
        return context.invalid("start_dim lies behind end_dim");
    Shape shape(from.begin(), from.begin() + first);
    shape.push_back(elementCount(Shape(from.begin() + first, from.begin() + last + 1)));
    shape.insert(shape.end(), from.begin() + last + 1, from.end());
    return reshapeTo(context, std::move(shape));
}

Result<void> atenUnflatten(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const Integers sizes, context.integers("sizes"));
    Shape shape = context.shapeOf(x);
    if (shape.empty())
        return context.invalid("it divides a dimension of a scalar");
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, sizes.begin(), sizes.end());
    return reshapeTo(context, std::move(shape));
}

Result<void> atenSqueeze(AtenContext &context, TensorId x)
{
    const Shape from = context.shapeOf(x);
    Integers all(from.size());
    std::iota(all.begin(), all.end(), 0);
    TRY(const Integers axes, context.dimensions("dim", context.rankOf(x), all));
    Shape shape;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const bool named = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
        if (!named || from[i] != 1)
            shape.push_back(from[i]);
    }
    return reshapeTo(context, std::move(shape));
}

Result<void> atenUnsqueeze(AtenContext &context, TensorId x)
{
    Shape shape = context.shapeOf(x);
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x) + 1, 0));
    shape.insert(shape.begin() + axis, 1);
    return reshapeTo(context, std::move(shape));
}

Result<void> atenExpand(AtenContext &context, TensorId x)
{
    TRY(const Integers size, context.integers("size"));
    TRY(const TensorId y, context.expand(x, size, ""));
    return context.bind(0, y);
}

Result<void> atenExpandAs(AtenContext &context, TensorId x)
{
    TRY(const TensorId other, context.tensor("other"));
    TRY(const TensorId y, context.expand(x, Shape(context.shapeOf(other)), ""));
    return context.bind(0, y);
}

/// All of a list in the shape that they have together.
Result<void> broadcastTensors(AtenContext &context)
{
    TRY(const auto tensors, context.tensors("tensors"));
    const Shape shape = context.broadcastShape(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        TRY(const TensorId y, context.expand(tensors[i], shape, "expand_" + std::to_string(i)));
        TRY_VOID(context.bind(i, y));
    }
    return {};
}

/// Coordinates: list i varies along dimension i of the results ("ij"; "xy" has the first two the other way).
Result<void> meshGrid(AtenContext &context)
{
    TRY(const auto tensors, context.tensors("tensors"));
    TRY(const std::string indexing, context.text("indexing", "ij"));
    Shape shape;
    for (const TensorId x : tensors)
        shape.push_back(elementCount(context.shapeOf(x)));
    const bool swapped = indexing == "xy" && shape.size() > 1;
    if (swapped)
        std::swap(shape[0], shape[1]);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::size_t axis = swapped && i < 2 ? 1 - i : i;
        Shape line(shape.size(), 1);
        line[axis] = shape[axis];
        const std::string number = std::to_string(i);
        TRY(const TensorId x, context.reshape(tensors[i], std::move(line), "line_" + number));
        TRY(const TensorId y, context.expand(x, shape, "grid_" + number));
        TRY_VOID(context.bind(i, y));
    }
    return {};
}

/// x as if repeated along each dimension, new ones in front.
Result<void> atenRepeat(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(Integers repeats, context.integers(context.given("repeats") ? "repeats" : "dims"));
    Shape shape = context.shapeOf(x);
    if (repeats.size() < shape.size()) // Tensor.tile
        repeats.insert(repeats.begin(), shape.size() - repeats.size(), 1);
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    TRY(x, context.reshape(x, shape));
    return context.finishWith(emitTile, x, repeats);
}

/// Each element of a dimension, or of all, so many times in a row.
Result<void> repeatInterleave(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    if (!std::holds_alternative<std::int64_t>(context.value("repeats")))
        return context.unsupported("its numbers of repeats are a tensor, so that its shape depends on data",
            "repeat all elements alike");
    TRY(const std::int64_t repeats, context.integer("repeats"));
    if (!context.given("dim")) {
        TRY(x, context.reshape(x, {elementCount(context.shapeOf(x))}));
    }
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    Shape shape = context.shapeOf(x);
    Shape apart = shape;
    apart.insert(apart.begin() + axis + 1, 1);
    TRY(const TensorId separate, context.reshape(x, apart, "apart"));
    apart[axisIndex(axis) + 1] = repeats;
    TRY(const TensorId copies, context.expand(separate, apart, "copies"));
    shape[axisIndex(axis)] *= repeats;
    TRY(const TensorId joined, context.reshape(copies, std::move(shape), ""));
    return context.bind(0, joined);
}

// --- orders ------------------------------------------------------------------------------------------------

Integers inOrder(std::int64_t rank)
{
    Integers order(axisIndex(rank));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Result<void> atenPermute(AtenContext &context, TensorId x)
{
    TRY(Integers order, context.dimensions("dims", context.rankOf(x), {}));
    return context.finishPermuted(x, std::move(order));
}

Result<void> swapDimensions(AtenContext &context, const char *first, const char *second)
{
    TRY(const TensorId x, context.tensor("self"));
    const std::int64_t rank = context.rankOf(x);
    if (rank == 0)
        return context.bind(0, x);
    TRY(const std::int64_t a, context.dimension(first, rank, 0));
    TRY(const std::int64_t b, context.dimension(second, rank, 0));
    Integers order = inOrder(rank);
    std::swap(order[axisIndex(a)], order[axisIndex(b)]);
    return context.finishPermuted(x, std::move(order));
}
Result<void> atenTranspose(AtenContext &context)
{
    return swapDimensions(context, "dim0", "dim1");
}

/// t, mT and numpy_T of matrices; numpy_T turns all dimensions around.
Result<void> turnAround(AtenContext &context, bool all)
{
    TRY(const TensorId x, context.tensor("self"));
    const std::int64_t rank = context.rankOf(x);
    if (rank < 2)
        return context.bind(0, x);
    Integers order = inOrder(rank);
    if (all)
        std::reverse(order.begin(), order.end());
    else
        std::swap(order[axisIndex(rank) - 1], order[axisIndex(rank) - 2]);
    return context.finishPermuted(x, std::move(order));
}
Result<void> atenMatrixTranspose(AtenContext &context)
{
    return turnAround(context, false);
}

Result<void> moveDimensions(AtenContext &context, TensorId x)
{
    const std::int64_t rank = context.rankOf(x);
    TRY(const Integers from, context.dimensions("source", rank, {}));
    TRY(const Integers to, context.dimensions("destination", rank, {}));
    if (from.size() != to.size())
        return context.invalid("it moves " + std::to_string(from.size()) + " dimensions to "
            + std::to_string(to.size()) + " places");
    Integers order(axisIndex(rank), -1);
    for (std::size_t i = 0; i < from.size(); ++i)
        order[axisIndex(to[i])] = from[i];
    std::int64_t next = 0;
    for (std::int64_t &place : order) {
        if (place >= 0)
            continue;
        while (std::find(from.begin(), from.end(), next) != from.end())
            ++next;
        place = next++;
    }
    return context.finishPermuted(x, std::move(order));
}

/// The same in the other direction along some dimensions.
Result<void> atenFlip(AtenContext &context, TensorId x)
{
    TRY(const Integers axes, context.dimensions("dims", context.rankOf(x), {}));
    if (axes.empty())
        return context.bind(0, x);
    const auto count = axes.size();
    const Integers backward(count, -1);
    return context.finishWith(
        emitSlice, x, SliceBounds{backward, Integers(count, INT64_MIN), axes, backward});
}

/// Moved along dimensions, with what leaves at one end coming in at the other.
Result<void> atenRoll(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(const Integers shifts, context.integers("shifts"));
    const Shape shape = context.shapeOf(x);
    TRY(Integers axes, context.integers("dims", {}));
    const bool flat = axes.empty();
    if (flat) {
        TRY(x, context.reshape(x, {elementCount(shape)}));
        axes = {0};
    }
    if (axes.size() != shifts.size())
        return context.invalid("it has " + std::to_string(shifts.size()) + " shifts for "
            + std::to_string(axes.size()) + " dimensions");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t rank = context.rankOf(x);
        const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return context.invalid("it has no dimension " + std::to_string(axes[i]));
        const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
        const std::int64_t shift = extent == 0 ? 0 : ((shifts[i] % extent) + extent) % extent;
        if (shift == 0)
            continue;
        TRY(const TensorId tail, context.slice(x, axis, extent - shift, extent, 1, "tail"));
        TRY(const TensorId head, context.slice(x, axis, 0, extent - shift, 1, "head"));
        TRY(x, context.concat({tail, head}, axis, flat || i + 1 < axes.size() ? "turned" : ""));
    }
    if (flat) {
        TRY(x, context.reshape(x, shape, ""));
    }
    return context.bind(0, x);
}

} // namespace

const AtenHandlers &atenShapeHandlers()
{
    static const AtenHandlers kHandlers = {{"view", atenView}, {"reshape", atenView},
        {"_unsafe_view", atenView}, {"view_as", atenViewAs}, {"reshape_as", atenViewAs},
        {"view_copy", atenView}, {"flatten", ofSelf<atenFlatten>}, {"unflatten", ofSelf<atenUnflatten>},
        {"squeeze", ofSelf<atenSqueeze>}, {"squeeze_copy", ofSelf<atenSqueeze>},
        {"unsqueeze", ofSelf<atenUnsqueeze>}, {"unsqueeze_copy", ofSelf<atenUnsqueeze>},
        {"expand", ofSelf<atenExpand>}, {"expand_copy", ofSelf<atenExpand>},
        {"broadcast_to", ofSelf<atenExpand>}, {"expand_as", ofSelf<atenExpandAs>},
        {"broadcast_tensors", broadcastTensors}, {"meshgrid", meshGrid}, {"repeat", atenRepeat},
        {"tile", atenRepeat}, {"repeat_interleave", repeatInterleave}, {"permute", ofSelf<atenPermute>},
        {"permute_copy", ofSelf<atenPermute>}, {"transpose", atenTranspose}, {"swapdims", atenTranspose},
        {"swapaxes", [](AtenContext &context) { return swapDimensions(context, "axis0", "axis1"); }},
        {"t", atenMatrixTranspose}, {"mT", atenMatrixTranspose}, {"adjoint", atenMatrixTranspose},
        {"matrix_H", atenMatrixTranspose},
        {"numpy_T", [](AtenContext &context) { return turnAround(context, true); }},
        {"movedim", ofSelf<moveDimensions>}, {"moveaxis", ofSelf<moveDimensions>}, {"flip", ofSelf<atenFlip>},
        {"roll", atenRoll}};
    return kHandlers;
}

bool isAtenView(std::string_view name)
{
    static const std::set<std::string_view> kViews = {"view", "reshape", "view_as", "reshape_as", "flatten",
        "unflatten", "squeeze", "unsqueeze", "expand", "broadcast_to", "expand_as", "permute", "transpose",
        "swapdims", "swapaxes", "t", "mT", "adjoint", "matrix_H", "numpy_T", "movedim", "moveaxis", "split",
        "split_with_sizes", "chunk", "unbind", "slice", "narrow", "select", "alias", "detach", "contiguous",
        "to", "type_as", "lift_fresh", "positive", "dropout", "diagonal", "real", "unfold", "as_strided"};
    return kViews.count(name) != 0;
}

} // namespace planloom
