#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_movement.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Integers = std::vector<std::int64_t>;

/// Gives input 0 another shape with as many elements.
Result<void> finishReshape(Context &context, Shape shape)
{
    return context.finish(context.reshape(context.input(0), std::move(shape), {}));
}

Result<void> importReshape(Context &context)
{
    TRY(const auto given, context.attributeOrInput("shape", 1, 5));
    if (!given)
        return context.invalid("input 1 (shape) is missing");
    TRY(const std::int64_t allowZero, context.integer("allowzero", 0));
    return context.finish(emitReshape(context, context.input(0), *given, allowZero == 0));
}

Result<void> importFlatten(Context &context)
{
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
    TRY(const auto given, context.integers("perm"));
    Integers permutation = given.value_or(Integers{});
    if (!given) {
        for (std::int64_t axis = context.rank(0); axis-- > 0;)
            permutation.push_back(axis);
    }
    return context.finish(emitTranspose(context, context.input(0), permutation));
}

Result<void> importExpand(Context &context)
{
    TRY(const Integers shape, context.constantIntegers(1, "shape"));
    return context.finish(emitExpand(context, context.input(0), shape));
}

Result<void> importTile(Context &context)
{
    TRY(const Integers repeats, context.constantIntegers(1, "repeats"));
    return context.finish(emitTile(context, context.input(0), repeats));
}

Result<void> importConcat(Context &context)
{
    TRY_VOID(context.require(std::max<std::size_t>(1, context.inputCount())));
    if (!context.hasAttribute("axis"))
        return context.invalid("attribute 'axis' is missing");
    TRY(const std::int64_t axis, context.integer("axis", 0));
    return context.finish(emitConcat(context, context.inputs(), axis));
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
    return context.finishMany(emitSplit(context, context.input(0), axis, sizes));
}

Result<void> importSlice(Context &context)
{
    SliceBounds bounds;
    TRY(const auto starts, context.attributeOrInput("starts", 1, 10));
    TRY(const auto ends, context.attributeOrInput("ends", 2, 10));
    TRY(bounds.axes, context.attributeOrInput("axes", 3, 10));
    if (context.opset() >= 10) {
        TRY(bounds.steps, context.attributeOrInput("steps", 4, 10));
    }
    if (!starts || !ends)
        return context.invalid("its starts or ends are missing");
    bounds.starts = *starts;
    bounds.ends = *ends;
    return context.finish(emitSlice(context, context.input(0), bounds));
}

Result<void> importPad(Context &context)
{
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
    return context.finish(emitPad(context, context.input(0), pads, mode, value));
}

template<auto emit> Result<void> importGatherAlong(Context &context)
{
    TRY(const std::int64_t axis, context.integer("axis", 0));
    return context.finish(emit(context, context.input(0), context.input(1), axis));
}

Result<void> importGatherND(Context &context)
{
    TRY(const std::int64_t batch, context.integer("batch_dims", 0));
    return context.finish(emitGatherND(context, context.input(0), context.input(1), batch));
}

Result<void> importScatterElements(Context &context)
{
    TRY(const std::string reduction, context.text("reduction", "none"));
    TRY(const std::int64_t axis, context.integer("axis", 0));
    return context.finish(
        emitScatterElements(context, context.input(0), context.input(1), context.input(2), axis, reduction));
}
Result<void> importScatterND(Context &context)
{
    TRY(const std::string reduction, context.text("reduction", "none"));
    return context.finish(
        emitScatterND(context, context.input(0), context.input(1), context.input(2), reduction));
}

Result<void> importOneHot(Context &context)
{
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
    return context.finishMany(OperatorKind::TopK, {context.input(0)},
        attributesFrom({{"axis", axis}, {"k", k}, {"largest", largest}, {"sorted", sorted}}));
}

Result<void> importCumSum(Context &context)
{
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
    TRY(const std::int64_t upper, context.integer("upper", 1));
    std::int64_t k = 0;
    if (context.has(1)) {
        TRY(const Integers given, context.constantIntegers(1, "k"));
        if (given.size() != 1)
            return context.invalid("its k has " + std::to_string(given.size()) + " elements");
        k = given.front();
    }
    return context.finish(emitTrilu(context, context.input(0), upper != 0, k));
}

Result<void> importDepthToSpace(Context &context)
{
    TRY(const std::int64_t size, context.integer("blocksize", 0));
    TRY(const std::string mode, context.text("mode", "DCR"));
    return context.finish(OperatorKind::DepthToSpace, {context.input(0)},
        attributesFrom({{"blocksize", size}, {"mode", mode}}));
}

Result<void> importSpaceToDepth(Context &context)
{
    TRY(const std::int64_t size, context.integer("blocksize", 0));
    return context.finish(
        OperatorKind::SpaceToDepth, {context.input(0)}, attributesFrom({{"blocksize", size}}));
}

Result<void> importReverseSequence(Context &context)
{
    TRY(const std::int64_t batchWritten, context.integer("batch_axis", 1));
    TRY(const std::int64_t timeWritten, context.integer("time_axis", 0));
    TRY(const std::int64_t batch, context.axis(batchWritten, context.rank(0)));
    TRY(const std::int64_t time, context.axis(timeWritten, context.rank(0)));
    return context.finish(OperatorKind::ReverseSequence, {context.input(0), context.input(1)},
        attributesFrom({{"batch_axis", batch}, {"time_axis", time}}));
}

} // namespace

const OnnxHandlers &onnxMovementHandlers()
{
    static const OnnxHandlers kHandlers = {{"Reshape", needs<1, importReshape>},
        {"Flatten", needs<1, importFlatten>}, {"Squeeze", needs<1, importSqueeze>},
        {"Unsqueeze", needs<1, importUnsqueeze>}, {"Transpose", needs<1, importTranspose>},
        {"Expand", needs<2, importExpand>}, {"Tile", needs<2, importTile>}, {"Concat", importConcat},
        {"Split", importSplit}, {"Slice", needs<1, importSlice>}, {"Pad", needs<1, importPad>},
        {"Gather", needs<2, importGatherAlong<emitGather>>},
        {"GatherElements", needs<2, importGatherAlong<emitGatherElements>>},
        {"GatherND", needs<2, importGatherND>}, {"Scatter", needs<3, importScatterElements>},
        {"ScatterElements", needs<3, importScatterElements>}, {"ScatterND", needs<3, importScatterND>},
        {"OneHot", needs<3, importOneHot>}, {"TopK", importTopK}, {"CumSum", needs<2, importCumSum>},
        {"Trilu", needs<1, importTrilu>}, {"DepthToSpace", needs<1, importDepthToSpace>},
        {"SpaceToDepth", needs<1, importSpaceToDepth>}, {"ReverseSequence", needs<2, importReverseSequence>}};
    return kHandlers;
}

} // namespace planloom
