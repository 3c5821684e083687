#include "engine/graph/operator_files/custom_operator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

std::vector<Shape> shapesOf(const std::vector<TensorType> &types)
{
    std::vector<Shape> shapes;
    for (const TensorType &type : types)
        shapes.push_back(type.shape);
    return shapes;
}

std::vector<bool> inverted(const std::vector<bool> &present, std::size_t count)
{
    std::vector<bool> absent(count, false);
    for (std::size_t i = 0; i < count && i < present.size(); ++i)
        absent[i] = !present[i];
    return absent;
}

/// Errors say which definition does not fit.
Error inDefinition(const OperatorDefinition &definition, Error error)
{
    error.message = toString(definition.name) + " (" + definition.file + ", line "
        + std::to_string(definition.line) + "): " + error.message;
    if (error.advice.empty())
        error.advice = "change the operator file, or the model";
    error.where = definition.file + ":" + std::to_string(definition.line);
    return error;
}

std::optional<double> numberOfAttribute(const Attributes &attributes, const std::string &name)
{
    const auto found = attributes.all().find(name);
    if (found == attributes.all().end())
        return std::nullopt;
    if (const auto *integer = std::get_if<std::int64_t>(&found->second))
        return static_cast<double>(*integer);
    if (const auto *real = std::get_if<double>(&found->second))
        return *real;
    return std::nullopt;
}

std::optional<double> sizeNamed(const DefinedSizes &sizes, const std::string &name)
{
    const auto found = sizes.find(name);
    return found == sizes.end() ? std::nullopt : std::optional(static_cast<double>(found->second));
}

/// Names of a definition's expressions: dimensions, then attributes.
NumberLookup numbersOf(const Attributes &attributes, const DefinedSizes &part, const DefinedSizes &whole)
{
    return [&](const std::string &name, bool isWhole) -> std::optional<double> {
        if (const auto size = sizeNamed(isWhole ? whole : part, name))
            return size;
        return isWhole ? std::nullopt : numberOfAttribute(attributes, name);
    };
}

Result<AnnotatedShapes> shapesByAnnotation(const OperatorDefinition &definition, const Attributes &attributes,
    const std::vector<Shape> &inputs, const std::vector<bool> &present)
{
    const auto complete = [&](DefinedSizes &sizes) { return addDefinedSizes(definition, attributes, sizes); };
    if (definition.annotation.empty()) {
        AnnotatedShapes shapes;
        TRY_VOID(complete(shapes.sizes));
        shapes.outputs.resize(definition.resultCount());
        return shapes;
    }
    return annotatedShapes(
        definition.annotation, inputs, inverted(present, inputs.size()), definition.resultCount(), complete);
}

Result<void> checkInputs(const OperatorDefinition &definition, const std::vector<TensorType> &inputs,
    const std::vector<bool> &present)
{
    const auto wrong = [](std::string message) {
        return Error{ErrorCode::InvalidInput, std::move(message), {}, {}};
    };
    if (inputs.size() != definition.inputs.size())
        return wrong("it has " + std::to_string(definition.inputs.size()) + " inputs, but is given "
            + std::to_string(inputs.size()));
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        const DefinedTensor &wanted = definition.inputs[slot];
        const bool there = slot >= present.size() || present[slot];
        if (!there && !wanted.optional)
            return wrong("input '" + wanted.name + "' is missing");
        if (there && wanted.type && *wanted.type != inputs[slot].dataType)
            return wrong("input '" + wanted.name + "' is " + nameOf(inputs[slot].dataType) + ", where "
                + nameOf(*wanted.type) + " was expected");
    }
    return {};
}

DataType typeOfResult(
    const OperatorDefinition &definition, std::size_t slot, const std::vector<TensorType> &inputs)
{
    const DefinedTensor &result = definition.result(slot);
    if (result.type)
        return *result.type;
    const std::int32_t like = result.like.empty() ? 0 : inputNamed(definition, result.like);
    return inputs[static_cast<std::size_t>(std::max(like, 0))].dataType;
}

