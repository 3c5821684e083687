#include "engine/frontend/onnx/functions/function_samples.h"
#include "engine/base/words.h"

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/graph/annotation/annotation.h"
#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operator_files/operator_file.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kSamples = 7; ///< Three for the unknowns of an expression, the others to try it.
/// What sizes are multiples of, until the function takes them: heads, groups and the like divide them.
constexpr std::array<std::int64_t, 9> kMultiples{1, 2, 4, 8, 16, 64, 12, 60, 240};

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
    for (const StoredTensor &tensor : graph.initializers) {
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

/// Makes the samples of one function; used once.
class FunctionSampler
{
public:
    FunctionSampler(const OperatorDefinition &definition, OnnxModel model, std::string file)
        : m_definition(definition)
        , m_model(std::move(model))
        , m_file(std::move(file))
    {
    }

    Result<std::vector<BodySample>> sample(const DefinedName &name)
    {
        TRY_VOID(chooseFunction(name));
        TRY_VOID(checkOperator());
        TRY_VOID(takeSamples());
        return std::move(m_samples);
    }

private:
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
        const auto counted = [](std::size_t count, const char *noun) {
            return planloom::counted(static_cast<std::int64_t>(count), noun);
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

    const OperatorDefinition &m_definition;
    OnnxModel m_model;
    std::string m_file;
    const OnnxFunction *m_function = nullptr;
    std::vector<BodySample> m_samples;
};

} // namespace

Error wrongBody(std::string message, std::string advice)
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), {}};
}

Result<std::vector<BodySample>> sampleFunction(
    const OperatorDefinition &definition, OnnxModel model, const std::string &file, const DefinedName &name)
{
    return FunctionSampler(definition, std::move(model), file).sample(name);
}

} // namespace planloom
