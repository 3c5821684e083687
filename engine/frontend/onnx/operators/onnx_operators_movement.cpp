#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/onnx/onnx_external.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Handler = Result<void> (*)(Context &);
using Integers = std::vector<std::int64_t>;

/// Gives input 0 another shape with as many elements.
Result<void> finishReshape(Context &context, Shape shape)
{
    if (context.shape(0) == shape)
        return context.bind(0, context.input(0));
    return context.finish(OperatorKind::Reshape, {context.input(0)}, {},
        TensorType{context.type(0).dataType, std::move(shape)});
}

Result<void> importReshape(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const auto given, context.attributeOrInput("shape", 1, 5));
    if (!given)
        return context.invalid("input 1 (shape) is missing");
    TRY(const std::int64_t allowZero, context.integer("allowzero", 0));
    const Shape &from = context.shape(0);
    Shape shape = *given;
    std::ptrdiff_t open = -1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0 && allowZero == 0) {
            if (i >= from.size())
                return context.invalid("its shape " + toString(*given) + " copies dimension "
                    + std::to_string(i) + " of an input of shape " + toString(from));
            shape[i] = from[i];
        } else if (shape[i] == -1 && open < 0) {
            open = static_cast<std::ptrdiff_t>(i);
        }
    }
    const Error misfit =
        context.invalid("a value of shape " + toString(from) + " cannot take the shape " + toString(*given),
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
    return finishReshape(context, std::move(shape));
}

Result<void> importFlatten(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(std::int64_t axis, context.integer("axis", 1));
    const std::int64_t rank = context.rank(0);
    if (axis != rank) {
        TRY(axis, context.axis(axis, rank));
    }
    const Shape &from = context.shape(0);
    return finishReshape(context,
        {elementCount(Shape(from.begin(), from.begin() + axis)),
            elementCount(Shape(from.begin() + axis, from.end()))});
}

Result<void> importSqueeze(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const auto given, context.attributeOrInput("axes", 1, 13));
    const Shape &from = context.shape(0);
    std::set<std::int64_t> axes;
    for (const std::int64_t value : given.value_or(Integers{})) {
        TRY(const std::int64_t axis, context.axis(value, context.rank(0)));
        if (from[static_cast<std::size_t>(axis)] != 1)
            return context.invalid("it removes dimension " + std::to_string(axis) + " of " + toString(from)
                + ", which is not 1");
        axes.insert(axis);
    }
    Shape shape;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const bool removed = given ? axes.count(static_cast<std::int64_t>(i)) != 0 : from[i] == 1;
        if (!removed)
            shape.push_back(from[i]);
    }
    return finishReshape(context, std::move(shape));
}

Result<void> importUnsqueeze(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const auto given, context.attributeOrInput("axes", 1, 13));
    if (!given)
        return context.invalid("its axes are missing");
    if (given->size() > 64)
        return context.invalid("it adds " + std::to_string(given->size()) + " dimensions");
    const std::int64_t rank = context.rank(0) + static_cast<std::int64_t>(given->size());
    std::set<std::int64_t> axes;
    for (const std::int64_t value : *given) {
        TRY(const std::int64_t axis, context.axis(value, rank));
        if (!axes.insert(axis).second)
            return context.invalid("its axes name dimension " + std::to_string(axis) + " twice");
    }
    Shape shape;
    auto next = context.shape(0).begin();
    for (std::int64_t i = 0; i < rank; ++i)
        shape.push_back(axes.count(i) != 0 ? 1 : *next++);
    return finishReshape(context, std::move(shape));
}

Result<void> importTranspose(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const auto given, context.integers("perm"));
    const std::int64_t rank = context.rank(0);
    Integers permutation = given.value_or(Integers{});
    if (!given) {
        for (std::int64_t axis = rank; axis-- > 0;)
            permutation.push_back(axis);
    }
    Integers sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    Integers expected(static_cast<std::size_t>(rank));
    std::iota(expected.begin(), expected.end(), 0);
    if (sorted != expected)
        return context.invalid("attribute 'perm' is " + toString(permutation) + ", where an order of the "
            + std::to_string(rank) + " dimensions was expected");
    if (permutation == expected)
        return context.bind(0, context.input(0));
    return context.finish(
        OperatorKind::Transpose, {context.input(0)}, attributesFrom({{"permutation", permutation}}));
}