/// Local sizes of an operator's identifiers: in every term, what its extent leaves for the outermost factor,
/// the only one that is ever cut.
DefinedSizes localSizes(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
{
    const Annotation &annotation = op.annotation;
    DefinedSizes sizes;
    for (const Dimension &dimension : annotation.dimensions)
        sizes[dimension.name] = dimension.size;
    const auto take = [&](const std::vector<TensorTerms> &tensors, const std::vector<TensorId> &ids,
                          const std::vector<TensorType> &types) {
        for (std::size_t slot = 0; slot < tensors.size() && slot < ids.size() && slot < types.size();
             ++slot) {
            const auto &terms = tensors[slot].terms;
            if (!ids[slot] || terms.size() != types[slot].shape.size())
                continue;
            for (std::size_t d = 0; d < terms.size(); ++d) {
                const auto cut = splittableFactor(annotation, terms[d]);
                if (!cut)
                    continue;
                std::int64_t inner = 1;
                for (const std::int32_t factor : terms[d].factors)
                    if (factor != *cut)
                        inner *= annotation.dimensions[static_cast<std::size_t>(factor)].size;
                sizes[annotation.dimensions[static_cast<std::size_t>(*cut)].name] =
                    types[slot].shape[d] / std::max<std::int64_t>(inner, 1);
            }
        }
    };
    take(annotation.inputs, op.inputs, inputs);
    take(annotation.outputs, op.outputs, outputs);
    return sizes;
}

double elementsOf(const std::vector<TensorId> &ids, const std::vector<TensorType> &types)
{
    double count = 0;
    for (std::size_t slot = 0; slot < ids.size() && slot < types.size(); ++slot)
        if (ids[slot])
            count += static_cast<double>(elementCount(types[slot].shape));
    return count;
}

/// Operations of all steps of a body.
double flopsOfBody(const Graph &body)
{
    double flops = 0;
    for (const Operator &op : body.operators)
        flops += workOf(body, op).flops;
    return flops;
}

/// By input slot: whether the body's outputs depend on it continuously.
std::vector<bool> differentiableInputs(const Graph &body)
{
    std::vector<bool> reached(body.tensors.size(), false); // depends on, seen from the outputs
    for (const TensorId id : body.outputs)
        reached[at(id)] = isFloating(body.at(id).type.dataType);
    for (std::size_t i = body.operators.size(); i-- > 0;) {
        const Operator &op = body.operators[i];
        if (std::none_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) { return reached[at(id)]; }))
            continue;
        const GradientRule rule = gradientRule(body, op);
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
            if (op.inputs[slot] && rule.gradientOf[slot])
                reached[at(op.inputs[slot])] = true;
    }
    std::vector<bool> inputs;
    for (const TensorId id : body.inputs)
        inputs.push_back(id && reached[at(id)]);
    return inputs;
}

struct SlotTypes {
    std::vector<TensorType> types{};
    std::vector<bool> present{};
};

SlotTypes typesOfSlots(const Graph &graph, const std::vector<TensorId> &ids)
{
    return {typesOf(graph, ids), presentAmong(ids)};
}

} // namespace

std::string typeNameOf(const Operator &op)
{
    if (op.kind == OperatorKind::Custom && op.attributes.definition())
        return toString(op.attributes.definition()->name);
    return op.kind == OperatorKind::Unknown ? op.attributes.text("onnx_type", nameOf(op.kind))
                                            : nameOf(op.kind);
}

OperatorCategory categoryOf(const Operator &op)
{
    const bool matrix = op.kind == OperatorKind::Custom && op.attributes.definition()
        && op.attributes.definition()->matrixUnits;
    return matrix ? OperatorCategory::Product : categoryOf(op.kind);
}

Result<void> addDefinedSizes(
    const OperatorDefinition &definition, const Attributes &attributes, DefinedSizes &sizes)
{
    for (const NamedExpression &size : definition.sizes) {
        TRY(const std::int64_t value, evaluateSize(size.value, numbersOf(attributes, sizes, sizes)));
        sizes[size.name] = value;
    }
    return {};
}

