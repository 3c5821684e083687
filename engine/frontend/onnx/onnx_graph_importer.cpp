#include "engine/frontend/onnx/onnx_graph_importer.h"

#include "engine/frontend/onnx/onnx_order.h"

#include <utility>

namespace planloom {

namespace {

constexpr int kDeepestFunction = 32; ///< Functions that call functions.
constexpr std::int64_t kMostInlined = 100'000; ///< Graphs of If and Loop imported in place.

/// Sees the names of another graph until it ends, errors included.
template<typename Frame> class Entered
{
public:
    Entered(Frame *&current, Frame &inner)
        : m_current(current)
        , m_outer(std::exchange(current, &inner))
    {
    }
    Entered(const Entered &) = delete;
    Entered &operator=(const Entered &) = delete;
    ~Entered() { m_current = m_outer; }

private:
    Frame *&m_current;
    Frame *m_outer;
};

/// The graph of a function as a node calls it: its nodes are called as parts of that, and have the values of
/// its attributes where they refer to them.
std::unique_ptr<OnnxGraph> bodyOf(const OnnxFunction &function, const OnnxNode &node)
{
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
    return graph;
}

std::string callText(const OnnxNode &node)
{
    return "node '" + node.name + "' calls the function '" + node.type + "'";
}

} // namespace

OnnxGraphImporter::Facts::Facts(const OnnxGraph &graph)
    : uses(graph)
{
    for (const auto *list : {&graph.values, &graph.outputs, &graph.inputs}) {
        for (const OnnxValue &value : *list)
            declared.emplace(value.name, &value);
    }
}

OnnxGraphImporter::OnnxGraphImporter(const OnnxModel &model, GraphWriter &writer, std::string place)
    : m_model(model)
    , m_writer(writer)
    , m_place(std::move(place))
{
    for (const OnnxFunction &function : model.functions)
        m_functions.emplace(std::pair(function.domain, function.name), &function);
}

Result<void> OnnxGraphImporter::begin()
{
    TRY(m_outermost.facts, factsOf(m_model.graph));
    return {};
}

std::optional<TensorType> OnnxGraphImporter::declaredType(const std::string &value) const
{
    const auto found = m_frame->facts->declared.find(value);
    const OnnxValue *declared = found == m_frame->facts->declared.end() ? nullptr : found->second;
    if (declared == nullptr || !declared->dataType || !declared->shape)
        return std::nullopt;
    TensorType type{*declared->dataType, {}};
    const auto &sizes = m_writer.options().dimensions;
    for (const OnnxDimension &dimension : *declared->shape) {
        const auto given = sizes.find(dimension.symbol);
        if (dimension.size ? *dimension.size <= 0 : given == sizes.end())
            return std::nullopt;
        type.shape.push_back(dimension.size ? *dimension.size : given->second);
    }
    return type;
}

Result<const OnnxGraphImporter::Facts *> OnnxGraphImporter::factsOf(const OnnxGraph &graph)
{
    auto &facts = m_facts[&graph];
    if (!facts) {
        facts = std::make_unique<Facts>(graph);
        TRY(facts->order, orderOfNodes(graph));
    }
    return static_cast<const Facts *>(facts.get());
}

TensorId OnnxGraphImporter::find(const std::string &value) const
{
    for (const Frame *frame = m_frame; frame != nullptr; frame = frame->outer) {
        if (const auto found = frame->values.find(value); found != frame->values.end())
            return found->second;
    }
    return {};
}

const std::vector<TensorId> *OnnxGraphImporter::findSequence(const std::string &value) const
{
    for (const Frame *frame = m_frame; frame != nullptr; frame = frame->outer) {
        if (const auto found = frame->sequences.find(value); found != frame->sequences.end())
            return &found->second;
    }
    return nullptr;
}

Result<void> OnnxGraphImporter::bindSequence(const std::string &value, std::vector<TensorId> sequence)
{
    if (m_frame->values.count(value) != 0 || !m_frame->sequences.emplace(value, std::move(sequence)).second)
        return error(
            ErrorCode::InvalidInput, "the value '" + value + "' is made twice", "export the model anew");
    return {};
}

Result<void> OnnxGraphImporter::bind(const std::string &value, TensorId tensor)
{
    if (!m_frame->values.emplace(value, tensor).second)
        return error(
            ErrorCode::InvalidInput, "the value '" + value + "' is made twice", "export the model anew");
    return {};
}

Result<void> OnnxGraphImporter::importNodes(const OnnxGraph &graph)
{
    for (const std::size_t position : m_frame->facts->order) {
        const OnnxNode &node = graph.nodes[position];
        if ((++m_nodes & 0xff) == 0 && m_writer.options().stop.stop_requested())
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
        OnnxNodeContext context(node, inputs, m_writer, *this);
        if (m_writer.areOpaque(inputs)) {
            context.keepOpaque(inputs, nullptr);
            continue;
        }
        const auto called = importCall(node, inputs);
        const auto imported = called && !*called ? importNode(context)
            : called                             ? Result<void>{}
                                                 : Result<void>(called.error());
        if (!imported && !m_writer.maySkip(imported.error()))
            return imported.error();
        if (!imported)
            context.keepOpaque(inputs, &imported.error());
    }
    return {};
}

/// Imports a call of a function that the file defines. @return false if the node is no such call
Result<bool> OnnxGraphImporter::importCall(const OnnxNode &node, const std::vector<TensorId> &inputs)
{
    const auto &files = m_writer.options().operators;
    const auto found = m_functions.find({node.domain, node.type});
    if (found == m_functions.end() || (files && files->find(node.domain, node.type)))
        return false;
    const OnnxFunction &function = *found->second;
    m_calledNodes += function.graph.nodes.size();
    const bool tooMany = ++m_inlined > kMostInlined || m_calledNodes > m_writer.options().mostOperators;
    if (tooMany || m_functionDepth >= kDeepestFunction)
        return error(ErrorCode::ResourceLimit,
            callText(node) + ", which lies deeper than " + std::to_string(kDeepestFunction)
                + " calls, or among too many",
            "");
    if (inputs.size() > function.graph.inputs.size() || node.outputs.size() > function.graph.outputs.size())
        return error(ErrorCode::InvalidInput,
            callText(node) + " with " + std::to_string(inputs.size()) + " inputs and "
                + std::to_string(node.outputs.size()) + " outputs, more than it has",
            "export the model anew");
    m_called.push_back(bodyOf(function, node));
    TRY(const auto outputs, callFunction(node, *m_called.back(), inputs));
    OnnxNodeContext context(node, inputs, m_writer, *this);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i])
            TRY_VOID(context.bind(i, outputs[i]));
    }
    return true;
}

/// Imports the graph of a function, which sees no names but its own. @return what it makes of the node's
/// outputs; invalid ids for absent ones
Result<std::vector<TensorId>> OnnxGraphImporter::callFunction(
    const OnnxNode &node, const OnnxGraph &body, const std::vector<TensorId> &inputs)
{
    Frame frame;
    TRY(frame.facts, factsOf(body));
    const Entered entered(m_frame, frame);
    struct Deeper {
        int &depth;
        ~Deeper() { --depth; }
    } const deeper{++m_functionDepth};
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
                callText(node) + ", which does not make '" + body.outputs[i].name + "'",
                "export the model anew");
    }
    return outputs;
}

Result<std::vector<TensorId>> OnnxGraphImporter::inlineGraph(
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
    const Entered entered(m_frame, frame);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        TRY_VOID(bind(graph.inputs[i].name, inputs[i]));
    for (const StoredTensor &tensor : graph.initializers) {
        if (tensor.name.empty() || frame.values.count(tensor.name) != 0)
            continue;
        TRY_VOID(bind(tensor.name, m_writer.addStored(tensor, TensorRole::Buffer)));
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

} // namespace planloom
