#include "engine/frontend/writer/emit_movement.h"

#include "engine/frontend/passes/mixture/chosen_writer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

bool areAll(const Integers &values, std::int64_t value)
{
    return std::all_of(values.begin(), values.end(), [&](std::int64_t each) { return each == value; });
}

/// Known indices counted from the end are counted from the start instead. `extent` is that of the indexed
/// dimension.
Result<TensorId> countedFromStart(NodeWriter &writer, TensorId indices, std::int64_t extent)
{
    const TensorType type = writer.typeOf(indices);
    if (!writer.graph().isKnown(indices) || isFloating(type.dataType))
        return indices;
    Integers values = integersOf(*writer.graph().valuesOf(indices));
    bool negative = false;
    for (std::int64_t &index : values) {
        if (index < -extent || index >= extent)
            return writer.invalid(
                "it takes element " + std::to_string(index) + " of a dimension of " + std::to_string(extent));
        negative = negative || index < 0;
        index = index < 0 ? index + extent : index;
    }
    return negative ? writer.graph().addConstant(integerTensor(std::move(values), type.shape)) : indices;
}

Result<TensorId> gatherAlong(
    NodeWriter &writer, OperatorKind kind, TensorId x, TensorId indices, std::int64_t written)
{
    TRY(const std::int64_t axis, writer.axis(written, writer.rankOf(x)));
    const std::int64_t extent = writer.shapeOf(x)[static_cast<std::size_t>(axis)];
    TRY(const TensorId counted, countedFromStart(writer, indices, extent));
    return writer.make(kind, {x, counted}, attributesFrom({{"axis", axis}}));
}

/// What a slice takes of one dimension.
struct SliceSteps {
    std::int64_t count = 0;
    std::int64_t first = 0;
    std::int64_t step = 1;
};

/// `extent` is that of the dimension; the step is none of 0.
SliceSteps stepsIn(std::int64_t extent, std::int64_t start, std::int64_t end, std::int64_t step)
{
    const std::int64_t low = step > 0 ? 0 : -1;
    const std::int64_t high = step > 0 ? extent : extent - 1;
    const auto clamped = [&](std::int64_t value) {
        return std::clamp(value < 0 ? value + extent : value, low, high);
    };
    const std::int64_t begin = clamped(start);
    const std::int64_t span = step > 0 ? clamped(end) - begin : begin - clamped(end);
    const std::int64_t stride = step > 0 ? step : -step;
    const std::int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    return {count, count == 0 ? 0 : begin, count <= 1 ? 1 : step};
}

} // namespace

Result<TensorId> emitReshape(NodeWriter &writer, TensorId x, const Shape &wanted, bool zeroCopies)
{
    const Shape from = writer.shapeOf(x);
    Shape shape = wanted;
    std::ptrdiff_t open = -1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0 && zeroCopies) {
            if (i >= from.size())
                return writer.invalid("its shape " + toString(wanted) + " copies dimension "
                    + std::to_string(i) + " of an input of shape " + toString(from));
            shape[i] = from[i];
        } else if (shape[i] == -1 && open < 0) {
            open = static_cast<std::ptrdiff_t>(i);
        }
    }
    const Error misfit =
        writer.invalid("a value of shape " + toString(from) + " cannot take the shape " + toString(wanted),
            "the model contradicts itself, or a size given with --dim does not fit it");
    const std::int64_t count = elementCount(from);
    if (open >= 0) {
        shape[static_cast<std::size_t>(open)] = 1;
        const auto rest = checkedElementCount(shape);
        if (!rest || (*rest == 0 ? count != 0 : count % *rest != 0))
            return misfit;
        shape[static_cast<std::size_t>(open)] = *rest == 0 ? 0 : count / *rest;
    }
    if (checkedElementCount(shape) != std::optional(count))
        return misfit;
    return writer.reshape(x, std::move(shape), {});
}

Result<TensorId> emitTranspose(NodeWriter &writer, TensorId x, const Integers &permutation)
{
    const std::int64_t rank = writer.rankOf(x);
    Integers sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    Integers expected(static_cast<std::size_t>(rank));
    std::iota(expected.begin(), expected.end(), 0);
    if (sorted != expected)
        return writer.invalid("attribute 'perm' is " + toString(permutation) + ", where an order of the "
            + std::to_string(rank) + " dimensions was expected");
    if (permutation == expected)
        return x;
    return writer.make(OperatorKind::Transpose, {x}, attributesFrom({{"permutation", permutation}}));
}