Result<void> importExpand(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const Integers wanted, context.constantIntegers(1, "shape"));
    const Shape &from = context.shape(0);
    Shape shape(std::max(from.size(), wanted.size()), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::int64_t a = i < from.size() ? from[from.size() - 1 - i] : 1;
        const std::int64_t b = i < wanted.size() ? wanted[wanted.size() - 1 - i] : 1;
        if (a != b && a != 1 && b != 1)
            return context.invalid(
                "a value of shape " + toString(from) + " does not broadcast to " + toString(wanted));
        shape[shape.size() - 1 - i] = a == 1 ? b : a;
    }
    if (shape == from)
        return context.bind(0, context.input(0));
    return context.finish(
        OperatorKind::Expand, {context.input(0)}, {}, TensorType{context.type(0).dataType, std::move(shape)});
}

Result<void> importTile(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const Integers repeats, context.constantIntegers(1, "repeats"));
    if (static_cast<std::int64_t>(repeats.size()) == context.rank(0)
        && std::all_of(repeats.begin(), repeats.end(), [](std::int64_t value) { return value == 1; }))
        return context.bind(0, context.input(0));
    return context.finish(OperatorKind::Tile, {context.input(0)}, attributesFrom({{"repeats", repeats}}));
}

Result<void> importConcat(Context &context)
{
    TRY_VOID(context.require(std::max<std::size_t>(1, context.inputCount())));
    if (!context.hasAttribute("axis"))
        return context.invalid("attribute 'axis' is missing");
    TRY(const std::int64_t axis, context.axisAttribute(0));
    std::vector<TensorId> inputs;
    for (std::size_t slot = 0; slot < context.inputCount(); ++slot) {
        const bool empty =
            context.rank(slot) > axis && context.shape(slot)[static_cast<std::size_t>(axis)] == 0;
        if (!empty)
            inputs.push_back(context.input(slot));
    }
    if (inputs.size() <= 1)
        return context.bind(0, inputs.empty() ? context.input(0) : inputs.front());
    return context.finish(OperatorKind::Concat, std::move(inputs), attributesFrom({{"axis", axis}}));
}

Result<void> importSplit(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(0));
    TRY(const auto given, context.attributeOrInput("split", 1, 13));
    const std::int64_t extent = context.shape(0)[static_cast<std::size_t>(axis)];
    const auto outputs = static_cast<std::int64_t>(context.node().outputs.size());
    if (outputs < 1)
        return {};
    TRY(const std::int64_t written, context.integer("num_outputs", outputs));
    if (written != outputs)
        return context.invalid("attribute 'num_outputs' is " + std::to_string(written) + ", but it has "
            + std::to_string(outputs) + " outputs");
    Integers sizes = given.value_or(Integers{});
    if (!given) { // equal parts, the last one smaller since opset 18
        const std::int64_t part = (extent + outputs - 1) / outputs;
        if (extent % outputs != 0 && context.opset() < 18)
            return context.invalid("dimension " + std::to_string(axis) + " of " + toString(context.shape(0))
                + " does not divide into " + std::to_string(outputs) + " equal parts");
        std::int64_t left = extent;
        for (std::int64_t i = 0; i < outputs; ++i) {
            sizes.push_back(std::min(part, left));
            left -= sizes.back();
        }
    }
    if (static_cast<std::int64_t>(sizes.size()) != outputs)
        return context.invalid(
            "it has " + std::to_string(sizes.size()) + " sizes for " + std::to_string(outputs) + " outputs");
    if (outputs == 1 && sizes.front() == extent)
        return context.bind(0, context.input(0));
    TRY(const auto parts,
        context.makeMany(
            OperatorKind::Split, {context.input(0)}, attributesFrom({{"axis", axis}, {"sizes", sizes}})));
    for (std::size_t slot = 0; slot < parts.size(); ++slot)
        TRY_VOID(context.bind(slot, parts[slot]));
    return {};
}

