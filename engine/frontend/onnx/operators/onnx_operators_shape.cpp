#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_movement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;
using Integers = std::vector<std::int64_t>;

/// What the node's value is, if it is stored as initializers are.
std::optional<Classification> storedBy(
    Context &context, const TensorType &type, const std::shared_ptr<const TensorData> &data)
{
    return context.scope().storedByNode(StoredTensor{context.node().outputs.front(), type, data, {}, false});
}

Result<void> importConstant(Context &context)
{
    const auto &attributes = context.node().attributes;
    if (context.node().outputs.empty() || attributes.size() != 1)
        return context.invalid(
            "it has " + std::to_string(attributes.size()) + " values, where one was expected");
    const auto &[name, attribute] = *attributes.begin();
    std::shared_ptr<const TensorData> data;
    if (const auto *tensor = std::get_if<StoredTensor>(&attribute)) {
        if (!tensor->data) { // beside the file
            const TensorId id = context.graph().addStored(
                StoredTensor{"", tensor->type, nullptr, tensor->external, false}, TensorRole::Buffer);
            if (const auto stored = storedBy(context, tensor->type, nullptr))
                context.graph().makeStored(id, *stored);
            return context.bind(0, id);
        }
        data = tensor->data;
    } else if (const auto *integer = std::get_if<std::int64_t>(&attribute)) {
        data = integerTensor({*integer}, {});
    } else if (const auto *integers = std::get_if<std::vector<std::int64_t>>(&attribute)) {
        data = integerTensor(*integers, {static_cast<std::int64_t>(integers->size())});
    } else if (const auto *real = std::get_if<float>(&attribute)) {
        data = scalarTensor(DataType::Float32, static_cast<double>(*real));
    } else if (const auto *reals = std::get_if<std::vector<float>>(&attribute)) {
        TensorData list =
            filledTensor({DataType::Float32, {static_cast<std::int64_t>(reals->size())}}, Number::ofReal(0));
        for (std::size_t i = 0; i < reals->size(); ++i)
            writeNumber(
                DataType::Float32, list.bytes.data(), i, Number::ofReal(static_cast<double>((*reals)[i])));
        data = std::make_shared<const TensorData>(std::move(list));
    } else {
        const auto *unreadable = std::get_if<OnnxUnreadable>(&attribute);
        return context.unsupported("its value ('" + name + "') is not a tensor of numbers"
            + (unreadable != nullptr ? ": " + unreadable->reason : std::string{}));
    }
    const TensorId id = context.graph().addConstant(data);
    if (const auto stored = storedBy(context, data->type, data))
        context.graph().makeStored(id, *stored);
    return context.bind(0, id);
}

Result<void> importConstantOfShape(Context &context)
{
    TRY(const Integers shape, context.constantIntegers(0, "shape"));
    TensorType type{DataType::Float32, shape};
    Number value = Number::ofReal(0);
    if (const auto found = context.node().attributes.find("value");
        found != context.node().attributes.end()) {
        const auto *tensor = std::get_if<StoredTensor>(&found->second);
        if (tensor == nullptr || !tensor->data || elementCount(tensor->type.shape) != 1)
            return context.invalid("attribute 'value' should be a tensor of one number");
        type.dataType = tensor->type.dataType;
        value = readNumber(type.dataType, tensor->data->bytes.data(), 0);
    }
    if (!checkedByteCount(type))
        return context.invalid("it would make a value of shape " + toString(shape));
    const auto data = context.graph().constants().filled(type, value);
    const auto stored = storedBy(context, type, data);
    if (data) {
        const TensorId id = context.graph().addConstant(data);
        if (stored)
            context.graph().makeStored(id, *stored);
        return context.bind(0, id);
    }
    if (stored && stored->as == StoredAs::Parameter) {
        context.graph().note("weights filled with one number are too large to hold; a run draws them from "
                             "its seed (on the command line with --random-weights)");
        return context.bind(
            0, context.graph().addStored(StoredTensor{"", type, nullptr, {}, false}, TensorRole::Weight));
    }
    return context.finish(OperatorKind::Fill, {}, attributesFrom({{"value", numberAttribute(value)}}), type);
}

Result<void> importShape(Context &context)
{
    const std::int64_t rank = context.rank(0);
    TRY(std::int64_t start, context.integer("start", 0));
    TRY(std::int64_t end, context.integer("end", rank));
    start = std::clamp<std::int64_t>(start < 0 ? start + rank : start, 0, rank);
    end = std::clamp<std::int64_t>(end < 0 ? end + rank : end, start, rank);
    const Shape &shape = context.shape(0);
    const TensorId sizes = context.graph().addConstant(
        integerTensor(Integers(shape.begin() + start, shape.begin() + end), {end - start}));
    context.graph().noteSizes(
        sizes, context.input(0), static_cast<std::size_t>(start), static_cast<std::size_t>(end));
    return context.bind(0, sizes);
}

Result<void> importSize(Context &context)
{
    const TensorId size = context.graph().addConstant(integerTensor({elementCount(context.shape(0))}, {}));
    context.graph().noteSizes(size, context.input(0), 0, context.shape(0).size());
    return context.bind(0, size);
}