Result<TensorId> emitExpand(NodeWriter &writer, TensorId x, const Shape &wanted)
{
    const TensorType type = writer.typeOf(x);
    const Shape &from = type.shape;
    Shape shape(std::max(from.size(), wanted.size()), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::int64_t a = i < from.size() ? from[from.size() - 1 - i] : 1;
        const std::int64_t b = i < wanted.size() ? wanted[wanted.size() - 1 - i] : 1;
        if (a != b && a != 1 && b != 1)
            return writer.invalid(
                "a value of shape " + toString(from) + " does not broadcast to " + toString(wanted));
        shape[shape.size() - 1 - i] = a == 1 ? b : a;
    }
    if (shape == from)
        return x;
    return writer.make(OperatorKind::Expand, {x}, {}, TensorType{type.dataType, std::move(shape)});
}

Result<TensorId> emitTile(NodeWriter &writer, TensorId x, const Integers &repeats)
{
    if (static_cast<std::int64_t>(repeats.size()) == writer.rankOf(x) && areAll(repeats, 1))
        return x;
    return writer.make(OperatorKind::Tile, {x}, attributesFrom({{"repeats", repeats}}));
}

Result<TensorId> emitConcat(NodeWriter &writer, const std::vector<TensorId> &parts, std::int64_t written)
{
    TRY_VOID(writer.require(parts.empty() ? std::vector<TensorId>(1) : parts));
    TRY(const std::int64_t axis, writer.axis(written, writer.rankOf(parts.front())));
    std::vector<TensorId> inputs;
    for (const TensorId part : parts) {
        const Shape &shape = writer.shapeOf(part);
        const bool empty = writer.rankOf(part) > axis && shape[static_cast<std::size_t>(axis)] == 0;
        if (!empty)
            inputs.push_back(part);
    }
    if (inputs.size() <= 1)
        return inputs.empty() ? parts.front() : inputs.front();
    return writer.make(OperatorKind::Concat, std::move(inputs), attributesFrom({{"axis", axis}}));
}

Result<std::vector<TensorId>> emitSplit(
    NodeWriter &writer, TensorId x, std::int64_t written, const Integers &sizes)
{
    TRY(const std::int64_t axis, writer.axis(written, writer.rankOf(x)));
    const bool isWhole =
        sizes.size() == 1 && sizes.front() == writer.shapeOf(x)[static_cast<std::size_t>(axis)];
    if (sizes.empty() || isWhole)
        return std::vector<TensorId>(sizes.size(), x);
    return writer.makeMany(OperatorKind::Split, {x}, attributesFrom({{"axis", axis}, {"sizes", sizes}}));
}

Result<TensorId> emitSlice(NodeWriter &writer, TensorId x, const SliceBounds &bounds)
{
    const std::size_t count = bounds.starts.size();
    Integers all(count);
    std::iota(all.begin(), all.end(), 0);
    const Integers axes = bounds.axes.value_or(all);
    const Integers steps = bounds.steps.value_or(Integers(count, 1));
    if (bounds.ends.size() != count || axes.size() != count || steps.size() != count)
        return writer.invalid("its starts, ends, axes and steps have " + std::to_string(count) + ", "
            + std::to_string(bounds.ends.size()) + ", " + std::to_string(axes.size()) + " and "
            + std::to_string(steps.size()) + " elements, where as many of each were expected");
    const TensorType type = writer.typeOf(x);
    Shape shape = type.shape;
    Integers from(shape.size(), 0);
    Integers by(shape.size(), 1);
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < count; ++i) {
        TRY(const std::int64_t axis, writer.axis(axes[i], writer.rankOf(x)));
        if (!seen.insert(axis).second)
            return writer.invalid("its axes name dimension " + std::to_string(axis) + " twice");
        if (steps[i] == 0 || steps[i] == std::numeric_limits<std::int64_t>::min())
            return writer.invalid("its steps contain " + std::to_string(steps[i]));
        const auto d = static_cast<std::size_t>(axis);
        const SliceSteps taken = stepsIn(type.shape[d], bounds.starts[i], bounds.ends[i], steps[i]);
        shape[d] = taken.count;
        from[d] = taken.first;
        by[d] = taken.step;
    }
    if (shape == type.shape && areAll(by, 1))
        return x;
    return writer.make(OperatorKind::Slice, {x}, attributesFrom({{"starts", from}, {"steps", by}}),
        TensorType{type.dataType, std::move(shape)});
}

