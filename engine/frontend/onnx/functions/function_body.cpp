#include "engine/frontend/onnx/functions/function_body.h"

#include "engine/base/files.h"
#include "engine/frontend/onnx/functions/fitted_expression.h"
#include "engine/frontend/onnx/functions/function_samples.h"
#include "engine/frontend/onnx/onnx_reader.h"
#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operator_files/custom_operator.h"

#include <algorithm>
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
constexpr double kExact = 1e-12;
constexpr double kRounded = 1e-6; ///< Of numbers that were computed as float32.

/// Makes one body; used once.
class FunctionBodyMaker
{
public:
    FunctionBodyMaker(const OperatorDefinition &definition, std::vector<BodySample> samples)
        : m_definition(definition)
        , m_samples(std::move(samples))
    {
    }

    Result<std::vector<BodyStep>> make()
    {
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
            error.advice = kWriteBodyOut;
        return error;
    };
    auto model = readOnnx(bytes, {}, file);
    if (!model)
        return inFile(std::move(model).error());
    auto samples = sampleFunction(definition, *std::move(model), file, function);
    if (!samples)
        return inFile(std::move(samples).error());
    auto steps = FunctionBodyMaker(definition, *std::move(samples)).make();
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
