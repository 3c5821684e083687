// Operators of operator files: what the file says that they are in PyTorch.

#include "engine/graph/operator_files/operator_definition.h"
#include "engine/graph/operator_files/torch_expression.h"
#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/python_text.h"

#include <algorithm>
#include <functional>

namespace planloom {

namespace custom_texts {

std::string attributeText(const Attribute &attribute)
{
    if (const auto *number = std::get_if<std::int64_t>(&attribute))
        return std::to_string(*number);
    if (const auto *number = std::get_if<double>(&attribute))
        return pythonNumber(*number);
    if (const auto *text = std::get_if<std::string>(&attribute))
        return pythonText(*text);
    if (const auto *numbers = std::get_if<std::vector<std::int64_t>>(&attribute))
        return pythonTuple(*numbers);
    std::vector<std::string> items;
    if (const auto *numbers = std::get_if<std::vector<double>>(&attribute))
        std::transform(numbers->begin(), numbers->end(), std::back_inserter(items), pythonNumber);
    else
        for (const std::string &text : std::get<std::vector<std::string>>(attribute))
            items.push_back(pythonText(text));
    return "(" + joinedBy(items) + (items.size() == 1 ? ",)" : ")");
}

/// The definition's expression, of values by slot of its inputs.
Result<std::string> expressionOf(const OperatorSlots &slots, const OperatorDefinition &definition,
    const std::function<std::string(std::size_t)> &input)
{
    if (definition.torch.empty())
        return noText(slots,
            "no line 'torch \"...\"' of " + (definition.file.empty() ? "its operator file" : definition.file)
                + " says what " + toString(definition.name) + " is there");
    return torchExpression(definition.torch, [&](const std::string &name) {
        if (const std::int32_t slot = inputNamed(definition, name); slot >= 0)
            return operandText(input(static_cast<std::size_t>(slot)));
        if (const auto given = slots.attributes().all().find(name); given != slots.attributes().all().end())
            return attributeText(given->second);
        for (const DefinedAttribute &attribute : definition.attributes)
            if (attribute.name == name && attribute.fallback)
                return attributeText(*attribute.fallback);
        return std::string{};
    });
}

TorchText resultsOf(std::string expression, std::size_t count)
{
    TorchText made;
    if (count == 1)
        made.each = {std::move(expression)};
    else
        made.all = std::move(expression);
    return made;
}

Result<TorchText> gradientByOperator(const OperatorSlots &slots, const OperatorDefinition &definition)
{
    const DefinedDerivative &derivative = definition.derivative;
    TRY(std::string expression, expressionOf(slots, *derivative.definition, [&](std::size_t slot) {
        const DerivativeValue &value = derivative.reads[slot];
        const std::int32_t in = inputNamed(definition, value.name);
        const std::int32_t out = resultNamed(definition, value.name);
        return value.gradient ? slots.dy(static_cast<std::size_t>(out))
            : in >= 0         ? slots.x(static_cast<std::size_t>(in))
                              : slots.y(static_cast<std::size_t>(out));
    }));
    TorchText made;
    made.each.resize(slots.forwardInputs());
    for (std::size_t k = 0; k < derivative.makes.size(); ++k) {
        const auto in = static_cast<std::size_t>(inputNamed(definition, derivative.makes[k].name));
        if (in < made.each.size() && slots.wants(in))
            made.each[in] =
                derivative.makes.size() == 1 ? expression : "(" + expression + ")[" + std::to_string(k) + "]";
    }
    return made;
}

Result<TorchText> custom(const OperatorSlots &slots)
{
    const OperatorDefinition &definition = *slots.attributes().definition();
    if (!slots.isBackward()) {
        TRY(std::string expression,
            expressionOf(slots, definition, [&](std::size_t slot) { return slots.x(slot); }));
        return resultsOf(std::move(expression), slots.forwardOutputs());
    }
    if (definition.derivative.way == DefinedDerivative::Way::Operator)
        return gradientByOperator(slots, definition);
    std::vector<std::size_t> inputs;
    for (std::size_t i = 0; i < slots.forwardInputs(); ++i)
        inputs.push_back(i);
    TRY(const std::string function, expressionOf(slots, definition, [](std::size_t slot) {
        return std::string(1, static_cast<char>('a' + slot));
    }));
    return derivativeText(slots, slots.forwardOutputs() > 1 ? "(" + function + ")" : function, inputs);
}

} // namespace custom_texts

void addCustomTexts(OperatorWriters &writers)
{
    writers[OperatorKind::Custom] = custom_texts::custom;
}

} // namespace planloom
