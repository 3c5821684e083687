#include "engine/frontend/onnx/import_onnx.h"

#include "engine/base/files.h"
#include "engine/frontend/complete_import.h"
#include "engine/frontend/onnx/onnx_builder.h"
#include "engine/frontend/onnx/onnx_external.h"
#include "engine/frontend/onnx/onnx_operators.h"
#include "engine/frontend/onnx/onnx_order.h"
#include "engine/frontend/onnx/onnx_reader.h"
#include "engine/frontend/onnx/parameters/onnx_parameters.h"
#include "engine/frontend/onnx/parameters/onnx_restore.h"
#include "engine/frontend/open_dimensions.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kOldestOpset = 7;
constexpr std::int64_t kNewestOpset = 25;
constexpr int kDeepestFunction = 32; ///< Functions that call functions.
constexpr std::int64_t kMostInlined = 100'000; ///< Graphs of If and Loop imported in place.

/// What an open dimension is called: as in the file, or by its place.
std::string symbolOf(const OnnxValue &input, std::size_t axis)
{
    const std::string &symbol = (*input.shape)[axis].symbol;
    return symbol.empty() ? input.name + "." + std::to_string(axis) : symbol;
}

OpenDimensions openDimensionsOf(const OnnxGraph &graph)
{
    std::unordered_set<std::string_view> stored;
    for (const OnnxTensor &tensor : graph.initializers)
        stored.insert(tensor.name);
    OpenDimensions open;
    for (const OnnxValue &input : graph.inputs) {
        if (!input.shape || !input.dataType || stored.count(input.name) != 0)
            continue;
        std::vector<std::vector<std::string>> names(input.shape->size());
        for (std::size_t axis = 0; axis < names.size(); ++axis) {
            if (!(*input.shape)[axis].size)
                names[axis].push_back(symbolOf(input, axis));
        }
        open.addInput(input.name, *input.dataType, names, std::vector<bool>(names.size(), true));
    }
    return open;
}

/// What is known of one graph of the file, whichever time it is imported.
struct GraphFacts {
    explicit GraphFacts(const OnnxGraph &graph)
        : uses(graph)
    {
        for (const auto *list : {&graph.values, &graph.outputs, &graph.inputs}) {
            for (const OnnxValue &value : *list)
                declared.emplace(value.name, &value);
        }
    }

    OnnxUses uses;
    std::unordered_map<std::string_view, const OnnxValue *> declared{};
    std::vector<std::size_t> order{};
};

/// Names of one graph while it is imported; inner graphs see those around them.
struct Frame {
    const GraphFacts *facts = nullptr;
    bool isModel = false;
    Frame *outer = nullptr;
    std::unordered_map<std::string, TensorId> values{};
    std::unordered_map<std::string, std::vector<TensorId>> sequences{};
};

class Importer final : public OnnxScope
{
public:
    Importer(OnnxModel model, const ImportOptions &options, std::string name)
        : m_model(std::move(model))
        , m_options(options)
        , m_name(std::move(name))
        , m_builder(options, m_model.opset)
    {
    }

    Result<Graph> run();

    bool isUsed(const std::string &value) const override { return m_frame->facts->uses.isUsed(value); }
    bool isOutput(const std::string &value) const override
    {
        return m_frame->isModel && m_frame->facts->uses.isOutput(value);
    }
    std::optional<Classification> storedByNode(const OnnxTensor &value) const override
    {
        return m_frame->isModel ? m_rules->classifyNode(value) : std::nullopt;
    }
    const OnnxValue *declared(const std::string &value) const override
    {
        const auto found = m_frame->facts->declared.find(value);
        return found == m_frame->facts->declared.end() ? nullptr : found->second;
    }
    Result<std::vector<TensorId>> inlineGraph(
        const OnnxGraph &graph, const std::vector<TensorId> &inputs) override;
    Result<void> bind(const std::string &value, TensorId tensor) override;
    const std::vector<TensorId> *findSequence(const std::string &value) const override;
    Result<void> bindSequence(const std::string &value, std::vector<TensorId> sequence) override;

private:
    Error error(ErrorCode code, std::string message, std::string advice) const
    {
        return Error{code, std::move(message), std::move(advice), m_name};
    }
    Result<const GraphFacts *> factsOf(const OnnxGraph &graph);
    TensorId find(const std::string &value) const;
    Result<TensorType> typeOfInput(const OnnxValue &input);
    Result<void> addInputs(const ParameterRules &rules);
    Result<void> addInitializers(const ParameterRules &rules);
    Result<void> addInitializer(OnnxTensor &tensor, const std::string &own, const ParameterRules &rules);
    Result<void> addInput(
        const OnnxValue &input, const std::unordered_map<std::string, Classification> &parameters);
    Result<void> checkStoredAs(const std::vector<std::string> &original) const;
    Result<void> importNodes(const OnnxGraph &graph);
    Result<bool> importCall(const OnnxNode &node, const std::vector<TensorId> &inputs);
    Result<std::vector<TensorId>> collectOutputs();
    std::string wantedLoss() const { return m_options.lossOutput.empty() ? "loss" : m_options.lossOutput; }
    Result<void> chooseLoss(Graph &graph) const;
    void noteStored(const OnnxTensor &tensor);
    void addNotes();

