#include "engine/frontend/zoo/graph_builder.h"

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/passes/scopes/scopes.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cstring>

namespace planloom {

Attributes attributesOf(std::initializer_list<std::pair<std::string_view, Attribute>> values)
{
    Attributes attributes;
    for (const auto &[name, value] : values)
        attributes.set(name, value);
    return attributes;
}

namespace {

template<typename T>
std::shared_ptr<const TensorData> dataOf(DataType type, const Shape &shape, const std::vector<T> &values)
{
    assert(elementCount(shape) == static_cast<std::int64_t>(values.size()));
    auto data = std::make_shared<TensorData>();
    data->type = {type, shape};
    data->bytes.resize(values.size() * sizeof(T));
    if (!values.empty())
        std::memcpy(data->bytes.data(), values.data(), data->bytes.size());
    return data;
}

} // namespace

std::shared_ptr<const TensorData> floatData(const Shape &shape, const std::vector<float> &values)
{
    return dataOf(DataType::Float32, shape, values);
}

std::shared_ptr<const TensorData> integerData(const Shape &shape, const std::vector<std::int64_t> &values)
{
    return dataOf(DataType::Int64, shape, values);
}

GraphBuilder::GraphBuilder(std::string modelName)
{
    m_graph.name = std::move(modelName);
}

GraphBuilder::ScopedScope GraphBuilder::scope(std::string_view name)
{
    const ScopeId outer = m_scope;
    auto [found, inserted] = m_scopes.try_emplace({outer, std::string(name)});
    if (inserted) {
        found->second = ScopeId{static_cast<std::int32_t>(m_graph.scopes.size())};
        m_graph.scopes.push_back({.name = std::string(name), .parent = outer});
        m_prefixes.push_back(prefix() + std::string(name) + ".");
    }
    m_scope = found->second;
    return {*this, outer};
}

std::string GraphBuilder::prefix() const
{
    return m_prefixes[static_cast<std::size_t>(m_scope.index)];
}

std::string GraphBuilder::uniqueName(std::string name)
{
    for (;;) {
        const std::int32_t earlier = m_names[name]++;
        if (earlier == 0)
            return name;
        name += "_" + std::to_string(earlier);
    }
}

void GraphBuilder::fail(Error error)
{
    if (!m_failure)
        m_failure = std::move(error);
}

TensorId GraphBuilder::addTensor(
    std::string name, TensorType type, TensorRole role, std::shared_ptr<const TensorData> data)
{
    Tensor tensor;
    tensor.name = uniqueName(std::move(name));
    tensor.type = std::move(type);
    tensor.role = role;
    tensor.data = std::move(data);
    m_graph.tensors.push_back(std::move(tensor));
    return TensorId{static_cast<std::int32_t>(m_graph.tensors.size()) - 1};
}

TensorId GraphBuilder::input(std::string name, TensorType type)
{
    const TensorId id = addTensor(std::move(name), std::move(type), TensorRole::Input);
    m_graph.inputs.push_back(id);
    return id;
}

TensorId GraphBuilder::weight(std::string_view name, Shape shape, const std::vector<float> &values)
{
    auto data = values.empty() ? nullptr : floatData(shape, values);
    std::string full = prefix() + std::string(name);
    TensorId *shared = nullptr;
    if (m_sharing) {
        if (full.starts_with(*m_sharing))
            full.erase(0, full.find('.', m_sharing->size()) + 1);
        shared = &m_shared[full];
        if (shared->valid())
            return *shared;
    }
    const TensorId made = addTensor(
        std::move(full), {DataType::Float32, std::move(shape)}, TensorRole::Weight, std::move(data));
    if (shared)
        *shared = made;
    return made;
}

TensorId GraphBuilder::buffer(std::string_view name, Shape shape, const std::vector<float> &values)
{
    auto data = values.empty() ? nullptr : floatData(shape, values);
    return addTensor(prefix() + std::string(name), {DataType::Float32, std::move(shape)}, TensorRole::Buffer,
        std::move(data));
}

TensorId GraphBuilder::constant(std::string_view name, std::shared_ptr<const TensorData> data)
{
    assert(data);
    const TensorType type = data->type;
    return addTensor(prefix() + std::string(name), type, TensorRole::Buffer, std::move(data));
}

TensorId GraphBuilder::scalar(float value)
{
    auto [found, inserted] = m_scalars.try_emplace(value);
    if (inserted) {
        std::string digits = std::to_string(value);
        digits.erase(digits.find_last_not_of('0') + 1);
        found->second = addTensor(
            "scalar." + digits, {DataType::Float32, {}}, TensorRole::Buffer, floatData({}, {value}));
    }
    return found->second;
}

std::vector<TensorId> GraphBuilder::add(OperatorKind kind, std::vector<TensorId> inputs,
    Attributes attributes, std::string_view name, std::vector<TensorType> declared)
{
    const std::string wanted = prefix() + (name.empty() ? nameOf(kind) : std::string(name));
    if (!m_failure) {
        if (auto inferred =
                inferTypes(kind, attributes, typesOf(m_graph, inputs), presentAmong(inputs), declared)) {
            Operator op;
            op.name = uniqueName(wanted);
            op.kind = kind;
            op.attributes = std::move(attributes);
            op.inputs = std::move(inputs);
            op.scope = m_scope;
            for (std::size_t slot = 0; slot < inferred->size(); ++slot) {
                const std::string suffix = inferred->size() == 1 ? ".out" : ".out" + std::to_string(slot);
                op.outputs.push_back(
                    addTensor(op.name + suffix, std::move((*inferred)[slot]), TensorRole::Activation));
            }
            std::vector<TensorId> outputs = op.outputs;
            m_graph.operators.push_back(std::move(op));
            return outputs;
        } else {
            Error error = inferred.error();
            error.where = "operator:" + wanted;
            fail(std::move(error));
        }
    }
    const std::size_t sizes = attributes.integers("sizes").size();
    return std::vector<TensorId>(std::max<std::size_t>({4, sizes, declared.size()}));
}

TensorId GraphBuilder::one(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::string_view name, std::vector<TensorType> declared)
{
    return add(kind, std::move(inputs), std::move(attributes), name, std::move(declared)).front();
}

TensorId GraphBuilder::reshape(TensorId x, Shape shape, std::string_view name)
{
    const DataType type = x ? m_graph.at(x).type.dataType : DataType::Float32;
    return one(OperatorKind::Reshape, {x}, {}, name, {{type, std::move(shape)}});
}

Shape GraphBuilder::shape(TensorId id) const
{
    return id ? m_graph.at(id).type.shape : Shape{};
}

Result<Graph> GraphBuilder::finish(std::vector<TensorId> outputs, TensorId loss)
{
    Graph graph = std::exchange(m_graph, Graph{});
    const std::optional<Error> failure = std::exchange(m_failure, std::nullopt);
    m_scope = ScopeId{0};
    m_prefixes.assign(1, std::string{});
    m_scopes.clear();
    m_names.clear();
    m_scalars.clear();
    if (failure)
        return *failure;
    if (loss) {
        if (elementCount(graph.at(loss).type.shape) != 1)
            return Error{ErrorCode::InvalidInput,
                "The loss must be a scalar; " + graph.at(loss).name + " has shape "
                    + toString(graph.at(loss).type.shape) + "."};
        if (std::find(outputs.begin(), outputs.end(), loss) == outputs.end())
            outputs.push_back(loss);
    }
    if (std::find(outputs.begin(), outputs.end(), TensorId{}) != outputs.end())
        return Error{ErrorCode::InvalidInput, "An output of the model is not a tensor."};
    graph.outputs = std::move(outputs);
    graph.loss = loss;
    annotateOperators(graph);
    findCopies(graph);
    return graph;
}

} // namespace planloom
