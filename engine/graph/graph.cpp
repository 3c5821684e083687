#include "engine/graph/graph.h"

namespace planloom {

namespace {

/// Appends `op` to the list of every tensor in `slots`, once.
void record(std::vector<std::vector<OperatorId>> &lists, const std::vector<TensorId> &slots, OperatorId op)
{
    for (const TensorId tensor : slots) {
        if (!tensor.valid())
            continue;
        auto &list = lists[static_cast<std::size_t>(tensor.index)];
        if (list.empty() || list.back() != op)
            list.push_back(op);
    }
}

} // namespace

Uses usesOf(const Graph &graph)
{
    Uses uses;
    uses.producers.resize(graph.tensors.size());
    uses.consumers.resize(graph.tensors.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        record(uses.consumers, graph.operators[i].inputs, op);
        record(uses.producers, graph.operators[i].outputs, op);
    }
    return uses;
}

std::vector<Combination> combinationsOf(const Graph &graph)
{
    std::vector<Combination> combinations(graph.tensors.size(), Combination::Sum);
    for (const Operator &op : graph.operators)
        for (std::size_t slot = 0; slot < op.annotation.combinations.size(); ++slot)
            if (op.outputs[slot])
                combinations[static_cast<std::size_t>(op.outputs[slot].index)] =
                    op.annotation.combinations[slot];
    return combinations;
}

std::vector<TensorId> weightTensorsOf(const Graph &graph)
{
    std::vector<TensorId> weights(graph.tensors.size());
    for (const Operator &op : graph.operators)
        for (std::size_t slot = 0; slot < op.annotation.combinations.size(); ++slot)
            if (const std::int32_t by = weightsOf(op.annotation, slot); by >= 0 && op.outputs[slot])
                weights[static_cast<std::size_t>(op.outputs[slot].index)] =
                    op.outputs[static_cast<std::size_t>(by)];
    return weights;
}

std::string pathOf(const Graph &graph, ScopeId scope)
{
    std::string path;
    for (; scope.index > 0; scope = graph.at(scope).parent)
        path = path.empty() ? graph.at(scope).name : graph.at(scope).name + '.' + path;
    return path;
}

const Shape &shapeInFiles(const Graph &graph, TensorId id)
{
    const Tensor &tensor = graph.at(id);
    if (!tensor.fileShape.empty() || !tensor.of)
        return tensor.fileShape.empty() ? tensor.type.shape : tensor.fileShape;
    // What belongs to a weight names the weight itself.
    const Tensor &weight = graph.at(tensor.of);
    return weight.type.shape == tensor.type.shape && !weight.fileShape.empty() ? weight.fileShape
                                                                               : tensor.type.shape;
}

const std::string &nameInFiles(const Tensor &tensor)
{
    return tensor.filePart ? tensor.filePart->name : tensor.name;
}

std::vector<TensorId> storedTensors(const Graph &graph)
{
    std::vector<TensorId> stored;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor &tensor = graph.tensors[i];
        const bool persists = tensor.role == TensorRole::Weight || tensor.role == TensorRole::Buffer;
        if (tensor.classification && (persists || tensor.role == TensorRole::Input))
            stored.push_back(TensorId{static_cast<std::int32_t>(i)});
    }
    return stored;
}

bool fitsFilePart(const Tensor &tensor)
{
    if (!tensor.filePart)
        return true;
    const FilePart &part = *tensor.filePart;
    const Shape &own = tensor.fileShape.empty() ? tensor.type.shape : tensor.fileShape;
    if (part.name.empty() || part.shape.size() != own.size() || part.axis < 0
        || static_cast<std::size_t>(part.axis) >= own.size())
        return false;
    for (std::size_t d = 0; d < own.size(); ++d) {
        const bool along = d == static_cast<std::size_t>(part.axis);
        if (along ? part.begin < 0 || part.begin > part.shape[d] - own[d] : part.shape[d] != own[d])
            return false;
    }
    return true;
}

FileRuns runsInFile(const Tensor &tensor)
{
    const Shape &own = tensor.fileShape.empty() ? tensor.type.shape : tensor.fileShape;
    if (!tensor.filePart)
        return {1, elementCount(own), 0, elementCount(own)};
    const FilePart &part = *tensor.filePart;
    const auto axis = static_cast<std::size_t>(part.axis);
    FileRuns runs;
    std::int64_t inner = 1;
    for (std::size_t d = 0; d < own.size(); ++d) {
        if (d < axis)
            runs.count *= own[d];
        else if (d > axis)
            inner *= own[d];
    }
    runs.length = own[axis] * inner;
    runs.first = part.begin * inner;
    runs.stride = part.shape[axis] * inner;
    return runs;
}

std::vector<TensorType> typesOf(const Graph &graph, const std::vector<TensorId> &tensors)
{
    std::vector<TensorType> types;
    types.reserve(tensors.size());
    for (const TensorId id : tensors)
        types.push_back(id ? graph.at(id).type : TensorType{});
    return types;
}

std::vector<bool> presentAmong(const std::vector<TensorId> &tensors)
{
    std::vector<bool> present;
    for (const TensorId id : tensors)
        present.push_back(id.valid());
    return present;
}

} // namespace planloom