    OnnxModel m_model;
    const ImportOptions &m_options;
    std::string m_name;
    OnnxBuilder m_builder;
    Frame *m_frame = nullptr;
    const ParameterRules *m_rules = nullptr;
    std::unordered_map<const OnnxGraph *, std::unique_ptr<GraphFacts>> m_facts{};
    std::vector<InputDimension> m_dimensions{}; ///< Open ones of the inputs, with their sizes.
    std::map<std::string, std::int64_t> m_sizes{}; ///< Of these, by name.
    std::vector<std::string> m_nonFinite{};
    std::map<std::string, std::int64_t> m_missing{}; ///< Tensors by missing file.
    std::map<std::pair<std::string, std::string>, const OnnxFunction *>
        m_functions{}; ///< By domain and name.
    std::vector<std::unique_ptr<const OnnxGraph>> m_called{}; ///< Graphs of functions, one for each call.
    std::size_t m_calledNodes = 0;
    int m_functionDepth = 0;
    std::int64_t m_inlined = 0;
    std::int64_t m_nodes = 0;
};

Result<const GraphFacts *> Importer::factsOf(const OnnxGraph &graph)
{
    auto &facts = m_facts[&graph];
    if (!facts) {
        facts = std::make_unique<GraphFacts>(graph);
        TRY(facts->order, orderOfNodes(graph));
    }
    return static_cast<const GraphFacts *>(facts.get());
}

TensorId Importer::find(const std::string &value) const
{
    for (const Frame *frame = m_frame; frame != nullptr; frame = frame->outer) {
        if (const auto found = frame->values.find(value); found != frame->values.end())
            return found->second;
    }
    return {};
}

const std::vector<TensorId> *Importer::findSequence(const std::string &value) const
{
    for (const Frame *frame = m_frame; frame != nullptr; frame = frame->outer) {
        if (const auto found = frame->sequences.find(value); found != frame->sequences.end())
            return &found->second;
    }
    return nullptr;
}

Result<void> Importer::bindSequence(const std::string &value, std::vector<TensorId> sequence)
{
    if (m_frame->values.count(value) != 0 || !m_frame->sequences.emplace(value, std::move(sequence)).second)
        return error(
            ErrorCode::InvalidInput, "the value '" + value + "' is made twice", "export the model anew");
    return {};
}

Result<void> Importer::bind(const std::string &value, TensorId tensor)
{
    if (!m_frame->values.emplace(value, tensor).second)
        return error(
            ErrorCode::InvalidInput, "the value '" + value + "' is made twice", "export the model anew");
    return {};
}

Result<TensorType> Importer::typeOfInput(const OnnxValue &input)
{
    if (!input.dataType)
        return error(ErrorCode::NotSupported,
            "the input '" + input.name + "' is " + input.reason + ", which Planloom cannot take",
            "export the model with tensors of floats or integers as inputs");
    if (!input.shape)
        return error(ErrorCode::NotSupported, "the input '" + input.name + "' does not say its shape",
            "export the model with the shapes of its inputs");
    TensorType type{*input.dataType, {}};
    for (std::size_t axis = 0; axis < input.shape->size(); ++axis) {
        const OnnxDimension &dimension = (*input.shape)[axis];
        const std::int64_t size =
            dimension.size ? *dimension.size : m_sizes[symbolOf(input, axis)]; // `addInputs` has chosen it
        if (size < 1)
            return error(ErrorCode::InvalidInput,
                "dimension " + std::to_string(axis) + " of the input '" + input.name + "' has the size "
                    + std::to_string(size) + ", where at least 1 was expected",
                "export the model anew");
        type.shape.push_back(size);
    }
    if (!checkedByteCount(type))
        return error(ErrorCode::InvalidInput,
            "the input '" + input.name + "' has the shape " + toString(type.shape)
                + ", larger than 2^62 bytes",
            "export the model anew");
    return type;
}

