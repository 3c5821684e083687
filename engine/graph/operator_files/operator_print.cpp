#include "engine/graph/operator_files/operator_file.h"

#include <algorithm>

namespace planloom {

namespace {

std::string quoted(const std::string &text)
{
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            result += '\\';
        result += c;
    }
    return result + '"';
}

template<typename Items, typename Text> std::string joined(const Items &items, const Text &textOf)
{
    std::string text;
    for (const auto &item : items)
        text += (text.empty() ? "" : ", ") + textOf(item);
    return text;
}

std::string extents(const std::vector<SizeExpression> &sizes)
{
    return "[" + joined(sizes, [](const SizeExpression &size) { return toString(size); }) + "]";
}

/// A number that reads back as one that is no integer.
std::string realText(double number)
{
    std::string text = textOfNumber(number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string textOf(const Attribute &value)
{
    if (const auto *integer = std::get_if<std::int64_t>(&value))
        return std::to_string(*integer);
    if (const auto *real = std::get_if<double>(&value))
        return realText(*real);
    if (const auto *text = std::get_if<std::string>(&value))
        return quoted(*text);
    if (const auto *integers = std::get_if<std::vector<std::int64_t>>(&value))
        return "[" + joined(*integers, [](std::int64_t i) { return std::to_string(i); }) + "]";
    if (const auto *reals = std::get_if<std::vector<double>>(&value))
        return "[" + joined(*reals, realText) + "]";
    return {};
}

std::string textOf(const DefinedTensor &tensor)
{
    std::string text = tensor.name;
    if (tensor.type)
        text += std::string(": ") + nameOf(*tensor.type);
    else if (!tensor.like.empty())
        text += ": like " + tensor.like;
    return tensor.optional ? "[" + text + "]" : text;
}

std::string tensorsText(const std::vector<DefinedTensor> &tensors)
{
    return joined(tensors, [](const DefinedTensor &tensor) { return textOf(tensor); });
}

std::string valuesText(const std::vector<DerivativeValue> &values)
{
    return joined(
        values, [](const DerivativeValue &value) { return (value.gradient ? "d." : "") + value.name; });
}

std::string textOf(const BodyStep &step)
{
    std::string text =
        joined(step.outputs, [](const std::string &name) { return name; }) + " = " + nameOf(step.kind) + "(";
    std::vector<std::string> arguments;
    for (const auto &input : step.inputs) {
        const auto *name = std::get_if<std::string>(&input);
        arguments.push_back(name ? *name : textOfNumber(std::get<double>(input)));
    }
    for (const auto &[name, value] : step.attributes) {
        if (const auto *number = std::get_if<SizeExpression>(&value))
            arguments.push_back(name + "=" + toString(*number));
        else if (const auto *numbers = std::get_if<std::vector<SizeExpression>>(&value))
            arguments.push_back(name + "=" + extents(*numbers));
        else
            arguments.push_back(name + "=" + quoted(std::get<std::string>(value)));
    }
    text += joined(arguments, [](const std::string &argument) { return argument; }) + ")";
    if (step.type || step.shape)
        text += " :";
    if (step.type)
        text += std::string(" ") + nameOf(*step.type);
    if (step.shape)
        text += " " + extents(*step.shape);
    return text;
}

void add(std::string &text, const char *statement, const std::string &value)
{
    text += std::string(statement) + " " + value + "\n";
}

void addDerivative(std::string &text, const OperatorDefinition &definition)
{
    const DefinedDerivative &derivative = definition.derivative;
    switch (derivative.way) {
    case DefinedDerivative::Way::None:
        return add(text, "derivative", "none");
    case DefinedDerivative::Way::Body:
        return add(text, "derivative", "body");
    case DefinedDerivative::Way::Operator:
        return add(text, "derivative",
            toString(derivative.operatorName) + "(" + valuesText(derivative.reads) + ") -> "
                + valuesText(derivative.makes));
    }
}

std::string textOf(const OperatorDefinition &definition)
{
    std::string text;
    add(text, "operator", toString(definition.name));
    for (const DefinedName &name : definition.alsoNamed)
        add(text, "also", toString(name));
    add(text, "inputs", tensorsText(definition.inputs));
    add(text, "outputs", tensorsText(definition.outputs));
    if (!definition.saved.empty())
        add(text, "saves", tensorsText(definition.saved));
    for (const DefinedAttribute &attribute : definition.attributes)
        add(text, "attribute",
            attribute.name + (attribute.fallback ? " = " + textOf(*attribute.fallback) : std::string()));
    if (!definition.annotation.empty())
        add(text, "annotation", definition.annotation);
    if (!definition.linear.empty())
        add(text, "linear", joined(definition.linear, [](const std::string &name) { return name; }));
    for (const NamedExpression &size : definition.sizes)
        add(text, "where", size.name + " = " + toString(size.value));
    for (const DefinedShape &shape : definition.shapes)
        add(text, "shape", shape.name + " = " + extents(shape.extents));
    if (definition.flops)
        add(text, "flops", toString(*definition.flops));
    if (definition.backwardFlops)
        add(text, "backward_flops", toString(*definition.backwardFlops));
    if (definition.matrixUnits)
        add(text, "units", "matrix");
    if (definition.workspace)
        add(text, "workspace", toString(*definition.workspace));
    if (definition.library)
        add(text, "library", quoted(definition.library->path) + " " + definition.library->function);
    if (!definition.torch.empty())
        add(text, "torch", quoted(definition.torch));
    addDerivative(text, definition);
    if (!definition.body.empty()) {
        text += "body\n";
        for (const BodyStep &step : definition.body)
            text += "    " + textOf(step) + "\n";
        text += "end\n";
    }
    return text;
}

} // namespace

std::string printOperatorFile(const std::vector<std::shared_ptr<const OperatorDefinition>> &definitions)
{
    std::vector<const OperatorDefinition *> all;
    const auto addOnce = [&all](const OperatorDefinition *definition) {
        const auto isSame = [&](const OperatorDefinition *other) { return other->name == definition->name; };
        if (definition != nullptr && std::none_of(all.begin(), all.end(), isSame))
            all.push_back(definition);
    };
    for (const auto &definition : definitions)
        addOnce(definition.get());
    for (const auto &definition : definitions)
        addOnce(definition->derivative.definition.get());
    std::string text = "planloom-operators 1\n";
    for (const OperatorDefinition *definition : all)
        text += "\n" + textOf(*definition);
    return text;
}

} // namespace planloom
