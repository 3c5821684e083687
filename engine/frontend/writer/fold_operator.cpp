#include "engine/frontend/writer/fold_operator.h"

#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/kernels/kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planloom {

namespace {

using Inputs = std::vector<std::shared_ptr<const TensorData>>;
using Outputs = std::optional<std::vector<TensorData>>;

constexpr double kMostKernelWork = 2e7; ///< Floating-point operations a kernel may spend on one constant.

bool hasElements(const TensorType &type)
{
    return elementCount(type.shape) != 0;
}

/// Kinds of which each element costs next to nothing.
bool isPlain(OperatorKind kind)
{
    using enum OperatorKind;
    return isElementwise(kind) || kind == ReduceSum || kind == ReduceMean || kind == ReduceMax
        || kind == ReduceMin || kind == ReduceProd || kind == CumSum;
}

/// The integers that a kernel may come to, sums on the way included. (A long double holds each of 64 bits.)
struct Reach {
    long double least = 0;
    long double most = 0;
};

Reach extremesOf(const std::vector<std::int64_t> &values)
{
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {static_cast<long double>(*least), static_cast<long double>(*most)};
}

Reach reachOfReduction(OperatorKind kind, const std::vector<std::int64_t> &values)
{
    using enum OperatorKind;
    Reach reach;
    long double product = 1;
    for (const std::int64_t each : values) {
        const auto value = static_cast<long double>(each);
        product *= std::max(1.0L, std::abs(value));
        if (kind == ReduceL1)
            reach.most += std::abs(value);
        else if (kind == ReduceL2 || kind == ReduceSumSquare)
            reach.most += value * value;
        else
            (each < 0 ? reach.least : reach.most) += value;
    }
    return kind == ReduceProd ? Reach{-product, product} : reach;
}

Reach reachOf(OperatorKind kind, const Inputs &inputs)
{
    using enum OperatorKind;
    const std::vector<std::int64_t> first = integersOf(*inputs[0]);
    const Reach a = extremesOf(first);
    const Reach b = inputs.size() > 1 && inputs[1] ? extremesOf(integersOf(*inputs[1])) : Reach{};
    switch (kind) {
    case Add:
        return {a.least + b.least, a.most + b.most};
    case Sub:
        return {a.least - b.most, a.most - b.least};
    case Mul: {
        const auto [least, most] =
            std::minmax({a.least * b.least, a.least * b.most, a.most * b.least, a.most * b.most});
        return {least, most};
    }
    case Abs:
    case Neg:
        return {-a.most, -a.least};
    case Div:
        return b.least < 0 ? Reach{-a.most, -a.least} : Reach{};
    case CumSum:
    case ReduceL1:
    case ReduceL2:
    case ReduceMean:
    case ReduceProd:
    case ReduceSum:
    case ReduceSumSquare:
        return reachOfReduction(kind, first);
    default:
        return {};
    }
}

template<typename Integer> bool isWithin(const Reach &reach)
{
    return reach.least >= static_cast<long double>(std::numeric_limits<Integer>::min())
        && reach.most <= static_cast<long double>(std::numeric_limits<Integer>::max());
}

/// True unless a kernel may leave the range of the integers that it computes with, which it does not look
/// for.
bool staysInRange(OperatorKind kind, const Inputs &inputs)
{
    if (inputs.empty() || !inputs[0])
        return true;
    switch (inputs[0]->type.dataType) {
    case DataType::Int64:
        return isWithin<std::int64_t>(reachOf(kind, inputs));
    case DataType::Int32:
        return isWithin<std::int32_t>(reachOf(kind, inputs));
    default:
        return true;
    }
}

TensorData converted(const TensorData &from, DataType type)
{
    TensorData to = filledTensor({type, from.type.shape}, Number::ofInteger(0));
    const auto count = static_cast<std::size_t>(elementCount(from.type.shape));
    for (std::size_t i = 0; i < count; ++i)
        writeNumber(type, to.bytes.data(), i, readNumber(from.type.dataType, from.bytes.data(), i));
    return to;
}

Buffer bufferOf(TensorData &data)
{
    const Shape &shape = data.type.shape;
    return {data.bytes.data(), data.type.dataType, shape, wholeMask(shape), shape};
}

/// By the kernel that a run would use.
Outputs foldByKernel(OperatorKind kind, const Attributes &attributes, const Inputs &inputs,
    const std::vector<TensorType> &outputs, double mostWork)
{
    Operator op;
    op.name = "constant";
    op.kind = kind;
    op.attributes = attributes;
    std::vector<TensorType> types;
    std::vector<bool> present;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        op.inputs.push_back(inputs[i] ? TensorId{static_cast<std::int32_t>(i)} : TensorId{});
        types.push_back(inputs[i] ? inputs[i]->type : TensorType{});
        present.push_back(inputs[i] != nullptr);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
        op.outputs.push_back(TensorId{static_cast<std::int32_t>(inputs.size() + i)});
    if (!hasKernel(op) || workOf(op, types, outputs).flops > mostWork)
        return std::nullopt;
    op.annotation = annotate(kind, attributes, types, present, outputs).annotation;
    KernelCall call;
    call.op = &op;
    for (const Dimension &dimension : op.annotation.dimensions)
        call.ranges.push_back({0, dimension.size});
    std::vector<TensorData> copies; // kernels take memory they could write to, and constants are shared
    copies.reserve(inputs.size());
    for (const auto &input : inputs) {
        copies.push_back(input ? *input : TensorData{});
        call.inputs.push_back(bufferOf(copies.back()));
        if (!input)
            call.inputs.back().data = nullptr;
    }
    std::vector<TensorData> results;
    results.reserve(outputs.size());
    for (const TensorType &type : outputs) {
        results.push_back(filledTensor(type, Number::ofInteger(0)));
        call.outputs.push_back(bufferOf(results.back()));
    }
    if (!runKernel(call))
        return std::nullopt;
    return results;
}

/// By the same kernel, with all floating values as float64 in between: rounded once.
Outputs foldInDouble(
    OperatorKind kind, const Attributes &attributes, Inputs inputs, const std::vector<TensorType> &outputs)
{
    for (auto &input : inputs) {
        if (input && isFloating(input->type.dataType))
            input = std::make_shared<const TensorData>(converted(*input, DataType::Float64));
    }
    std::vector<TensorType> wide = outputs;
    for (TensorType &type : wide)
        type.dataType = isFloating(type.dataType) ? DataType::Float64 : type.dataType;
    auto results = foldByKernel(kind, attributes, inputs, wide, HUGE_VAL);
    for (std::size_t i = 0; results && i < results->size(); ++i) {
        if (wide[i] != outputs[i])
            (*results)[i] = converted((*results)[i], outputs[i].dataType);
    }
    return results;
}

} // namespace

std::optional<std::vector<TensorData>> foldOperator(OperatorKind kind, const Attributes &attributes,
    const std::vector<std::shared_ptr<const TensorData>> &inputs, const std::vector<TensorType> &outputs)
{
    using enum OperatorKind;
    const bool isMade = kind == Fill || kind == Range;
    const bool complete = std::all_of(outputs.begin(), outputs.end(), hasElements)
        && std::all_of(inputs.begin(), inputs.end(),
            [](const auto &input) { return input == nullptr || hasElements(input->type); });
    if (outputs.empty() || kind == Dropout || kind == Unknown || (inputs.empty() && !isMade) || !complete
        || !staysInRange(kind, inputs))
        return std::nullopt;
    return isPlain(kind) ? foldInDouble(kind, attributes, inputs, outputs)
                         : foldByKernel(kind, attributes, inputs, outputs, kMostKernelWork);
}

} // namespace planloom