void Importer::noteStored(const OnnxTensor &tensor)
{
    if (tensor.hasNonFinite)
        m_nonFinite.push_back(tensor.name);
    if (tensor.external && !tensor.external->present)
        ++m_missing[std::filesystem::path(tensor.external->path).filename().string()];
}

Result<void> Importer::addInputs(const ParameterRules &rules)
{
    OnnxGraph &graph = m_model.graph;
    std::unordered_map<std::string, std::size_t> stored;
    for (std::size_t i = 0; i < graph.initializers.size(); ++i)
        stored.emplace(graph.initializers[i].name, i);
    const auto parameters = parameterInputs(graph, m_frame->facts->uses, rules, m_options.asInputs);
    std::vector<std::string> taken;
    for (const OnnxValue &input : graph.inputs) {
        if (stored.count(input.name) != 0)
            continue; // an initializer listed as an input, as old files do
        if (input.name.empty())
            return error(ErrorCode::InvalidInput, "an input has no name", "export the model anew");
        TRY_VOID(addInput(input, parameters));
        if (const auto found = parameters.find(input.name);
            found != parameters.end() && !found->second.byHand)
            taken.push_back(input.name);
    }
    if (!taken.empty())
        m_builder.note(std::to_string(taken.size())
            + " inputs were taken as parameters and buffers, as if the file had been exported without them: '"
            + taken.front() + "'" + (taken.size() > 1 ? ", ..." : "")
            + "; what is an input all the same is said by --as-input NAME");
    return {};
}

Result<void> Importer::addInput(
    const OnnxValue &input, const std::unordered_map<std::string, Classification> &parameters)
{
    const auto known = typeOfInput(input);
    if (!known && m_builder.maySkip(known.error()))
        return bind(input.name, m_builder.addOpaqueInput(input.name, known.error()));
    TRY(const TensorType type, known);
    const auto parameter = parameters.find(input.name);
    if (parameter == parameters.end()) {
        const TensorId id = m_builder.addInput(input.name, type);
        if (m_options.asInputs.count(input.name) != 0)
            m_builder.classify(
                id, {.as = StoredAs::Constant, .why = "chosen by hand", .byHand = true}, input.name);
        return bind(input.name, id);
    }
    const TensorId id =
        m_builder.addStored(OnnxTensor{input.name, type, nullptr, {}, false}, roleOf(parameter->second.as));
    m_builder.classify(id, parameter->second, input.name);
    return bind(input.name, id);
}

Result<void> Importer::addInitializers(const ParameterRules &rules)
{
    OnnxGraph &graph = m_model.graph;
    std::unordered_set<std::string> taken; // names of the file's values, and those given here
    for (const OnnxTensor &tensor : graph.initializers)
        taken.insert(tensor.name);
    for (const OnnxNode &node : graph.nodes)
        taken.insert(node.outputs.begin(), node.outputs.end());
    std::vector<std::string> original;
    for (OnnxTensor &tensor : graph.initializers) {
        if (tensor.name.empty())
            return error(ErrorCode::InvalidInput, "an initializer has no name", "export the model anew");
        const std::string name = tensor.name;
        if (m_frame->facts->uses.isUsed(name))
            noteStored(tensor);
        const std::string wanted = rules.nameOf(tensor);
        std::string own = wanted;
        for (int number = 2; own != name && !taken.insert(own).second; ++number)
            own = wanted + "#" + std::to_string(number);
        original.push_back(wanted);
        TRY_VOID(addInitializer(tensor, own, rules));
    }
    return checkStoredAs(original);
}

