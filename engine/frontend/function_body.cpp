#include "engine/frontend/function_body.h"

#include "engine/base/files.h"
#include "engine/frontend/dead_code.h"
#include "engine/frontend/fitted_expression.h"
#include "engine/frontend/fuse.h"
#include "engine/frontend/import_onnx.h"
#include "engine/frontend/onnx_model.h"
#include "engine/frontend/onnx_reader.h"
#include "engine/frontend/onnx_values.h"
#include "engine/graph/annotation.h"
#include "engine/graph/custom_operator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostFunctionFileBytes = std::size_t{64} << 20;
constexpr std::size_t kSamples = 7; ///< Three for the unknowns of an expression, the others to try it.
/// What sizes are multiples of, until the function takes them: heads, groups and the like divide them.
constexpr std::array<std::int64_t, 9> kMultiples{1, 2, 4, 8, 16, 64, 12, 60, 240};
constexpr double kExact = 1e-12;
constexpr double kRounded = 1e-6; ///< Of numbers that were computed as float32.
const char *const kWriteOut = "write the body out in the operator file, down to 'end'";

Error wrongBody(std::string message, std::string advice = kWriteOut)
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), {}};
}

/// One choice of sizes and attributes, and what the function is under it.
struct BodySample {
    NumberSample numbers{}; ///< Of dimensions and attributes.
    Attributes attributes{};
    std::vector<TensorType> inputs{};
    Graph graph{};
};

/// Prime numbers from 11 on.
std::vector<std::int64_t> primes(std::size_t count)
{
    std::vector<std::int64_t> found;
    for (std::int64_t number = 11; found.size() < count; number += 2) {
        bool prime = true;
        for (std::int64_t divisor = 3; prime && divisor * divisor <= number; divisor += 2)
            prime = number % divisor != 0;
        if (prime)
            found.push_back(number);
    }
    return found;
}

/// A file's graph as a function: what it stores are constants.
OnnxFunction functionOf(const OnnxGraph &graph)
{
    OnnxFunction function{.name = "graph", .domain = "planloom.body", .graph = {}, .defaults = {}};
    std::set<std::string> stored;
    for (const OnnxTensor &tensor : graph.initializers) {
        OnnxNode node;
        node.name = tensor.name;
        node.type = "Constant";
        node.outputs = {tensor.name};
        node.attributes.emplace("value", tensor);
        function.graph.nodes.push_back(std::move(node));
        stored.insert(tensor.name);
    }
    function.graph.nodes.insert(function.graph.nodes.end(), graph.nodes.begin(), graph.nodes.end());
    for (const OnnxValue &input : graph.inputs)
        if (stored.count(input.name) == 0)
            function.graph.inputs.push_back({input.name, {}, {}, "without a type"});
    for (const OnnxValue &output : graph.outputs)
        function.graph.outputs.push_back({output.name, {}, {}, "without a type"});
    return function;
}

/// Makes one body; used once.
class FunctionBodyMaker
{
public:
    FunctionBodyMaker(const OperatorDefinition &definition, OnnxModel model, std::string file)
        : m_definition(definition)
        , m_model(std::move(model))
        , m_file(std::move(file))
    {
    }

    Result<std::vector<BodyStep>> make(const DefinedName &name)
    {
        TRY_VOID(chooseFunction(name));
        TRY_VOID(checkOperator());
        TRY_VOID(takeSamples());
        TRY_VOID(checkAlike());
        std::vector<NumberSample> numbers;
        for (const BodySample &sample : m_samples)
            numbers.push_back(sample.numbers);
        m_fitter.emplace(std::move(numbers));
        TRY_VOID(writeSteps());
        TRY_VOID(compare());
        return std::move(m_steps);
    }

private:
    const Graph &first() const { return m_samples.front().graph; }

    Result<void> chooseFunction(const DefinedName &wanted)
    {
        if (m_model.functions.empty() && wanted.type.empty())
            m_model.functions.push_back(functionOf(m_model.graph));
        std::string names;
        std::vector<const OnnxFunction *> found;
        for (const OnnxFunction &function : m_model.functions) {
            const DefinedName name{function.domain, function.name};
            names += (names.empty() ? "" : ", ") + toString(name);
            if (wanted.type.empty() ? m_model.functions.size() == 1 || name == m_definition.name
                                    : name == wanted)
                found.push_back(&function);
        }
        if (found.size() != 1) {
            const std::string advice =
                "name one behind the file, as in: body \"swish.onnx\" my.functions::Swish";
            if (wanted.type.empty())
                return wrongBody(
                    "the file has " + std::to_string(m_model.functions.size()) + " functions: " + names,
                    advice);
            return wrongBody(std::string("the file has ")
                    + (found.empty() ? "no function " : "several functions ") + toString(wanted)
                    + (names.empty() ? std::string() : ", but " + names),
                advice);
        }
        m_function = found.front();
        return {};
    }