Result<TensorId> emitPad(
    NodeWriter &writer, TensorId x, const Integers &pads, const std::string &mode, Number value)
{
    constexpr std::int64_t kLargestPad = std::int64_t{1} << 40;
    const Shape &shape = writer.shapeOf(x);
    if (pads.size() != 2 * shape.size() || std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) {
            return pad > kLargestPad || pad < -kLargestPad;
        }))
        return writer.invalid("its pads are " + toString(pads) + ", where two numbers per dimension of "
            + toString(shape) + " were expected");
    if (areAll(pads, 0))
        return x;
    return writer.make(OperatorKind::Pad, {x},
        attributesFrom({{"pads", pads}, {"mode", mode}, {"value", numberAttribute(value)}}));
}

Result<TensorId> emitGather(NodeWriter &writer, TensorId x, TensorId indices, std::int64_t axis)
{
    return gatherAlong(writer, OperatorKind::Gather, x, indices, axis);
}

Result<TensorId> emitGatherElements(NodeWriter &writer, TensorId x, TensorId indices, std::int64_t axis)
{
    return gatherAlong(writer, OperatorKind::GatherElements, x, indices, axis);
}

Result<TensorId> emitGatherND(NodeWriter &writer, TensorId x, TensorId indices, std::int64_t batchDimensions)
{
    return writer.make(
        OperatorKind::GatherND, {x, indices}, attributesFrom({{"batch_dims", batchDimensions}}));
}

Result<TensorId> emitScatterElements(NodeWriter &writer, TensorId x, TensorId indices, TensorId updates,
    std::int64_t written, const std::string &reduction)
{
    TRY(const std::int64_t axis, writer.axis(written, writer.rankOf(x)));
    return writer.make(OperatorKind::ScatterElements, {x, indices, updates},
        attributesFrom({{"axis", axis}, {"reduction", reduction}}));
}

Result<TensorId> emitScatterND(
    NodeWriter &writer, TensorId x, TensorId indices, TensorId updates, const std::string &reduction)
{
    return writer.make(
        OperatorKind::ScatterND, {x, indices, updates}, attributesFrom({{"reduction", reduction}}));
}

Result<TensorId> emitNonZero(NodeWriter &writer, TensorId x)
{
    const auto data = writer.graph().valuesOf(x);
    if (!data)
        return choosePlaces(writer.graph(), writer.name(), writer.source(), x);
    const Shape &shape = data->type.shape;
    if (!writer.graph().constants().take({DataType::Int64, shape}))
        return writer.unsupported("its result is too large to be computed at import");
    std::vector<Integers> positions(shape.size());
    const std::int64_t count = elementCount(shape);
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const Number value = readNumber(data->type.dataType, data->bytes.data(), static_cast<std::size_t>(i));
        if (value.floating ? value.real == 0 : value.integer == 0)
            continue;
        ++found;
        std::int64_t rest = i;
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            positions[axis].push_back(rest % shape[axis]);
            rest /= shape[axis];
        }
    }
    Integers all;
    for (const Integers &axis : positions)
        all.insert(all.end(), axis.begin(), axis.end());
    return writer.graph().addConstant(
        integerTensor(std::move(all), {static_cast<std::int64_t>(shape.size()), found}));
}

Result<TensorId> emitTrilu(NodeWriter &writer, TensorId x, bool upper, std::int64_t k)
{
    constexpr std::int64_t kFar = std::int64_t{1} << 40; // beyond every matrix, and safe to add to
    return writer.make(OperatorKind::Trilu, {x},
        attributesFrom({{"upper", std::int64_t{upper ? 1 : 0}}, {"k", std::clamp(k, -kFar, kFar)}}));
}

} // namespace planloom
