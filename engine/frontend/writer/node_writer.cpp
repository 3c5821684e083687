#include "engine/frontend/writer/node_writer.h"

#include "engine/graph/operator_files/custom_operator.h"

#include <algorithm>

namespace planloom {

namespace {

/// "/transformer/h.3/attn/Gemm" -> "transformer.h.3.attn.Gemm".
std::string operatorNameOf(std::string name)
{
    name.erase(0, std::min(name.find_first_not_of('/'), name.size()));
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

std::string withSuffix(const std::string &name, std::string_view suffix)
{
    return suffix.empty() ? name : name + "_" + std::string(suffix);
}

} // namespace

NodeWriter::NodeWriter(
    GraphWriter &graph, ValueScope &scope, SourceNode source, std::vector<std::string> results)
    : m_graph(graph)
    , m_scope(&scope)
    , m_name(operatorNameOf(source.name))
    , m_source(std::move(source))
    , m_results(std::move(results))
{
    if (m_name.empty())
        m_name = graph.names().nameless(m_source.type);
}

NodeWriter NodeWriter::part(std::string_view suffix, std::size_t results) const
{
    NodeWriter made = *this;
    made.m_scope = nullptr;
    made.m_name = withSuffix(m_name, suffix);
    made.m_results.clear();
    for (std::size_t slot = 0; slot < results; ++slot)
        made.m_results.push_back(partName(suffix, slot));
    made.m_bound.clear();
    return made;
}

std::string NodeWriter::partName(std::string_view suffix, std::size_t slot) const
{
    const bool isNamed = slot < m_results.size() && !m_results[slot].empty();
    return withSuffix(isNamed ? m_results[slot] : m_source.name + "." + std::to_string(slot), suffix);
}

bool NodeWriter::wants(std::size_t slot) const
{
    return slot < m_results.size() && !m_results[slot].empty()
        && (m_scope == nullptr || m_scope->isUsed(m_results[slot]));
}

std::optional<TensorType> NodeWriter::declaredType(std::size_t slot) const
{
    return m_scope == nullptr ? std::nullopt : m_scope->declaredType(m_results[slot]);
}

Result<std::vector<TensorId>> NodeWriter::makeMany(OperatorKind kind, std::vector<TensorId> inputs,
    Attributes attributes, std::vector<TensorType> declared, std::string_view suffix)
{
    return m_graph.emit(withSuffix(m_name, suffix), m_source, kind, std::move(attributes), std::move(inputs),
        std::move(declared));
}

Result<TensorId> NodeWriter::make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared, std::string_view suffix)
{
    std::vector<TensorType> types;
    if (declared)
        types.push_back(*std::move(declared));
    TRY(const auto outputs,
        makeMany(kind, std::move(inputs), std::move(attributes), std::move(types), suffix));
    return outputs.front();
}

Result<void> NodeWriter::bind(std::size_t slot, TensorId tensor)
{
    if (slot >= m_results.size() || m_results[slot].empty())
        return {};
    const std::string &value = m_results[slot];
    const bool isNamed = m_graph.nameTensor(tensor, value);
    if (m_scope == nullptr) {
        m_bound[slot] = tensor;
        return {};
    }
    if (!isNamed && m_scope->isOutput(value)) {
        TRY(const auto copy, m_graph.emit(m_name, m_source, OperatorKind::Identity, {}, {tensor}, {}, false));
        tensor = copy.front();
        m_graph.nameTensor(tensor, value);
    }
    return m_scope->bind(value, tensor);
}

Result<void> NodeWriter::bindAll(const std::vector<TensorId> &tensors)
{
    for (std::size_t slot = 0; slot < tensors.size(); ++slot)
        TRY_VOID(bind(slot, tensors[slot]));
    return {};
}

Result<TensorId> NodeWriter::reshape(TensorId x, Shape shape, std::string_view suffix)
{
    const TensorType type = typeOf(x);
    if (type.shape == shape)
        return x;
    return make(OperatorKind::Reshape, {x}, {}, TensorType{type.dataType, std::move(shape)}, suffix);
}

Result<void> NodeWriter::makeDefined(const std::shared_ptr<const OperatorDefinition> &definition,
    std::vector<TensorId> inputs, const Attributes &attributes)
{
    const std::string place = definition->file + ", line " + std::to_string(definition->line);
    if (inputs.size() > definition->inputs.size() || m_results.size() > definition->outputs.size())
        return invalid("it has " + std::to_string(inputs.size()) + " inputs and "
                + std::to_string(m_results.size()) + " outputs, where " + place + ", says "
                + std::to_string(definition->inputs.size()) + " and "
                + std::to_string(definition->outputs.size()),
            "change the lines 'inputs' and 'outputs' of the operator file");
    inputs.resize(definition->inputs.size());
    auto completed = completedAttributes(definition, attributes);
    if (!completed)
        return invalid(completed.error().message, completed.error().advice);
    m_graph.note("operators of type " + toString(definition->name) + " are as " + place + ", says");
    TRY(auto outputs, makeMany(OperatorKind::Custom, std::move(inputs), *std::move(completed)));
    outputs.resize(m_results.size());
    return bindAll(outputs);
}

Result<void> NodeWriter::keepUnknown(
    const std::string &type, std::vector<TensorId> inputs, Attributes attributes, std::string_view reason)
{
    std::size_t count = m_results.size();
    while (count > 0 && !wants(count - 1))
        --count;
    if (count == 0)
        return {}; // nothing uses it
    std::vector<TensorType> types;
    for (std::size_t slot = 0; slot < count; ++slot) {
        auto declared = declaredType(slot);
        if (!declared)
            return unsupported(
                std::string(reason) + ", and the file does not say what type '" + m_results[slot] + "' has",
                std::string(kDescribeIt)
                    + ", or add value_info with static shapes to the model "
                      "(onnx.shape_inference.infer_shapes)");
        types.push_back(*std::move(declared));
    }
    attributes.set("onnx_type", type);
    m_graph.note("operators of type " + m_source.type
        + " can be planned and simulated, not run: " + std::string(reason) + "; " + kDescribeIt);
    TRY(const auto outputs,
        makeMany(OperatorKind::Unknown, std::move(inputs), std::move(attributes), std::move(types)));
    return bindAll(outputs);
}

void NodeWriter::keepOpaque(std::vector<TensorId> inputs, const Error *why)
{
    const auto outputs = m_graph.emitOpaque(m_name, m_source, std::move(inputs), m_results.size(), why);
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        if (m_results[slot].empty())
            continue;
        m_graph.nameTensor(outputs[slot], m_results[slot]);
        static_cast<void>(m_scope->bind(m_results[slot], outputs[slot]));
    }
}

Result<std::int64_t> NodeWriter::axis(std::int64_t value, std::int64_t rank) const
{
    if (value < -rank || value >= rank)
        return invalid("axis " + std::to_string(value) + " was given for a value of " + std::to_string(rank)
            + " dimensions");
    return value < 0 ? value + rank : value;
}

Result<void> NodeWriter::require(const std::vector<TensorId> &inputs) const
{
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        if (!inputs[slot])
            return invalid("input " + std::to_string(slot) + " is missing");
    }
    return {};
}

Error NodeWriter::invalid(std::string message, std::string advice) const
{
    return Error{ErrorCode::InvalidInput,
        "node '" + m_name + "' (" + m_source.type + "): " + std::move(message),
        advice.empty() ? "export the model anew" : std::move(advice), "node:" + m_name};
}

Error NodeWriter::unsupported(std::string message, std::string advice) const
{
    Error error = invalid(std::move(message), std::move(advice));
    error.code = ErrorCode::NotSupported;
    return error;
}

} // namespace planloom