Result<void> importSlice(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const auto starts, context.attributeOrInput("starts", 1, 10));
    TRY(const auto ends, context.attributeOrInput("ends", 2, 10));
    TRY(const auto axesGiven, context.attributeOrInput("axes", 3, 10));
    std::optional<Integers> stepsGiven;
    if (context.opset() >= 10) {
        TRY(stepsGiven, context.attributeOrInput("steps", 4, 10));
    }
    if (!starts || !ends)
        return context.invalid("its starts or ends are missing");
    const std::size_t count = starts->size();
    Integers axes = axesGiven.value_or(Integers{});
    if (!axesGiven) {
        axes.resize(count);
        std::iota(axes.begin(), axes.end(), 0);
    }
    const Integers steps = stepsGiven.value_or(Integers(count, 1));
    if (ends->size() != count || axes.size() != count || steps.size() != count)
        return context.invalid("its starts, ends, axes and steps have " + std::to_string(count) + ", "
            + std::to_string(ends->size()) + ", " + std::to_string(axes.size()) + " and "
            + std::to_string(steps.size()) + " elements, where as many of each were expected");
    Shape shape = context.shape(0);
    Integers from(shape.size(), 0);
    Integers by(shape.size(), 1);
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < count; ++i) {
        TRY(const std::int64_t axis, context.axis(axes[i], context.rank(0)));
        if (!seen.insert(axis).second)
            return context.invalid("its axes name dimension " + std::to_string(axis) + " twice");
        const auto d = static_cast<std::size_t>(axis);
        const std::int64_t extent = context.shape(0)[d];
        const std::int64_t step = steps[i];
        if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
            return context.invalid("its steps contain " + std::to_string(step));
        const std::int64_t low = step > 0 ? 0 : -1;
        const std::int64_t high = step > 0 ? extent : extent - 1;
        const auto clamped = [&](std::int64_t value) {
            return std::clamp(value < 0 ? value + extent : value, low, high);
        };
        const std::int64_t begin = clamped((*starts)[i]);
        const std::int64_t end = clamped((*ends)[i]);
        const std::int64_t span = step > 0 ? end - begin : begin - end;
        const std::int64_t stride = step > 0 ? step : -step;
        shape[d] = span <= 0 ? 0 : (span - 1) / stride + 1;
        from[d] = shape[d] == 0 ? 0 : begin;
        by[d] = shape[d] <= 1 ? 1 : step;
    }
    if (shape == context.shape(0)
        && std::all_of(by.begin(), by.end(), [](std::int64_t step) { return step == 1; }))
        return context.bind(0, context.input(0));
    return context.finish(OperatorKind::Slice, {context.input(0)},
        attributesFrom({{"starts", from}, {"steps", by}}),
        TensorType{context.type(0).dataType, std::move(shape)});
}

Result<void> importPad(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const auto given, context.attributeOrInput("pads", 1, 11));
    TRY(const std::string mode, context.text("mode", "constant"));
    if (!given)
        return context.invalid("its pads are missing");
    Number value = Number::ofReal(0);
    if (context.opset() < 11) {
        TRY(value.real, context.real("value", 0.0));
    } else if (context.has(2)) {
        TRY(value, context.constantNumber(2, "constant_value"));
    }
    const auto rank = static_cast<std::size_t>(context.rank(0));
    Integers pads = *given;
    if (context.has(3)) {
        TRY(const Integers axes, context.constantIntegers(3, "axes"));
        if (pads.size() != 2 * axes.size())
            return context.invalid("it has " + std::to_string(pads.size()) + " pads for "
                + std::to_string(axes.size()) + " axes");
        Integers all(2 * rank, 0);
        for (std::size_t i = 0; i < axes.size(); ++i) {
            TRY(const std::int64_t axis, context.axis(axes[i], context.rank(0)));
            all[static_cast<std::size_t>(axis)] = pads[i];
            all[static_cast<std::size_t>(axis) + rank] = pads[axes.size() + i];
        }
        pads = std::move(all);
    }
    constexpr std::int64_t kLargest = std::int64_t{1} << 40;
    if (pads.size() != 2 * rank || std::any_of(pads.begin(), pads.end(), [](std::int64_t pad) {
            return pad > kLargest || pad < -kLargest;
        }))
        return context.invalid("its pads are " + toString(pads) + ", where two numbers per dimension of "
            + toString(context.shape(0)) + " were expected");
    if (std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad == 0; }))
        return context.bind(0, context.input(0));
    return context.finish(OperatorKind::Pad, {context.input(0)},
        attributesFrom({{"pads", pads}, {"mode", mode}, {"value", numberAttribute(value)}}));
}