/// @param own  the name it has in the module
Result<void> Importer::addInitializer(OnnxTensor &tensor, const std::string &own, const ParameterRules &rules)
{
    const std::string name = tensor.name;
    if (m_options.asInputs.count(name) != 0 || m_options.asInputs.count(own) != 0) {
        const TensorId id = m_builder.addInput(name, tensor.type);
        m_builder.classify(id, {.as = StoredAs::Constant, .why = "chosen by hand", .byHand = true}, name);
        return bind(name, id);
    }
    const Classification classification = rules.classify(tensor);
    // The file's structs are not needed any more: each tensor is held once.
    const TensorId id = m_builder.addStored(std::move(tensor), roleOf(classification.as));
    tensor.name = name;
    m_builder.classify(id, classification, own);
    return bind(name, id);
}

/// What a person decided must be about something.
Result<void> Importer::checkStoredAs(const std::vector<std::string> &original) const
{
    std::set<std::string> chosen = m_options.asInputs;
    for (const auto &[name, as] : m_options.storedAs)
        chosen.insert(name);
    for (const std::string &name : chosen) {
        const auto named = [&wanted = name](const auto &stored) { return stored.name == wanted; };
        const auto makes = [&wanted = name](const OnnxNode &node) {
            return (node.type == "Constant" || node.type == "ConstantOfShape") && !node.outputs.empty()
                && node.outputs.front() == wanted;
        };
        const OnnxGraph &graph = m_model.graph;
        const bool isNode = std::any_of(graph.nodes.begin(), graph.nodes.end(), makes);
        if (isNode && m_options.asInputs.count(name) != 0)
            return error(ErrorCode::NotSupported, "'" + name + "' is the value of a node, which is no input",
                "name a tensor that the file stores, or an input");
        if (isNode || std::any_of(graph.initializers.begin(), graph.initializers.end(), named)
            || std::any_of(graph.inputs.begin(), graph.inputs.end(), named)
            || std::find(original.begin(), original.end(), name) != original.end())
            continue;
        return error(ErrorCode::NotFound, "the model stores no tensor called '" + name + "'",
            "info --json lists what it stores under \"stored\"");
    }
    return {};
}

Result<void> Importer::importNodes(const OnnxGraph &graph)
{
    for (const std::size_t position : m_frame->facts->order) {
        const OnnxNode &node = graph.nodes[position];
        if ((++m_nodes & 0xff) == 0 && m_options.stop.stop_requested())
            return error(ErrorCode::Cancelled, "the import was cancelled", "");
        std::vector<TensorId> inputs;
        inputs.reserve(node.inputs.size());
        for (const std::string &input : node.inputs) {
            const TensorId id = input.empty() ? TensorId{} : find(input);
            if (!input.empty() && !id && findSequence(input) == nullptr)
                return Error{ErrorCode::InvalidInput,
                    "node '" + node.name + "' (" + node.type + ") reads '" + input + "', which nothing makes",
                    "export the model anew", "node:" + node.name};
            inputs.push_back(id);
        }
        OnnxNodeContext context(node, inputs, m_builder, *this);
        if (m_builder.areOpaque(inputs)) {
            context.keepOpaque(nullptr);
            continue;
        }
        const auto called = importCall(node, inputs);
        const auto imported = called && !*called ? importNode(context)
            : called                             ? Result<void>{}
                                                 : Result<void>(called.error());
        if (!imported && !m_builder.maySkip(imported.error()))
            return imported.error();
        if (!imported)
            context.keepOpaque(&imported.error());
    }
    return {};
}

