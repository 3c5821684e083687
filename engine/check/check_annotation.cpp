#include "engine/check/check_annotation.h"

#include "engine/base/text.h"
#include "engine/graph/operator_files/custom_operator.h"

#include <algorithm>
#include <array>
#include <set>

namespace planloom {

namespace {

using KindNames = std::pair<std::string_view, std::string_view>;

/// ONNX operators that become kinds of other names.
constexpr std::array kOnnxNames{KindNames{"BatchNormalization", "BatchMean BatchVariance BatchNormalize"},
    KindNames{"Flatten", "Reshape"}, KindNames{"Gemm", "Linear"},
    KindNames{"GlobalAveragePool", "ReduceMean"}, KindNames{"GlobalMaxPool", "ReduceMax"},
    KindNames{"GRU", "Gru"}, KindNames{"InstanceNormalization", "InstanceNorm"},
    KindNames{"LayerNormalization", "LayerNorm"}, KindNames{"LpNormalization", "LpNormalize"},
    KindNames{"LRN", "LocalResponseNorm"}, KindNames{"LSTM", "Lstm"},
    KindNames{"NegativeLogLikelihoodLoss", "NegativeLogLikelihood"}, KindNames{"RMSNormalization", "RmsNorm"},
    KindNames{"RNN", "Rnn"}, KindNames{"RotaryEmbedding", "Rotary"},
    KindNames{"SoftmaxCrossEntropyLoss", "CrossEntropy ClassStatistics ClassLoss"},
    KindNames{"Squeeze", "Reshape"}, KindNames{"Swish", "Silu"}, KindNames{"Unsqueeze", "Reshape"}};

/// The kinds that `name` means; empty if none.
std::set<OperatorKind> kindsNamed(std::string_view name)
{
    std::string_view names = name;
    for (const auto &[onnx, kinds] : kOnnxNames)
        if (sameLetters(onnx, name))
            names = kinds;
    std::set<OperatorKind> found;
    for (int i = 0; i < static_cast<int>(OperatorKind::Custom); ++i) {
        const auto kind = static_cast<OperatorKind>(i);
        const std::string_view own = nameOf(kind);
        for (std::size_t begin = 0; begin < names.size();) {
            const std::size_t end = std::min(names.find(' ', begin), names.size());
            if (sameLetters(own, names.substr(begin, end - begin)))
                found.insert(kind);
            begin = end + 1;
        }
    }
    return found;
}

Error inTrial(const OperatorDefinition &definition, ErrorCode code, std::string message, std::string advice)
{
    return {code, toString(definition.name) + ": " + std::move(message), std::move(advice),
        definition.file + ":" + std::to_string(definition.line)};
}

/// Sizes of all dimensions: those asked for, those of lines "where", and small ones that differ.
Result<DefinedSizes> trialSizes(
    const OperatorDefinition &definition, const Attributes &attributes, const DefinitionTrialOptions &options)
{
    TRY(const auto identifiers,
        identifiersOf(definition.annotation, definition.inputs.size(), definition.resultCount()));
    DefinedSizes sizes;
    std::int64_t next = 4;
    for (const std::string &identifier : identifiers) {
        const auto isIt = [&](const NamedExpression &size) { return size.name == identifier; };
        if (const auto given = options.sizes.find(identifier); given != options.sizes.end())
            sizes[identifier] = given->second;
        else if (std::none_of(definition.sizes.begin(), definition.sizes.end(), isIt))
            sizes[identifier] = std::exchange(next, next + 2);
    }
    for (const auto &[name, size] : options.sizes)
        if (sizes.count(name) == 0)
            return inTrial(definition, ErrorCode::NotFound, "the annotation has no dimension '" + name + "'",
                "its dimensions are those of: " + definition.annotation);
    TRY_VOID(addDefinedSizes(definition, attributes, sizes));
    return sizes;
}

Result<OperatorExample> exampleOf(const std::shared_ptr<const OperatorDefinition> &definition,
    const Attributes &attributes, const DefinitionTrialOptions &options, DataType type, bool withOptional)
{
    OperatorExample example;
    example.name = toString(definition->name);
    example.kind = OperatorKind::Custom;
    example.attributes = attributes;
    std::vector<std::optional<Shape>> shapes(definition->inputs.size());
    if (!definition->annotation.empty()) {
        TRY(const DefinedSizes sizes, trialSizes(*definition, attributes, options));
        TRY(shapes,
            annotatedInputs(
                definition->annotation, definition->inputs.size(), definition->resultCount(), sizes, {4, 6}));
    }
    for (std::size_t slot = 0; slot < definition->inputs.size(); ++slot) {
        const DefinedTensor &input = definition->inputs[slot];
        ExampleInput &made = example.inputs.emplace_back();
        made.present = withOptional || !input.optional;
        if (!made.present)
            continue;
        const auto given = options.shapes.find(input.name);
        if (given != options.shapes.end())
            shapes[slot] = given->second;
        if (!shapes[slot])
            return inTrial(*definition, ErrorCode::InvalidInput,
                "nothing says the shape of input '" + input.name + "'",
                "give one with --shape " + input.name + "=4,6");
        made.type = {input.type.value_or(type), *shapes[slot]};
        if (!isFloating(made.type.dataType))
            made.low = 0; // most integers are indices
        if (const auto range = options.ranges.find(input.name); range != options.ranges.end()) {
            made.low = range->second.first;
            made.high = range->second.second;
        } else if (!isFloating(made.type.dataType)) {
            made.high = 2;
        }
    }
    return example;
}

Result<void> checkNames(const OperatorDefinition &definition, const DefinitionTrialOptions &options)
{
    const auto isInput = [&](const std::string &name) { return inputNamed(definition, name) >= 0; };
    for (const auto &[name, shape] : options.shapes)
        if (!isInput(name))
            return inTrial(definition, ErrorCode::NotFound, "it has no input '" + name + "'", {});
    for (const auto &[name, range] : options.ranges)
        if (!isInput(name))
            return inTrial(definition, ErrorCode::NotFound, "it has no input '" + name + "'", {});
    return {};
}

} // namespace

Result<std::vector<CheckedOperator>> checkKnownOperators(std::string_view name)
{
    const std::set<OperatorKind> kinds = kindsNamed(name);
    if (!name.empty() && kinds.empty())
        return Error{ErrorCode::NotFound, "there is no operator '" + std::string(name) + "'",
            "name an operator as ONNX or planloom-cli info does, or a file of operators", {}};
    std::vector<CheckedOperator> checked;
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float64)) {
        if (!name.empty() && kinds.count(example.kind) == 0)
            continue;
        TRY(AnnotationTrial trial, tryAnnotation(example));
        checked.push_back({example.name.substr(0, example.name.rfind(" #")), std::move(trial)});
    }
    return checked;
}