Result<DefinedSizes> definedSizes(const OperatorDefinition &definition, const Attributes &attributes,
    const std::vector<Shape> &inputs, const std::vector<bool> &present)
{
    auto shapes = shapesByAnnotation(definition, attributes, inputs, present);
    if (!shapes)
        return inDefinition(definition, std::move(shapes).error());
    return std::move(shapes->sizes);
}

Result<Attributes> completedAttributes(
    std::shared_ptr<const OperatorDefinition> definition, const Attributes &given)
{
    Attributes attributes = given;
    for (const DefinedAttribute &wanted : definition->attributes) {
        const auto found = given.all().find(wanted.name);
        if (found == given.all().end()) {
            if (!wanted.fallback)
                return inDefinition(*definition,
                    {ErrorCode::InvalidInput, "the attribute '" + wanted.name + "' is missing",
                        "give it a value in the operator file, as in: attribute " + wanted.name + " = 1",
                        {}});
            attributes.set(wanted.name, *wanted.fallback);
            continue;
        }
        if (!wanted.fallback || wanted.fallback->index() == found->second.index())
            continue;
        const auto *integer = std::get_if<std::int64_t>(&found->second);
        if (integer != nullptr && std::holds_alternative<double>(*wanted.fallback)) {
            attributes.set(wanted.name, static_cast<double>(*integer));
            continue;
        }
        return inDefinition(*definition,
            {ErrorCode::InvalidInput,
                "the attribute '" + wanted.name
                    + "' of the model is of another type than in the operator file",
                {}, {}});
    }
    attributes.setDefinition(std::move(definition));
    return attributes;
}

Result<std::vector<TensorType>> customTypes(
    const Attributes &attributes, const std::vector<TensorType> &inputs, const std::vector<bool> &present)
{
    if (!attributes.definition())
        return Error{
            ErrorCode::InvalidInput, "an operator of a file comes without what the file says of it", {}, {}};
    const OperatorDefinition &definition = *attributes.definition();
    if (auto fits = checkInputs(definition, inputs, present); !fits)
        return inDefinition(definition, std::move(fits).error());
    auto annotated = shapesByAnnotation(definition, attributes, shapesOf(inputs), present);
    if (!annotated)
        return inDefinition(definition, std::move(annotated).error());
    std::optional<Graph> body;
    if (!definition.body.empty()) {
        TRY(body, bodyOf(definition, attributes, inputs, present));
    }
    std::vector<TensorType> types;
    for (std::size_t slot = 0; slot < definition.resultCount(); ++slot) {
        const std::string &name = definition.result(slot).name;
        TensorType type{typeOfResult(definition, slot, inputs), {}};
        const auto written = std::find_if(definition.shapes.begin(), definition.shapes.end(),
            [&](const DefinedShape &shape) { return shape.name == name; });
        if (written != definition.shapes.end()) {
            for (const SizeExpression &extent : written->extents) {
                auto size = evaluateSize(extent, numbersOf(attributes, annotated->sizes, annotated->sizes));
                if (!size)
                    return inDefinition(definition, std::move(size).error());
                type.shape.push_back(*size);
            }
        } else if (annotated->outputs[slot]) {
            type.shape = *annotated->outputs[slot];
        } else if (body) {
            type.shape = body->at(body->outputs[slot]).type.shape;
        } else {
            return inDefinition(definition,
                {ErrorCode::InvalidInput, "nothing says the shape of '" + name + "'",
                    "add a line: shape " + name + " = [...]", {}});
        }
        if (body && body->at(body->outputs[slot]).type != type) {
            const TensorType &made = body->at(body->outputs[slot]).type;
            return inDefinition(definition,
                {ErrorCode::InvalidInput,
                    "its body makes '" + name + "' as " + nameOf(made.dataType) + toString(made.shape)
                        + ", where its other lines say " + nameOf(type.dataType) + toString(type.shape),
                    {}, {}});
        }
        types.push_back(std::move(type));
    }
    return types;
}

