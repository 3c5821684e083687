#include "engine/frontend/torch/aten/aten_formula.h"

#include "engine/frontend/writer/tensor_values.h"

#include <cctype>
#include <numeric>
#include <string>

namespace planloom {

namespace {

std::string lowered(const char *name)
{
    std::string text(name);
    for (char &letter : text)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return text;
}

/// The type of numbers in a formula: that of the last tensor, which is no condition.
DataType typeBeside(AtenContext &context, const std::vector<AtenTerm> &inputs)
{
    DataType type = DataType::Float32;
    for (const AtenTerm &input : inputs) {
        if (input.tensor() != nullptr && input.tensor()->valid()
            && (context.typeOf(*input.tensor()).dataType != DataType::Bool || inputs.size() < 3))
            type = context.typeOf(*input.tensor()).dataType;
    }
    return type;
}

} // namespace

AtenFormula::Made AtenFormula::tensorOf(const AtenTerm &term)
{
    if (term.error() != nullptr)
        return *term.error();
    if (term.tensor() != nullptr)
        return *term.tensor();
    return Error{ErrorCode::Internal, "a number stands where a formula reads a tensor", {}, {}};
}

AtenFormula::Made AtenFormula::make(OperatorKind kind, std::vector<AtenTerm> inputs, Attributes attributes,
    std::optional<TensorType> declared)
{
    for (const AtenTerm &input : inputs) {
        if (input.error() != nullptr)
            return *input.error();
    }
    const DataType type = typeBeside(m_context, inputs);
    std::vector<TensorId> tensors;
    for (const AtenTerm &input : inputs)
        tensors.push_back(
            input.tensor() != nullptr ? *input.tensor() : m_context.scalar(type, *input.number()));
    return m_context.make(
        kind, std::move(tensors), std::move(attributes), std::move(declared), lowered(nameOf(kind)));
}

AtenFormula::Made AtenFormula::clip(AtenTerm x, std::optional<double> least, std::optional<double> most)
{
    Attributes attributes;
    if (least)
        attributes.set("min", *least);
    if (most)
        attributes.set("max", *most);
    return make(OperatorKind::Clip, {std::move(x)}, std::move(attributes));
}

AtenFormula::Made AtenFormula::detached(AtenTerm x)
{
    return make(OperatorKind::Identity, {std::move(x)}, attributesFrom({{"detached", std::int64_t{1}}}));
}

AtenFormula::Made AtenFormula::reduce(OperatorKind kind, AtenTerm term, const Axes &axes, bool keeps)
{
    TRY(const TensorId x, tensorOf(term));
    if (axes.empty())
        return x;
    Attributes attributes = attributesFrom({{"axes", axes}, {"keepdims", std::int64_t{keeps ? 1 : 0}}});
    if (kind == OperatorKind::ReduceMean) {
        std::int64_t count = 1;
        for (const std::int64_t axis : axes)
            count *= shapeOf(x)[axisIndex(axis)];
        attributes.set("count", count);
    }
    return make(kind, {x}, std::move(attributes));
}

AtenFormula::Made AtenFormula::placeOf(OperatorKind kind, AtenTerm x, std::int64_t axis)
{
    return make(kind, {std::move(x)},
        attributesFrom(
            {{"axis", axis}, {"keepdims", std::int64_t{1}}, {"select_last_index", std::int64_t{0}}}));
}

AtenFormula::Made AtenFormula::runningSum(AtenTerm x, std::int64_t axis)
{
    return make(OperatorKind::CumSum, {std::move(x)},
        attributesFrom({{"axis", axis}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}}));
}

AtenFormula::Made AtenFormula::cast(AtenTerm term, DataType type)
{
    TRY(const TensorId x, tensorOf(term));
    return m_context.cast(x, type);
}

AtenFormula::Made AtenFormula::reshape(AtenTerm term, Shape shape)
{
    TRY(const TensorId x, tensorOf(term));
    return m_context.reshape(x, std::move(shape));
}

AtenFormula::Made AtenFormula::unsqueeze(AtenTerm term, std::int64_t axis)
{
    TRY(const TensorId x, tensorOf(term));
    Shape shape = shapeOf(x);
    shape.insert(shape.begin() + axis, 1);
    return m_context.reshape(x, std::move(shape));
}