    /// Attributes of the operator that the function's nodes refer to.
    std::set<std::string> referredAttributes() const
    {
        std::set<std::string> names;
        for (const OnnxNode &node : m_function->graph.nodes)
            for (const auto &[name, value] : node.attributes)
                if (const auto *reference = std::get_if<OnnxReference>(&value))
                    names.insert(reference->attribute);
        return names;
    }

    Result<void> checkOperator()
    {
        const auto counted = [](std::size_t count, const char *what) {
            return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
        };
        const OnnxGraph &graph = m_function->graph;
        if (graph.inputs.size() != m_definition.inputs.size()
            || graph.outputs.size() != m_definition.resultCount())
            return wrongBody("the function has " + counted(graph.inputs.size(), "input") + " and "
                    + counted(graph.outputs.size(), "output") + ", where the operator has "
                    + std::to_string(m_definition.inputs.size()) + " and "
                    + std::to_string(m_definition.resultCount()),
                "let both have the same, in the same order; what is saved follows the outputs");
        for (const DefinedTensor &input : m_definition.inputs)
            if (input.optional)
                return wrongBody("input '" + input.name + "' may be absent, which a function cannot say");
        if (m_definition.annotation.empty() || m_definition.annotation.find('*') != std::string::npos)
            return wrongBody("the annotation does not name every dimension of the inputs",
                "write it with a name for each, marked with ^ where it may not be split");
        for (const std::string &name : referredAttributes()) {
            const auto known = std::find_if(m_definition.attributes.begin(), m_definition.attributes.end(),
                [&wanted = name](const DefinedAttribute &attribute) { return attribute.name == wanted; });
            if (known == m_definition.attributes.end() || !known->fallback)
                return wrongBody("the function has an attribute '" + name + "', of which the operator file "
                        + (known == m_definition.attributes.end() ? "says nothing" : "gives no value"),
                    "add a line with its usual value: attribute " + name + " = 1.0");
            if (!std::holds_alternative<double>(*known->fallback)
                && !std::holds_alternative<std::int64_t>(*known->fallback))
                return wrongBody("the function's attribute '" + name + "' is no number, which a body needs");
        }
        return {};
    }

    /// Attributes in sample `number`: near what the operator file says, and other in each.
    Attributes attributesIn(std::size_t number, NumberSample &numbers) const
    {
        Attributes attributes;
        const std::set<std::string> referred = referredAttributes();
        for (const DefinedAttribute &attribute : m_definition.attributes) {
            if (!attribute.fallback)
                continue;
            Attribute value = *attribute.fallback;
            const auto step = static_cast<double>(number);
            if (auto *real = std::get_if<double>(&value)) {
                *real = static_cast<float>(*real * (1 + step / 16) + step / 64);
                numbers[attribute.name] = *real;
            } else if (auto *integer = std::get_if<std::int64_t>(&value)) {
                if (referred.count(attribute.name) != 0) // by powers of two: sizes are multiples of it
                    *integer = *integer == 0 ? static_cast<std::int64_t>(number)
                                             : *integer * (std::int64_t{1} << (number % 3));
                numbers[attribute.name] = static_cast<double>(*integer);
            }
            attributes.set(attribute.name, std::move(value));
        }
        return attributes;
    }