/// Imports a call of a function that the file defines. @return false if the node is no such call
Result<bool> Importer::importCall(const OnnxNode &node, const std::vector<TensorId> &inputs)
{
    const auto found = m_functions.find({node.domain, node.type});
    if (found == m_functions.end()
        || (m_options.operators && m_options.operators->find(node.domain, node.type)))
        return false;
    const OnnxFunction &function = *found->second;
    const std::string what = "node '" + node.name + "' calls the function '" + node.type + "'";
    m_calledNodes += function.graph.nodes.size();
    const bool tooMany = ++m_inlined > kMostInlined || m_calledNodes > m_options.mostOperators;
    if (tooMany || m_functionDepth >= kDeepestFunction)
        return error(ErrorCode::ResourceLimit,
            what + ", which lies deeper than " + std::to_string(kDeepestFunction)
                + " calls, or among too many",
            "");
    if (inputs.size() > function.graph.inputs.size() || node.outputs.size() > function.graph.outputs.size())
        return error(ErrorCode::InvalidInput,
            what + " with " + std::to_string(inputs.size()) + " inputs and "
                + std::to_string(node.outputs.size()) + " outputs, more than it has",
            "export the model anew");
    auto graph = std::make_unique<OnnxGraph>(function.graph);
    for (OnnxNode &inner : graph->nodes) {
        inner.name = node.name + "/" + (inner.name.empty() ? inner.type : inner.name);
        for (auto attribute = inner.attributes.begin(); attribute != inner.attributes.end();) {
            const auto *reference = std::get_if<OnnxReference>(&attribute->second);
            if (reference == nullptr) {
                ++attribute;
                continue;
            }
            const auto given = node.attributes.find(reference->attribute);
            const auto fallback = function.defaults.find(reference->attribute);
            if (given == node.attributes.end() && fallback == function.defaults.end()) {
                attribute = inner.attributes.erase(attribute); // the inner operator's own default
            } else {
                attribute->second = given == node.attributes.end() ? fallback->second : given->second;
                ++attribute;
            }
        }
    }
    m_called.push_back(std::move(graph));
    const OnnxGraph &body = *m_called.back();
    Frame frame;
    TRY(frame.facts, factsOf(body));
    Frame *const caller = m_frame;
    struct Restore {
        Frame *&current;
        Frame *caller;
        int &depth;
        ~Restore()
        {
            current = caller;
            --depth;
        }
    } const restore{m_frame, caller, m_functionDepth};
    ++m_functionDepth;
    m_frame = &frame; // a function sees no names but its own
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i])
            TRY_VOID(bind(body.inputs[i].name, inputs[i]));
    }
    TRY_VOID(importNodes(body));
    std::vector<TensorId> outputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        outputs.push_back(find(body.outputs[i].name));
        if (!outputs.back() && !node.outputs[i].empty())
            return error(ErrorCode::InvalidInput,
                what + ", which does not make '" + body.outputs[i].name + "'", "export the model anew");
    }
    m_frame = caller;
    OnnxNodeContext context(node, inputs, m_builder, *this);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i])
            TRY_VOID(context.bind(i, outputs[i]));
    }
    return true;
}

Result<std::vector<TensorId>> Importer::inlineGraph(
    const OnnxGraph &graph, const std::vector<TensorId> &inputs)
{
    if (++m_inlined > kMostInlined)
        return error(ErrorCode::ResourceLimit,
            "more than " + std::to_string(kMostInlined) + " branches and iterations would be unrolled", "");
    if (graph.inputs.size() != inputs.size())
        return error(ErrorCode::InvalidInput,
            "the inner graph '" + graph.name + "' has " + std::to_string(graph.inputs.size())
                + " inputs, where " + std::to_string(inputs.size()) + " were expected",
            "export the model anew");
    Frame frame;
    TRY(frame.facts, factsOf(graph));
    frame.outer = m_frame;
    // Errors must leave the outer names in place.
    struct Restore {
        Frame *&current;
        Frame *outer;
        ~Restore() { current = outer; }
    } const restore{m_frame, m_frame};
    m_frame = &frame;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        TRY_VOID(bind(graph.inputs[i].name, inputs[i]));
    for (const OnnxTensor &tensor : graph.initializers) {
        if (tensor.name.empty() || frame.values.count(tensor.name) != 0)
            continue;
        TRY_VOID(bind(tensor.name, m_builder.addStored(tensor, TensorRole::Buffer)));
    }
    TRY_VOID(importNodes(graph));
    std::vector<TensorId> outputs;
    for (const OnnxValue &output : graph.outputs) {
        outputs.push_back(find(output.name));
        if (!outputs.back())
            return error(ErrorCode::InvalidInput,
                "the inner graph '" + graph.name + "' returns '" + output.name + "', which nothing makes",
                "export the model anew");
    }
    return outputs;
}