/// Known indices counted from the end are counted from the start instead. `extent` is that of the indexed
/// dimension.
Result<TensorId> countedFromStart(Context &context, TensorId indices, std::int64_t extent)
{
    const TensorType type = context.builder().typeOf(indices);
    const bool known = context.builder().isKnown(indices);
    if (!known || isFloating(type.dataType))
        return indices;
    Integers values = integersOf(*context.builder().valuesOf(indices));
    bool negative = false;
    for (std::int64_t &index : values) {
        if (index < -extent || index >= extent)
            return context.invalid(
                "it takes element " + std::to_string(index) + " of a dimension of " + std::to_string(extent));
        negative = negative || index < 0;
        index = index < 0 ? index + extent : index;
    }
    return negative ? context.builder().addConstant(integerTensor(std::move(values), type.shape)) : indices;
}

Result<void> importGather(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const std::int64_t axis, context.axisAttribute(0));
    TRY(const TensorId indices,
        countedFromStart(context, context.input(1), context.shape(0)[static_cast<std::size_t>(axis)]));
    return context.finish(
        OperatorKind::Gather, {context.input(0), indices}, attributesFrom({{"axis", axis}}));
}

Result<void> importGatherElements(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const std::int64_t axis, context.axisAttribute(0));
    TRY(const TensorId indices,
        countedFromStart(context, context.input(1), context.shape(0)[static_cast<std::size_t>(axis)]));
    return context.finish(
        OperatorKind::GatherElements, {context.input(0), indices}, attributesFrom({{"axis", axis}}));
}

Result<void> importGatherND(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const std::int64_t batch, context.integer("batch_dims", 0));
    return context.finish(OperatorKind::GatherND, {context.input(0), context.input(1)},
        attributesFrom({{"batch_dims", batch}}));
}

Result<void> scatter(Context &context, OperatorKind kind)
{
    TRY_VOID(context.require(3));
    TRY(const std::string reduction, context.text("reduction", "none"));
    Attributes attributes = attributesFrom({{"reduction", reduction}});
    if (kind == OperatorKind::ScatterElements) {
        TRY(const std::int64_t axis, context.axisAttribute(0));
        attributes.set("axis", axis);
    }
    return context.finish(
        kind, {context.input(0), context.input(1), context.input(2)}, std::move(attributes));
}

Result<void> importScatterElements(Context &context)
{
    return scatter(context, OperatorKind::ScatterElements);
}
Result<void> importScatterND(Context &context)
{
    return scatter(context, OperatorKind::ScatterND);
}

Result<void> importOneHot(Context &context)
{
    TRY_VOID(context.require(3));
    TRY(const auto depth, context.constantReals(1, "depth"));
    TRY(const auto pair, context.values(2, "values"));
    if (depth.size() != 1 || !(depth.front() >= 1 && depth.front() <= 1e12)
        || elementCount(pair->type.shape) != 2)
        return context.invalid("its depth and values should be one number from 1 and two numbers");
    TRY(const std::int64_t written, context.integer("axis", -1));
    TRY(const std::int64_t axis, context.axis(written, context.rank(0) + 1));
    TensorId indices = context.input(0);
    if (context.type(0).dataType != DataType::Int64 && context.type(0).dataType != DataType::Int32) {
        TRY(indices,
            context.make(
                OperatorKind::Cast, {indices}, {}, TensorType{DataType::Int64, context.shape(0)}, "indices"));
    }
    Shape shape = context.shape(0);
    const auto length = static_cast<std::int64_t>(depth.front());
    shape.insert(shape.begin() + axis, length);
    const auto element = [&](std::size_t i) {
        return readNumber(pair->type.dataType, pair->bytes.data(), i);
    };
    return context.finish(OperatorKind::OneHot, {indices},
        attributesFrom({{"axis", axis}, {"depth", length}, {"on", numberAttribute(element(1))},
            {"off", numberAttribute(element(0))}}),
        TensorType{context.type(2).dataType, std::move(shape)});
}