    Result<BodySample> sampleOf(std::size_t number, std::int64_t multiple) const
    {
        BodySample sample;
        sample.attributes = attributesIn(number, sample.numbers);
        TRY(const auto identifiers,
            identifiersOf(m_definition.annotation, m_definition.inputs.size(), m_definition.resultCount()));
        const std::vector<std::int64_t> sizes = primes(kSamples * identifiers.size());
        DefinedSizes named;
        for (std::size_t i = 0; i < identifiers.size(); ++i) {
            const auto isWritten = [&](const NamedExpression &size) { return size.name == identifiers[i]; };
            if (std::none_of(m_definition.sizes.begin(), m_definition.sizes.end(), isWritten))
                named[identifiers[i]] = multiple * sizes[number * identifiers.size() + i];
        }
        TRY_VOID(addDefinedSizes(m_definition, sample.attributes, named));
        for (const auto &[name, size] : named)
            sample.numbers[name] = static_cast<double>(size);
        TRY(const auto shapes,
            annotatedInputs(
                m_definition.annotation, m_definition.inputs.size(), m_definition.resultCount(), named, {}));
        for (std::size_t slot = 0; slot < shapes.size(); ++slot) {
            const DefinedTensor &input = m_definition.inputs[slot];
            if (!shapes[slot])
                return wrongBody("the annotation does not say the dimensions of input '" + input.name + "'");
            sample.inputs.push_back({input.type.value_or(DataType::Float32), *shapes[slot]});
        }
        TRY(sample.graph, imported(sample));
        return sample;
    }

    /// The function as a graph, for a sample's inputs and attributes.
    Result<Graph> imported(const BodySample &sample) const
    {
        OnnxModel model;
        model.irVersion = m_model.irVersion;
        model.opset = m_model.opset;
        model.functions = m_model.functions;
        model.graph.name = m_function->name;
        OnnxNode call;
        call.name = m_function->name;
        call.type = m_function->name;
        call.domain = m_function->domain;
        for (std::size_t slot = 0; slot < sample.inputs.size(); ++slot) {
            OnnxValue input{"input." + std::to_string(slot), sample.inputs[slot].dataType,
                std::vector<OnnxDimension>{}, {}};
            for (const std::int64_t extent : sample.inputs[slot].shape)
                input.shape->push_back({extent, {}});
            call.inputs.push_back(input.name);
            model.graph.inputs.push_back(std::move(input));
        }
        for (std::size_t slot = 0; slot < m_definition.resultCount(); ++slot) {
            call.outputs.push_back("output." + std::to_string(slot));
            model.graph.outputs.push_back({call.outputs.back(), {}, {}, "without a type"});
        }
        for (const auto &[name, value] : sample.attributes.all()) {
            if (const auto *real = std::get_if<double>(&value))
                call.attributes.emplace(name, static_cast<float>(*real));
            else if (const auto *integer = std::get_if<std::int64_t>(&value))
                call.attributes.emplace(name, *integer);
        }
        model.graph.nodes.push_back(std::move(call));
        ImportOptions options;
        options.mostFoldedBytes = std::size_t{4} << 20;
        options.mostOperators = 4 * kMostBodySteps;
        TRY(Graph graph, importOnnxModel(std::move(model), options, m_file));
        removeDeadCode(graph);
        return fuseOperators(std::move(graph));
    }

    Result<void> takeSamples()
    {
        std::optional<Error> failure;
        for (const std::int64_t multiple : kMultiples) {
            m_samples.clear();
            while (m_samples.size() < kSamples) {
                auto sample = sampleOf(m_samples.size(), multiple);
                if (!sample) {
                    if (!failure)
                        failure = std::move(sample).error();
                    break;
                }
                m_samples.push_back(*std::move(sample));
            }
            if (m_samples.size() == kSamples)
                return {};
        }
        failure->message =
            "the function does not hold for sizes and attributes as the operator file has them: "
            + failure->message;
        return *std::move(failure);
    }

    Error differs(const Operator &op, const std::string &what) const
    {
        return wrongBody(std::string(nameOf(op.kind)) + " '" + op.name + "' of the function " + what);
    }

    /// Whether all samples are made of the same operators.
    Result<void> checkAlike() const
    {
        for (const BodySample &sample : m_samples) {
            const Graph &graph = sample.graph;
            bool alike = graph.operators.size() == first().operators.size()
                && graph.tensors.size() == first().tensors.size() && graph.outputs == first().outputs;
            for (std::size_t i = 0; alike && i < graph.operators.size(); ++i) {
                const Operator &a = first().operators[i];
                const Operator &b = graph.operators[i];
                alike = a.kind == b.kind && a.inputs == b.inputs && a.outputs == b.outputs
                    && a.attributes.all().size() == b.attributes.all().size();
            }
            for (std::size_t i = 0; alike && i < graph.tensors.size(); ++i)
                alike = graph.tensors[i].type.shape.size() == first().tensors[i].type.shape.size()
                    && graph.tensors[i].type.dataType == first().tensors[i].type.dataType
                    && !graph.tensors[i].data == !first().tensors[i].data;
            if (!alike)
                return wrongBody(
                    "the function is made of other operators for other sizes or attributes of the operator");
        }
        if (first().operators.size() > kMostBodySteps)
            return wrongBody("the function has " + std::to_string(first().operators.size())
                + " operators, where at most " + std::to_string(kMostBodySteps) + " were expected");
        return {};
    }