AtenFormula::Made AtenFormula::expand(AtenTerm term, const Shape &shape)
{
    TRY(const TensorId x, tensorOf(term));
    return shapeOf(x) == shape ? Made(x) : m_context.expand(x, shape);
}

AtenFormula::Made AtenFormula::permute(AtenTerm term, Axes order)
{
    TRY(const TensorId x, tensorOf(term));
    return m_context.permute(x, std::move(order), "transpose");
}

AtenFormula::Made AtenFormula::slice(AtenTerm term, std::int64_t axis, std::int64_t begin, std::int64_t end)
{
    TRY(const TensorId x, tensorOf(term));
    return m_context.slice(x, axis, begin, end);
}

AtenFormula::Made AtenFormula::pad(
    AtenTerm term, std::int64_t axis, std::int64_t before, std::int64_t behind, double value)
{
    TRY(const TensorId x, tensorOf(term));
    Axes pads(2 * shapeOf(x).size(), 0);
    pads[axisIndex(axis)] = before;
    pads[shapeOf(x).size() + axisIndex(axis)] = behind;
    return make(OperatorKind::Pad, {x},
        attributesFrom({{"pads", pads}, {"mode", std::string("constant")}, {"value", value}}));
}

AtenFormula::Made AtenFormula::concat(const std::vector<AtenTerm> &parts, std::int64_t axis)
{
    return make(OperatorKind::Concat, parts, attributesFrom({{"axis", axis}}));
}

AtenFormula::Made AtenFormula::gather(AtenTerm x, AtenTerm indices, std::int64_t axis)
{
    return make(OperatorKind::Gather, {std::move(x), std::move(indices)}, attributesFrom({{"axis", axis}}));
}

AtenFormula::Made AtenFormula::pick(AtenTerm x, AtenTerm indices, std::int64_t axis)
{
    return make(
        OperatorKind::GatherElements, {std::move(x), std::move(indices)}, attributesFrom({{"axis", axis}}));
}

AtenFormula::Made AtenFormula::scatterRows(
    AtenTerm x, AtenTerm indices, AtenTerm updates, const char *reduction)
{
    TRY(const TensorId list, tensorOf(indices));
    return make(OperatorKind::ScatterND,
        {std::move(x), reshape(list, {elementCount(shapeOf(list)), 1}), std::move(updates)},
        attributesFrom({{"reduction", std::string(reduction)}}));
}

AtenFormula::Made AtenFormula::integers(Axes values, Shape shape)
{
    return m_context.graph().addConstant(integerTensor(std::move(values), std::move(shape)));
}

AtenFormula::Made AtenFormula::reals(DataType type, const std::vector<double> &values, Shape shape)
{
    auto data = std::make_shared<TensorData>(filledTensor({type, std::move(shape)}, Number::ofReal(0)));
    for (std::size_t i = 0; i < values.size(); ++i)
        writeNumber(type, data->bytes.data(), i, Number::ofReal(values[i]));
    return m_context.graph().addConstant(std::move(data));
}

AtenFormula::Made AtenFormula::filled(const TensorType &type, double value)
{
    return m_context.filled(type, AtenValue(value), "filled");
}

Result<void> AtenFormula::finish(AtenTerm term, std::size_t slot)
{
    TRY(const TensorId x, tensorOf(term));
    return m_context.bind(slot, x);
}

AtenFormula::Axes AtenFormula::allOf(TensorId id)
{
    Axes axes(shapeOf(id).size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    return axes;
}

Result<void> finishAtenLoss(AtenContext &context, AtenTerm term)
{
    constexpr std::int64_t kNoReduction = 0; // at::Reduction
    constexpr std::int64_t kMean = 1;
    AtenFormula f(context);
    TRY(const TensorId each, AtenFormula::tensorOf(term));
    TRY(const std::int64_t reduction, context.integer("reduction", kMean));
    if (reduction == kNoReduction)
        return f.finish(each);
    return f.finish(f.reduce(
        reduction == kMean ? OperatorKind::ReduceMean : OperatorKind::ReduceSum, each, f.allOf(each)));
}

} // namespace planloom