Result<std::vector<TensorId>> Importer::collectOutputs()
{
    std::vector<TensorId> outputs;
    if (m_model.graph.outputs.empty())
        return error(
            ErrorCode::InvalidInput, "the model returns nothing", "name its outputs when exporting it");
    for (const OnnxValue &output : m_model.graph.outputs) {
        TensorId id = find(output.name);
        if (!id && findSequence(output.name) != nullptr)
            return error(ErrorCode::NotSupported,
                "the model returns '" + output.name + "', a sequence of tensors",
                "export the model with tensors as outputs");
        if (!id)
            return error(ErrorCode::InvalidInput,
                "the model returns '" + output.name + "', which nothing makes", "export the model anew");
        if (elementCount(m_builder.typeOf(id).shape) == 0) {
            m_builder.note("the output '" + output.name + "' has no elements ("
                + toString(m_builder.typeOf(id).shape) + "), and is left out");
            continue;
        }
        if (output.name == wantedLoss()) {
            TRY(id, m_builder.scalarOf(id, output.name));
        }
        if (m_builder.at(id).role != TensorRole::Activation) {
            // A returned value has an operator that makes it, even if it is a constant or an input.
            m_builder.unname(id);
            const std::string name = "output." + output.name;
            const SourceNode source{"", "Identity"};
            auto copy = m_builder.emit(name, source, OperatorKind::Identity, {}, {id}, {}, false);
            if (!copy && !m_builder.maySkip(copy.error()))
                return std::move(copy).error();
            id = copy ? copy->front() : m_builder.emitOpaque(name, source, {id}, 1, &copy.error()).front();
            m_builder.nameTensor(id, output.name);
        }
        if (std::find(outputs.begin(), outputs.end(), id) != outputs.end())
            return error(ErrorCode::InvalidInput, "the model returns '" + output.name + "' twice",
                "export the model anew");
        outputs.push_back(id);
        const TensorType &type = m_builder.typeOf(id);
        if (!m_builder.at(id).typeKnown)
            continue;
        bool differs = output.dataType && *output.dataType != type.dataType;
        if (output.shape && output.name != wantedLoss()) {
            differs = differs || output.shape->size() != type.shape.size();
            for (std::size_t i = 0; !differs && i < type.shape.size(); ++i)
                differs = (*output.shape)[i].size && *(*output.shape)[i].size != type.shape[i];
        }
        if (differs)
            m_builder.note("the output '" + output.name + "' is " + nameOf(type.dataType)
                + toString(type.shape) + ", not what the file declares");
    }
    if (outputs.empty())
        return error(ErrorCode::InvalidInput, "no output of the model has elements",
            "give larger sizes to its open dimensions, with --dim");
    return outputs;
}

Result<void> Importer::chooseLoss(Graph &graph) const
{
    const std::string wanted = wantedLoss();
    for (const TensorId id : graph.outputs) {
        const Tensor &tensor = graph.at(id);
        if (tensor.name != wanted || !tensor.typeKnown)
            continue;
        if (isFloating(tensor.type.dataType) && tensor.type.shape.empty()) {
            graph.loss = id;
            return {};
        }
        if (m_options.lossOutput.empty()) {
            graph.notes.push_back("the output 'loss' is no scalar number, so the model has no loss");
            return {};
        }
        return error(ErrorCode::InvalidInput,
            "the output '" + wanted + "' is " + nameOf(tensor.type.dataType) + toString(tensor.type.shape)
                + ", where a loss must be a floating scalar",
            "name another output with --loss");
    }
    if (m_options.lossOutput.empty())
        return {};
    if (m_options.look)
        return {};
    std::string names;
    for (const TensorId id : graph.outputs)
        names += (names.empty() ? "'" : ", '") + graph.at(id).name + "'";
    return error(ErrorCode::NotFound, "the model has no output '" + wanted + "' to train on",
        "its outputs are " + names);
}

void Importer::addNotes()
{
    if (m_model.opset > kNewestOpset)
        m_builder.note("operator set " + std::to_string(m_model.opset) + " is newer than "
            + std::to_string(kNewestOpset) + ": operators that changed since may be read wrongly");
    for (const auto &[file, count] : m_missing)
        m_builder.note(std::to_string(count) + " tensors lie in '" + file
            + "', which is missing or too short: the model can be planned, a run draws them from its seed "
              "(on the command line with --random-weights)");
    if (!m_nonFinite.empty())
        m_builder.note("'" + m_nonFinite.front() + "'"
            + (m_nonFinite.size() > 1
                    ? " and " + std::to_string(m_nonFinite.size() - 1) + " more tensors hold"
                    : " holds")
            + " values that are NaN or infinite");
}