    /// What `valueOf` is of each sample, as one expression.
    template<typename ValueOf>
    Result<SizeExpression> fitted(
        const Operator &op, const std::string &what, double tolerance, const ValueOf &valueOf) const
    {
        std::vector<double> values;
        std::string text;
        for (const BodySample &sample : m_samples) {
            values.push_back(valueOf(sample.graph));
            text += (text.empty() ? "" : ", ") + textOfNumber(values.back());
        }
        if (auto expression = m_fitter->fit(values, tolerance))
            return *std::move(expression);
        return differs(
            op, "has " + what + " for which no expression of sizes and attributes was found: " + text);
    }

    Result<std::vector<SizeExpression>> shapeOf(const Operator &op, TensorId id) const
    {
        std::vector<SizeExpression> extents;
        for (std::size_t d = 0; d < first().at(id).type.shape.size(); ++d) {
            TRY(SizeExpression extent, fitted(op, "a size", kExact, [&](const Graph &graph) {
                return static_cast<double>(graph.at(id).type.shape[d]);
            }));
            extents.push_back(std::move(extent));
        }
        return extents;
    }

    Result<StepAttribute> attributeOf(const Operator &op, std::size_t index, const std::string &name) const
    {
        const auto valueIn = [&](const Graph &graph) -> const Attribute & {
            return graph.operators[index].attributes.all().find(name)->second;
        };
        const Attribute &value = valueIn(first());
        for (const BodySample &sample : m_samples) {
            const auto &all = sample.graph.operators[index].attributes.all();
            if (all.count(name) == 0 || all.find(name)->second.index() != value.index())
                return differs(op, "has not always the attribute '" + name + "'");
        }
        const std::string what = "an attribute '" + name + "'";
        if (std::holds_alternative<std::int64_t>(value)) {
            TRY(SizeExpression number, fitted(op, what, kExact, [&](const Graph &graph) {
                return static_cast<double>(std::get<std::int64_t>(valueIn(graph)));
            }));
            return StepAttribute(std::move(number));
        }
        if (std::holds_alternative<double>(value)) {
            TRY(SizeExpression number, fitted(op, what, kRounded, [&](const Graph &graph) {
                return std::get<double>(valueIn(graph));
            }));
            return StepAttribute(std::move(number));
        }
        const auto isSame = [&](const BodySample &sample) { return valueIn(sample.graph) == value; };
        if (const auto *text = std::get_if<std::string>(&value);
            text && std::all_of(m_samples.begin(), m_samples.end(), isSame))
            return StepAttribute(*text);
        const auto *integers = std::get_if<std::vector<std::int64_t>>(&value);
        if (integers == nullptr)
            return differs(op, "has the attribute '" + name + "', which a body cannot say");
        std::vector<SizeExpression> numbers;
        for (std::size_t i = 0; i < integers->size(); ++i) {
            for (const BodySample &sample : m_samples)
                if (std::get<std::vector<std::int64_t>>(valueIn(sample.graph)).size() != integers->size())
                    return differs(op, "has an attribute '" + name + "' of various lengths");
            TRY(SizeExpression number, fitted(op, what, kExact, [&](const Graph &graph) {
                return static_cast<double>(std::get<std::vector<std::int64_t>>(valueIn(graph))[i]);
            }));
            numbers.push_back(std::move(number));
        }
        return StepAttribute(std::move(numbers));
    }

    std::string freshName()
    {
        std::string name;
        do {
            name = "v" + std::to_string(++m_named);
        } while (m_taken.count(name) != 0);
        return name;
    }

    /// The number that all elements of a constant are.
    static std::optional<double> uniformValue(const Tensor &tensor)
    {
        const std::vector<double> values = realsOf(*tensor.data);
        if (values.empty()
            || std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end())
            return std::nullopt;
        return values.front();
    }