AnnotationOutcome customAnnotation(const Attributes &attributes, const std::vector<TensorType> &inputs,
    const std::vector<bool> &present, const std::vector<TensorType> &outputs)
{
    const std::vector<Shape> in = shapesOf(inputs);
    const std::vector<Shape> out = shapesOf(outputs);
    AnnotationOutcome outcome;
    if (!attributes.definition()) {
        outcome.problem = "what its file says of it is missing";
        outcome.annotation = wholeAnnotation(in, out);
        return outcome;
    }
    const OperatorDefinition &definition = *attributes.definition();
    outcome.problem = "its operator file has no line 'annotation'";
    if (!definition.annotation.empty()) {
        auto parsed = parseAnnotation(definition.annotation, in, out, inverted(present, in.size()));
        if (parsed) {
            outcome.annotation = *std::move(parsed);
            outcome.problem.clear();
            for (const std::string &name : definition.linear)
                outcome.annotation.linearInputs.push_back(inputNamed(definition, name));
            return outcome;
        }
        outcome.problem = parsed.error().message;
    }
    outcome.annotation = wholeAnnotation(in, out);
    for (std::size_t slot = 0; slot < in.size(); ++slot)
        if (slot < present.size() && !present[slot])
            outcome.annotation.inputs[slot] = TensorTerms{{}, true};
    return outcome;
}

GradientRule customGradientRule(const Graph &graph, const Operator &forward, const std::vector<bool> &wanted)
{
    GradientRule rule;
    rule.gradientOf.resize(forward.inputs.size(), false);
    rule.needsInput.resize(forward.inputs.size(), false);
    rule.needsOutput.resize(forward.outputs.size(), false);
    if (!forward.attributes.definition())
        return rule;
    const OperatorDefinition &definition = *forward.attributes.definition();
    const DefinedDerivative &derivative = definition.derivative;
    if (derivative.way == DefinedDerivative::Way::Operator) {
        for (const DerivativeValue &made : derivative.makes) {
            const auto slot = static_cast<std::size_t>(inputNamed(definition, made.name));
            if (slot < forward.inputs.size() && forward.inputs[slot]
                && isFloating(graph.at(forward.inputs[slot]).type.dataType))
                rule.gradientOf[slot] = true;
        }
    } else if (derivative.way == DefinedDerivative::Way::Body) {
        const SlotTypes inputs = typesOfSlots(graph, forward.inputs);
        const auto body = bodyOf(definition, forward.attributes, inputs.types, inputs.present);
        if (!body)
            return rule;
        const std::vector<bool> reached = differentiableInputs(*body);
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot)
            rule.gradientOf[slot] = reached[slot];
    }
    bool any = false;
    for (std::size_t slot = 0; slot < rule.gradientOf.size(); ++slot) {
        rule.differentiable = rule.differentiable || rule.gradientOf[slot];
        any = any || (rule.gradientOf[slot] && (slot >= wanted.size() || wanted[slot]));
    }
    if (!any)
        return rule;
    // Whichever gradient is asked for, all that the gradient operator (or the body, run again) reads is read.
    if (derivative.way == DefinedDerivative::Way::Body) {
        for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot)
            rule.needsInput[slot] = forward.inputs[slot].valid();
        return rule;
    }
    for (const DerivativeValue &read : derivative.reads) {
        if (read.gradient)
            continue;
        const std::int32_t input = inputNamed(definition, read.name);
        const std::int32_t result = resultNamed(definition, read.name);
        if (input >= 0)
            rule.needsInput[at(input)] = forward.inputs[at(input)].valid();
        else if (at(result) < forward.outputs.size())
            rule.needsOutput[at(result)] = forward.outputs[at(result)].valid();
    }
    return rule;
}