Result<Graph> Importer::run()
{
    if (m_model.opset < kOldestOpset)
        return error(ErrorCode::NotSupported,
            m_model.opset < 1 ? "the file does not say which operator set it uses"
                              : "the file uses operator set " + std::to_string(m_model.opset)
                    + ", where 7 or newer was expected",
            "export the model anew, with operator set 17");
    if (m_options.dropoutRatio && !(*m_options.dropoutRatio >= 0 && *m_options.dropoutRatio < 1))
        return error(ErrorCode::InvalidInput,
            "the dropout ratio " + std::to_string(*m_options.dropoutRatio) + " is not in [0, 1)",
            "give a number such as 0.1");
    for (const OnnxFunction &function : m_model.functions)
        m_functions.emplace(std::pair(function.domain, function.name), &function);
    for (const std::string &note : restoreFromMetadata(m_model.graph, m_options.storedAs))
        m_builder.note(note);
    Frame frame;
    frame.isModel = true;
    TRY(frame.facts, factsOf(m_model.graph));
    m_frame = &frame;
    const ParameterRules rules(m_model.graph, frame.facts->uses, m_options.storedAs);
    m_rules = &rules;
    TRY(m_dimensions, openDimensionsOf(m_model.graph).resolve(m_options.dimensions, m_name));
    m_sizes = sizesOf(m_dimensions);
    TRY_VOID(addInputs(rules));
    TRY_VOID(addInitializers(rules));
    TRY_VOID(importNodes(m_model.graph));
    TRY(auto outputs, collectOutputs());
    TRY_VOID(m_builder.checkChosenOutputs(outputs));
    addNotes();
    Graph graph = m_builder.take(std::move(outputs));
    graph.name = m_model.graph.name;
    graph.dimensions = std::move(m_dimensions);
    TRY_VOID(chooseLoss(graph));
    return graph;
}

Result<Graph> importNamed(std::string_view bytes, const std::filesystem::path &folder,
    const ImportOptions &options, const std::string &place, const std::string &name)
{
    if (bytes.size() > options.mostFileBytes)
        return Error{ErrorCode::ResourceLimit,
            "the file has " + std::to_string(bytes.size()) + " bytes, more than the "
                + std::to_string(options.mostFileBytes) + " that are allowed",
            "store the weights as external data", place};
    TRY(OnnxModel model, readOnnx(bytes, folder, place));
    TRY(Graph graph, importOnnxModel(std::move(model), options, place));
    if (!name.empty())
        graph.name = name;
    return completeImport(std::move(graph), options, true);
}

Result<std::string> readModel(const std::filesystem::path &path, const ImportOptions &options)
{
    auto bytes = readFile(path, {.what = "model file", .mostBytes = options.mostFileBytes});
    if (!bytes) {
        Error error = std::move(bytes).error();
        error.where = path.filename().string();
        if (error.code == ErrorCode::ResourceLimit)
            error.advice = "store the weights as external data";
        else if (error.code == ErrorCode::NotFound || error.code == ErrorCode::InvalidInput)
            error.advice = "give the path of a model file (.onnx, .pt2)";
        return error;
    }
    return bytes;
}

std::filesystem::path folderOf(const std::filesystem::path &path)
{
    return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

} // namespace

Result<Graph> importOnnxModel(OnnxModel model, const ImportOptions &options, const std::string &place)
{
    return Importer(std::move(model), options, place).run();
}

Result<std::vector<InputDimension>> onnxDimensions(std::string_view bytes,
    const std::filesystem::path &folder, const ImportOptions &options, const std::string &name)
{
    TRY(const OnnxModel model, readOnnx(bytes, folder, name));
    return openDimensionsOf(model.graph).resolve(options.dimensions, name, OpenDimensions::Missing::Left);
}

Result<std::vector<InputDimension>> onnxFileDimensions(
    const std::filesystem::path &path, const ImportOptions &options)
{
    TRY(const std::string bytes, readModel(path, options));
    return onnxDimensions(bytes, folderOf(path), options, path.filename().string());
}

Result<Graph> importOnnxFile(const std::filesystem::path &path, const ImportOptions &options)
{
    TRY(const std::string bytes, readModel(path, options));
    return importNamed(bytes, folderOf(path), options, path.filename().string(), path.stem().string());
}

Result<Graph> importOnnxBytes(std::string_view bytes, const std::filesystem::path &folder,
    const ImportOptions &options, const std::string &name)
{
    return importNamed(bytes, folder, options, name, {});
}

} // namespace planloom