Result<void> importRange(Context &context)
{
    Number numbers[3];
    const DataType type = context.type(0).dataType;
    for (std::size_t slot = 0; slot < 3; ++slot) {
        TRY(const auto data, context.values(slot, slot == 0 ? "start" : slot == 1 ? "limit" : "delta"));
        if (elementCount(data->type.shape) != 1 || data->type.dataType != type)
            return context.invalid("its start, limit and delta should be single numbers of one type");
        numbers[slot] = readNumber(type, data->bytes.data(), 0);
    }
    const double start = numbers[0].asReal();
    const double delta = numbers[2].asReal();
    double count = std::ceil((numbers[1].asReal() - start) / delta);
    if (delta == 0 || !std::isfinite(count) || count > 1e12)
        return context.invalid("it would count from " + std::to_string(start) + " by " + std::to_string(delta)
            + " to " + std::to_string(numbers[1].asReal()));
    if (!isFloating(type) && count > 0) { // large integers have no exact place among fractions
        const std::int64_t first = numbers[0].integer;
        const std::int64_t limit = numbers[1].integer;
        const std::int64_t step = numbers[2].integer;
        const auto span = static_cast<std::uint64_t>(std::max(first, limit))
            - static_cast<std::uint64_t>(std::min(first, limit));
        const auto size = static_cast<std::uint64_t>(step < 0 ? -step : step);
        count = static_cast<double>((span + size - 1) / size);
    }
    return context.finish(OperatorKind::Range, {},
        attributesFrom({{"start", numberAttribute(numbers[0])}, {"delta", numberAttribute(numbers[2])}}),
        TensorType{type, {std::max<std::int64_t>(0, static_cast<std::int64_t>(count))}});
}

/// The sum of up to three cosines that a window is, as numbers: HannWindow, HammingWindow, BlackmanWindow.
Result<void> importWindow(Context &context)
{
    static const std::map<std::string, std::vector<double>, std::less<>> kTerms = {
        {"HannWindow", {0.5, -0.5}}, {"HammingWindow", {25.0 / 46, -21.0 / 46}},
        {"BlackmanWindow", {0.42, -0.5, 0.08}}};
    TRY(const Integers size, context.constantIntegers(0, "size"));
    TRY(const std::int64_t periodic, context.integer("periodic", 1));
    TRY(const std::int64_t code, context.integer("output_datatype", 1));
    const DataType type = onnxElementType(code).value_or(DataType::Float32);
    if (size.size() != 1 || size[0] < 1 || !context.graph().constants().take({type, size}))
        return context.invalid("its size is " + toString(size) + ", where a number of elements was expected");
    const auto length = static_cast<double>(periodic != 0 ? size[0] : size[0] - 1);
    TensorData window = filledTensor({type, size}, Number::ofReal(1));
    for (std::int64_t i = 0; i < size[0] && size[0] > 1; ++i) {
        double value = 0;
        double turns = 0;
        for (const double term : kTerms.find(context.node().type)->second)
            value += term * std::cos(2 * std::acos(-1.0) * static_cast<double>(i) * turns++ / length);
        writeNumber(type, window.bytes.data(), static_cast<std::size_t>(i), Number::ofReal(value));
    }
    return context.bind(
        0, context.graph().addConstant(std::make_shared<const TensorData>(std::move(window))));
}

Result<void> importEyeLike(Context &context)
{
    TRY(const std::int64_t k, context.integer("k", 0));
    TensorType type = context.type(0);
    if (context.hasAttribute("dtype")) {
        TRY(const std::int64_t code, context.integer("dtype", 1));
        type.dataType = onnxElementType(code).value_or(type.dataType);
    }
    return context.finish(OperatorKind::EyeLike, {context.input(0)}, attributesFrom({{"k", k}}), type);
}

Result<void> importNonZero(Context &context)
{
    return context.finish(emitNonZero(context, context.input(0)));
}

/// Picks what a condition says: a Gather.
Result<void> importCompress(Context &context)
{
    TensorId x = context.input(0);
    std::int64_t axis = 0;
    if (context.hasAttribute("axis")) {
        TRY(axis, context.axisAttribute(0));
    } else {
        TRY(x, context.reshape(x, {elementCount(context.shape(0))}, "flatten"));
    }
    if (!context.graph().valuesOf(context.input(1))) {
        TRY(const TensorId places, emitNonZero(context, context.input(1)));
        const Shape count{context.graph().typeOf(places).shape.back()};
        TRY(const TensorId list, context.reshape(places, count, "places"));
        return context.finish(OperatorKind::Gather, {x, list}, attributesFrom({{"axis", axis}}));
    }
    TRY(const auto condition, context.values(1, "condition"));
    const std::int64_t extent = context.graph().typeOf(x).shape[static_cast<std::size_t>(axis)];
    const Integers flags = integersOf(*condition);
    Integers chosen;
    for (std::size_t i = 0; i < flags.size() && static_cast<std::int64_t>(i) < extent; ++i) {
        if (flags[i] != 0)
            chosen.push_back(static_cast<std::int64_t>(i));
    }
    const auto count = static_cast<std::int64_t>(chosen.size());
    const TensorId indices = context.graph().addConstant(integerTensor(std::move(chosen), {count}));
    return context.finish(OperatorKind::Gather, {x, indices}, attributesFrom({{"axis", axis}}));
}

} // namespace

const OnnxHandlers &onnxShapeHandlers()
{
    static const OnnxHandlers kHandlers = {{"Constant", importConstant},
        {"ConstantOfShape", importConstantOfShape}, {"Shape", needs<1, importShape>},
        {"Size", needs<1, importSize>}, {"Range", needs<3, importRange>},
        {"EyeLike", needs<1, importEyeLike>}, {"HannWindow", importWindow}, {"HammingWindow", importWindow},
        {"BlackmanWindow", importWindow}, {"NonZero", needs<1, importNonZero>},
        {"Compress", needs<2, importCompress>}};
    return kHandlers;
}

} // namespace planloom