Result<void> importTopK(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(-1));
    TRY(const std::int64_t largest, context.integer("largest", 1));
    TRY(const std::int64_t sorted, context.integer("sorted", 1));
    std::int64_t k = 0;
    if (context.opset() < 10) {
        TRY(k, context.integer("k", 0));
    } else {
        TRY(const Integers given, context.constantIntegers(1, "k"));
        if (given.size() != 1)
            return context.invalid("its k has " + std::to_string(given.size()) + " elements");
        k = given.front();
    }
    TRY(const auto outputs,
        context.makeMany(OperatorKind::TopK, {context.input(0)},
            attributesFrom({{"axis", axis}, {"k", k}, {"largest", largest}, {"sorted", sorted}})));
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        TRY_VOID(context.bind(slot, outputs[slot]));
    return {};
}

Result<void> importCumSum(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const Integers given, context.constantIntegers(1, "axis"));
    if (given.size() != 1)
        return context.invalid("its axis has " + std::to_string(given.size()) + " elements");
    TRY(const std::int64_t axis, context.axis(given.front(), context.rank(0)));
    TRY(const std::int64_t exclusive, context.integer("exclusive", 0));
    TRY(const std::int64_t reverse, context.integer("reverse", 0));
    return context.finish(OperatorKind::CumSum, {context.input(0)},
        attributesFrom({{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}}));
}

Result<void> importTrilu(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const std::int64_t upper, context.integer("upper", 1));
    std::int64_t k = 0;
    if (context.has(1)) {
        TRY(const Integers given, context.constantIntegers(1, "k"));
        if (given.size() != 1)
            return context.invalid("its k has " + std::to_string(given.size()) + " elements");
        constexpr std::int64_t kFar = std::int64_t{1} << 40; // beyond every matrix, and safe to add to
        k = std::clamp(given.front(), -kFar, kFar);
    }
    return context.finish(
        OperatorKind::Trilu, {context.input(0)}, attributesFrom({{"upper", upper}, {"k", k}}));
}

Result<void> importDepthToSpace(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const std::int64_t size, context.integer("blocksize", 0));
    TRY(const std::string mode, context.text("mode", "DCR"));
    return context.finish(OperatorKind::DepthToSpace, {context.input(0)},
        attributesFrom({{"blocksize", size}, {"mode", mode}}));
}

Result<void> importSpaceToDepth(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const std::int64_t size, context.integer("blocksize", 0));
    return context.finish(
        OperatorKind::SpaceToDepth, {context.input(0)}, attributesFrom({{"blocksize", size}}));
}

Result<void> importReverseSequence(Context &context)
{
    TRY_VOID(context.require(2));
    TRY(const std::int64_t batchWritten, context.integer("batch_axis", 1));
    TRY(const std::int64_t timeWritten, context.integer("time_axis", 0));
    TRY(const std::int64_t batch, context.axis(batchWritten, context.rank(0)));
    TRY(const std::int64_t time, context.axis(timeWritten, context.rank(0)));
    return context.finish(OperatorKind::ReverseSequence, {context.input(0), context.input(1)},
        attributesFrom({{"batch_axis", batch}, {"time_axis", time}}));
}

} // namespace

OnnxHandler findMovementHandler(std::string_view type)
{
    static const std::map<std::string, Handler, std::less<>> kHandlers = {{"Reshape", importReshape},
        {"Flatten", importFlatten}, {"Squeeze", importSqueeze}, {"Unsqueeze", importUnsqueeze},
        {"Transpose", importTranspose}, {"Expand", importExpand}, {"Tile", importTile},
        {"Concat", importConcat}, {"Split", importSplit}, {"Slice", importSlice}, {"Pad", importPad},
        {"Gather", importGather}, {"GatherElements", importGatherElements}, {"GatherND", importGatherND},
        {"Scatter", importScatterElements}, {"ScatterElements", importScatterElements},
        {"ScatterND", importScatterND}, {"OneHot", importOneHot}, {"TopK", importTopK},
        {"CumSum", importCumSum}, {"Trilu", importTrilu}, {"DepthToSpace", importDepthToSpace},
        {"SpaceToDepth", importSpaceToDepth}, {"ReverseSequence", importReverseSequence}};
    const auto found = kHandlers.find(type);
    return found == kHandlers.end() ? nullptr : found->second;
}

} // namespace planloom
