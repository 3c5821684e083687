#include "engine/frontend/passes/batch/replacement_writer.h"

#include "engine/frontend/writer/graph_writer.h"
#include "engine/graph/operators/catalogue.h"

#include <utility>

namespace planloom {

ReplacementWriter::ReplacementWriter(
    Graph &graph, const Operator &op, UniqueNames &tensorNames, UniqueNames &operatorNames)
    : m_graph(graph)
    , m_name(op.name)
    , m_scope(op.scope)
    , m_sources(op.sources)
    , m_tensorNames(tensorNames)
    , m_operatorNames(operatorNames)
{
}

void ReplacementWriter::fail(Error error)
{
    if (!m_failure)
        m_failure = std::move(error);
}

std::vector<TensorId> ReplacementWriter::add(const std::string &suffix, OperatorKind kind,
    std::vector<TensorId> inputs, Attributes attributes, std::vector<TensorType> declared)
{
    auto inferred = inferTypes(kind, attributes, typesOf(m_graph, inputs), presentAmong(inputs), declared);
    if (!inferred) {
        fail(inferred.error());
        return std::vector<TensorId>(attributes.integers("sizes").size() + 1, inputs.front());
    }
    Operator op;
    op.name = m_operatorNames.take(m_name + "_" + suffix);
    op.kind = kind;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    op.scope = m_scope;
    op.sources = m_sources;
    for (TensorType &type : *inferred) {
        Tensor tensor;
        tensor.name = m_tensorNames.take(op.name + "_output_" + std::to_string(op.outputs.size()));
        tensor.type = std::move(type);
        op.outputs.push_back({static_cast<std::int32_t>(m_graph.tensors.size())});
        m_graph.tensors.push_back(std::move(tensor));
    }
    m_operators.push_back(std::move(op));
    return m_operators.back().outputs;
}

TensorId ReplacementWriter::one(const std::string &suffix, OperatorKind kind, std::vector<TensorId> inputs,
    Attributes attributes, std::vector<TensorType> declared)
{
    return add(suffix, kind, std::move(inputs), std::move(attributes), std::move(declared)).front();
}

TensorId ReplacementWriter::reshape(const std::string &suffix, TensorId x, Shape shape)
{
    if (m_graph.at(x).type.shape == shape)
        return x;
    const DataType type = m_graph.at(x).type.dataType;
    return one(suffix, OperatorKind::Reshape, {x}, {}, {TensorType{type, std::move(shape)}});
}

std::vector<TensorId> ReplacementWriter::split(
    const std::string &suffix, TensorId x, std::size_t axis, std::vector<std::int64_t> sizes)
{
    if (sizes.size() == 1)
        return {x};
    return add(suffix, OperatorKind::Split, {x},
        attributesFrom({{"axis", static_cast<std::int64_t>(axis)}, {"sizes", std::move(sizes)}}));
}

TensorId ReplacementWriter::concat(const std::string &suffix, std::vector<TensorId> parts, std::size_t axis)
{
    if (parts.size() == 1)
        return parts.front();
    return one(suffix, OperatorKind::Concat, std::move(parts),
        attributesFrom({{"axis", static_cast<std::int64_t>(axis)}}));
}

TensorId ReplacementWriter::sum(const std::string &suffix, TensorId a, TensorId b)
{
    if (!a || !b)
        return a ? a : b;
    return one(suffix, OperatorKind::Add, {a, b});
}

} // namespace planloom