Result<std::vector<CheckedOperator>> checkDefinition(
    const std::shared_ptr<const OperatorDefinition> &definition, const DefinitionTrialOptions &options)
{
    TRY_VOID(checkNames(*definition, options));
    TRY(const Attributes attributes, completedAttributes(definition, options.attributes));
    const DefinedDerivative &derivative = definition->derivative;
    const bool byLibrary = definition->library.has_value()
        || (derivative.definition && derivative.definition->library.has_value());
    const DataType type = options.type.value_or(byLibrary ? DataType::Float32 : DataType::Float64);
    Graph operators; // all that may be called
    Operator forward;
    forward.kind = OperatorKind::Custom;
    forward.attributes = attributes;
    operators.operators.push_back(forward);
    forward.direction = Direction::Backward;
    operators.operators.push_back(std::move(forward));
    TRY(const auto libraries, OperatorLibraries::load(operators, options.libraries));
    TrialOptions trialOptions;
    trialOptions.seed = options.seed;
    trialOptions.tolerance = options.tolerance.value_or(type == DataType::Float64 ? 1e-10 : 1e-5);
    trialOptions.libraries = libraries.get();
    const bool hasOptional = std::any_of(definition->inputs.begin(), definition->inputs.end(),
        [](const DefinedTensor &input) { return input.optional; });
    std::vector<CheckedOperator> checked;
    for (const bool withOptional : {true, false}) {
        if (!withOptional && !hasOptional)
            continue;
        TRY(const OperatorExample example, exampleOf(definition, attributes, options, type, withOptional));
        auto trial = tryAnnotation(example, trialOptions);
        if (!trial) {
            Error error = std::move(trial).error();
            if (error.where.empty())
                error.where = definition->file + ":" + std::to_string(definition->line);
            return error;
        }
        checked.push_back(
            {example.name + (withOptional ? "" : " without optional inputs"), *std::move(trial)});
    }
    return checked;
}

} // namespace planloom