    /// The number that stands for a constant among a step's inputs: such a one has the type of the first
    /// value.
    std::optional<double> literalOf(const Operator &reader, TensorId id) const
    {
        const auto isValue = [this](TensorId input) { return input && !first().at(input).data; };
        const auto value = std::find_if(reader.inputs.begin(), reader.inputs.end(), isValue);
        const Tensor &tensor = first().at(id);
        if (!tensor.data || !tensor.type.shape.empty() || value == reader.inputs.end()
            || first().at(*value).type.dataType != tensor.type.dataType)
            return std::nullopt;
        const auto number = uniformValue(tensor);
        for (const BodySample &sample : m_samples)
            if (!number || !std::isfinite(*number) || uniformValue(sample.graph.at(id)) != number)
                return std::nullopt;
        return number;
    }

    /// A constant as a step of its own.
    Result<std::string> constantNamed(const Operator &reader, TensorId id)
    {
        for (const BodySample &sample : m_samples) {
            const auto value = uniformValue(sample.graph.at(id));
            if (!value)
                return differs(reader,
                    "reads a constant of several numbers, " + toString(first().at(id).type.shape)
                        + ", where a body has single ones alone");
            if (!std::isfinite(*value))
                return differs(reader, "reads a number that is not finite");
        }
        BodyStep step;
        step.kind = OperatorKind::Fill;
        TRY(SizeExpression value, fitted(reader, "a number", kRounded, [&](const Graph &graph) {
            return *uniformValue(graph.at(id));
        }));
        step.attributes.emplace_back("value", std::move(value));
        step.type = first().at(id).type.dataType;
        TRY(step.shape, shapeOf(reader, id));
        step.outputs = {freshName()};
        m_steps.push_back(std::move(step));
        m_sources.push_back(std::nullopt);
        return m_steps.back().outputs.front();
    }

    Result<std::string> nameOfValue(const Operator &reader, TensorId id)
    {
        if (const auto known = m_names.find(id); known != m_names.end())
            return known->second;
        if (!first().at(id).data)
            return differs(reader, "reads what nothing makes");
        TRY(m_names[id], constantNamed(reader, id));
        return m_names[id];
    }

    Result<void> writeSteps()
    {
        for (const DefinedAttribute &attribute : m_definition.attributes)
            m_taken.insert(attribute.name);
        for (const auto &[name, number] : m_samples.front().numbers)
            m_taken.insert(name);
        for (std::size_t slot = 0; slot < m_definition.inputs.size(); ++slot) {
            m_taken.insert(m_definition.inputs[slot].name);
            m_names[first().inputs[slot]] = m_definition.inputs[slot].name;
        }
        std::map<TensorId, std::string> results;
        for (std::size_t slot = 0; slot < m_definition.resultCount(); ++slot) {
            m_taken.insert(m_definition.result(slot).name);
            results.emplace(first().outputs[slot], m_definition.result(slot).name);
        }
        // A result that only renames a value is that value.
        for (std::size_t index = first().operators.size(); index-- > 0;) {
            const Operator &op = first().operators[index];
            if (!onlyRenames(op))
                continue;
            if (const auto result = results.find(op.outputs.front()); result != results.end())
                results.emplace(op.inputs.front(), result->second);
        }
        for (std::size_t index = 0; index < first().operators.size(); ++index)
            TRY_VOID(writeStep(index, results));
        // Outputs that are an input, a constant or another output.
        for (std::size_t slot = 0; slot < m_definition.resultCount(); ++slot) {
            const TensorId id = first().outputs[slot];
            const std::string &name = m_definition.result(slot).name;
            if (const auto known = m_names.find(id); known != m_names.end() && known->second == name)
                continue;
            BodyStep step;
            step.kind = OperatorKind::Identity;
            TRY(std::string value, nameOfValue(Operator{}, id));
            step.inputs.emplace_back(std::move(value));
            step.outputs = {name};
            m_steps.push_back(std::move(step));
            m_sources.push_back(std::nullopt);
        }
        return {};
    }

    static bool onlyRenames(const Operator &op)
    {
        return op.kind == OperatorKind::Identity && op.attributes.integer("detached") == 0;
    }