double customFlops(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
{
    if (!op.attributes.definition())
        return 0;
    const OperatorDefinition &definition = *op.attributes.definition();
    const bool backward = op.direction == Direction::Backward;
    DefinedSizes whole;
    for (const Dimension &dimension : op.annotation.dimensions)
        whole[dimension.name] = dimension.size;
    DefinedSizes part = localSizes(op, inputs, outputs);
    static_cast<void>(addDefinedSizes(definition, op.attributes, part));
    const auto &written = backward && definition.backwardFlops ? definition.backwardFlops : definition.flops;
    if (written) {
        const auto flops = evaluate(*written, numbersOf(op.attributes, part, whole));
        const double factor = backward && !definition.backwardFlops ? 2 : 1;
        return flops ? std::max(0.0, *flops * factor) : 0;
    }
    if (!definition.body.empty() && !backward) {
        std::vector<bool> present;
        for (const TensorId id : op.inputs)
            present.push_back(id.valid());
        if (const auto body = bodyOf(definition, op.attributes, inputs, present, &whole))
            return flopsOfBody(*body);
    }
    if (!definition.body.empty() && definition.derivative.way == DefinedDerivative::Way::Body) {
        // Slots of a backward operator: gradients of outputs, inputs, outputs. The body runs again, then
        // back.
        const std::size_t first = (op.inputs.size() - op.outputs.size()) / 2;
        std::vector<TensorType> types;
        std::vector<bool> present;
        for (std::size_t slot = 0; slot < op.outputs.size() && first + slot < inputs.size(); ++slot) {
            types.push_back(inputs[first + slot]);
            present.push_back(op.inputs[first + slot].valid());
        }
        if (const auto body = bodyOf(definition, op.attributes, types, present, &whole))
            return 3 * flopsOfBody(*body);
    }
    return backward ? elementsOf(op.inputs, inputs) : elementsOf(op.outputs, outputs);
}

std::int64_t workspaceOf(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
{
    const OperatorDefinition &definition = *op.attributes.definition();
    if (op.direction == Direction::Forward) {
        DefinedSizes whole;
        for (const Dimension &dimension : op.annotation.dimensions)
            whole[dimension.name] = dimension.size;
        return workspaceBytes(definition, op.attributes, localSizes(op, inputs, outputs), whole).value_or(0);
    }
    const auto &gradient = definition.derivative.definition;
    if (!gradient || !gradient->workspace)
        return 0;
    // Slots of a backward operator: gradients of outputs, inputs, outputs.
    std::vector<Shape> shapes;
    std::vector<bool> present;
    for (const DerivativeValue &value : definition.derivative.reads) {
        const std::int32_t input = inputNamed(definition, value.name);
        const auto outputSlot = static_cast<std::size_t>(std::max(resultNamed(definition, value.name), 0));
        const std::size_t slot = value.gradient ? outputSlot
            : input >= 0                        ? definition.resultCount() + static_cast<std::size_t>(input)
                         : definition.resultCount() + definition.inputs.size() + outputSlot;
        present.push_back(slot < op.inputs.size() && op.inputs[slot].valid());
        shapes.push_back(slot < inputs.size() ? inputs[slot].shape : Shape{});
    }
    const auto attributes = completedAttributes(gradient, op.attributes);
    if (!attributes)
        return 0;
    const auto sizes = definedSizes(*gradient, *attributes, shapes, present);
    return sizes ? workspaceBytes(*gradient, *attributes, *sizes, *sizes).value_or(0) : 0;
}

Result<std::int64_t> workspaceBytes(const OperatorDefinition &definition, const Attributes &attributes,
    const DefinedSizes &part, const DefinedSizes &whole)
{
    if (!definition.workspace)
        return std::int64_t{0};
    auto bytes = evaluate(*definition.workspace, numbersOf(attributes, part, whole));
    if (bytes && !(*bytes >= 0 && *bytes <= 1e15))
        bytes = Error{
            ErrorCode::InvalidInput, "the workspace comes out as " + textOfNumber(*bytes) + " bytes", {}, {}};
    if (!bytes)
        return inDefinition(definition, std::move(bytes).error());
    return static_cast<std::int64_t>(std::ceil(*bytes));
}

} // namespace planloom