    Result<void> writeStep(std::size_t index, const std::map<TensorId, std::string> &results)
    {
        const Operator &op = first().operators[index];
        if (const char *why = whyNotInBody(op.kind))
            return wrongBody(typeNameOf(op) + " cannot stand in a body: it " + why);
        if (onlyRenames(op)) {
            TRY(m_names[op.outputs.front()], nameOfValue(op, op.inputs.front()));
            return {};
        }
        BodyStep step;
        step.kind = op.kind;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot]) {
                if (std::any_of(op.inputs.begin() + static_cast<std::ptrdiff_t>(slot), op.inputs.end(),
                        [](TensorId id) { return id.valid(); }))
                    return differs(op, "is without an input before others, which a body cannot say");
                break;
            }
            if (const auto literal = literalOf(op, op.inputs[slot])) {
                step.inputs.emplace_back(*literal);
                continue;
            }
            TRY(std::string value, nameOfValue(op, op.inputs[slot]));
            step.inputs.emplace_back(std::move(value));
        }
        for (const auto &[name, value] : op.attributes.all()) {
            TRY(StepAttribute attribute, attributeOf(op, index, name));
            step.attributes.emplace_back(name, std::move(attribute));
        }
        for (const TensorId id : op.outputs) {
            const auto result = results.find(id);
            step.outputs.push_back(result == results.end() ? freshName() : result->second);
            if (id)
                m_names[id] = step.outputs.back();
        }
        if (needsDeclaredType(op.kind)) {
            step.type = first().at(op.outputs.front()).type.dataType;
            TRY(step.shape, shapeOf(op, op.outputs.front()));
        }
        m_steps.push_back(std::move(step));
        m_sources.push_back(index);
        return {};
    }

    /// Compares the body with the function in all samples.
    Result<void> compare() const
    {
        auto whole = std::make_shared<OperatorDefinition>(m_definition);
        whole->body = m_steps;
        for (const BodySample &sample : m_samples) {
            TRY(const Attributes attributes, completedAttributes(whole, sample.attributes));
            const std::vector<bool> present(sample.inputs.size(), true);
            TRY(const Graph body, bodyOf(*whole, attributes, sample.inputs, present));
            for (std::size_t i = 0; i < m_steps.size(); ++i) {
                if (!m_sources[i])
                    continue;
                const Operator &expected = sample.graph.operators[*m_sources[i]];
                const Operator &made = body.operators[i];
                for (const auto &[name, value] : expected.attributes.all())
                    if (!isEqual(value, made.attributes, name))
                        return differs(expected, "has an attribute '" + name + "' that a body cannot say");
                for (std::size_t slot = 0; slot < expected.outputs.size(); ++slot)
                    if (expected.outputs[slot]
                        && sample.graph.at(expected.outputs[slot]).type != body.at(made.outputs[slot]).type)
                        return differs(expected, "makes another type than in a body");
            }
            TRY(const auto types, customTypes(attributes, sample.inputs, present));
        }
        return {};
    }

    static bool isEqual(const Attribute &expected, const Attributes &made, const std::string &name)
    {
        if (!made.has(name))
            return false;
        const auto *real = std::get_if<double>(&expected);
        if (real == nullptr)
            return made.all().find(name)->second == expected;
        return std::fabs(made.real(name) - *real) <= kRounded * std::max(std::fabs(*real), 1e-6);
    }

    const OperatorDefinition &m_definition;
    OnnxModel m_model;
    std::string m_file;
    const OnnxFunction *m_function = nullptr;
    std::vector<BodySample> m_samples;
    std::optional<ExpressionFitter> m_fitter;
    std::vector<BodyStep> m_steps;
    std::vector<std::optional<std::size_t>> m_sources; ///< By step: the operator that it is.
    std::map<TensorId, std::string> m_names;
    std::set<std::string> m_taken;
    int m_named = 0;
};

} // namespace

Result<std::vector<BodyStep>> functionBody(const OperatorDefinition &definition, std::string_view bytes,
    const std::string &file, const DefinedName &function)
{
    const auto inFile = [&file](Error error) {
        error.message = file + ": " + error.message;
        if (error.advice.empty())
            error.advice = kWriteOut;
        return error;
    };
    auto model = readOnnx(bytes, {}, file);
    if (!model)
        return inFile(std::move(model).error());
    auto steps = FunctionBodyMaker(definition, *std::move(model), file).make(function);
    if (!steps)
        return inFile(std::move(steps).error());
    return steps;
}

Result<std::vector<BodyStep>> readFunctionBody(const OperatorDefinition &definition, const BodySource &source)
{
    TRY(const std::string bytes,
        readFile(source.path, {.what = "ONNX file of a body", .mostBytes = kMostFunctionFileBytes}));
    return functionBody(
        definition, bytes, std::filesystem::path(source.path).filename().string(), source.function);
}

} // namespace planloom
