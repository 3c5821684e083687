#include "engine/graph/operators/storage_types.h"

#include "engine/graph/operators/kind_entry.h"
#include "engine/graph/operators/weight_update.h"

#include <algorithm>

namespace planloom {

namespace {

std::uint32_t bitOf(DataType type)
{
    return 1u << static_cast<std::uint32_t>(type);
}

bool isStatisticOutput(OperatorKind kind, std::size_t slot)
{
    const std::vector<std::size_t> &statistics = entryOf(kind).marks.statistics;
    return std::find(statistics.begin(), statistics.end(), slot) != statistics.end();
}

/// Inputs that are statistics although nobody in the graph computes them: what a batch norm kept of training.
bool isStatisticInput(OperatorKind kind, std::size_t slot)
{
    return kind == OperatorKind::BatchNormalize && (slot == 1 || slot == 2);
}

DataType widest(DataType a, DataType b)
{
    if (a == b)
        return a;
    if (sizeOf(a) != sizeOf(b))
        return sizeOf(a) > sizeOf(b) ? a : b;
    return DataType::Float32; // neither 16-bit type holds the other
}

} // namespace

StorageTypes::StorageTypes(const Graph &graph, const std::vector<Precision> &precisions)
    : m_keeps(graph.tensors.size(), false)
    , m_constant(graph.operators.size(), false)
    , m_read(graph.operators.size())
    , m_made(graph.operators.size())
    , m_readTypes(graph.tensors.size(), 0)
    , m_modelTypes(graph.tensors.size(), 0)
    , m_madeTypes(graph.tensors.size(), 0)
{
    const Uses uses = usesOf(graph);
    if (!precisions.empty())
        findFloat32(graph, uses);
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const bool updates = op.direction == Direction::Optimizer;
        DataType own = DataType::Float32;
        if (!precisions.empty() && !m_constant[o])
            own = updates ? precisions[o].optimizer : precisions[o].storage;
        const auto typed = [&](TensorId tensor) {
            if (!tensor)
                return DataType::Float32;
            const DataType type = graph.at(tensor).type.dataType;
            return type != DataType::Float32 || m_keeps[at(tensor)] ? type : own;
        };
        for (const TensorId input : op.inputs) {
            m_read[o].push_back(typed(input));
            if (!input)
                continue;
            m_readTypes[at(input)] |= bitOf(m_read[o].back());
            if (!updates)
                m_modelTypes[at(input)] |= bitOf(m_read[o].back());
        }
        for (const TensorId output : op.outputs) {
            m_made[o].push_back(typed(output));
            if (output)
                m_madeTypes[at(output)] |= bitOf(m_made[o].back());
        }
    }
    findSettings(graph, uses, precisions);
}

void StorageTypes::findFloat32(const Graph &graph, const Uses &uses)
{
    const auto isFloat32 = [&](TensorId tensor) {
        return tensor && graph.at(tensor).type.dataType == DataType::Float32;
    };
    std::vector<bool> constant(graph.tensors.size(), false);
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const Tensor &tensor = graph.tensors[t];
        const bool scalar = tensor.type.shape.empty();
        m_keeps[t] = scalar || isLossGradient(graph, TensorId{static_cast<std::int32_t>(t)});
        constant[t] = tensor.role == TensorRole::Buffer && uses.producers[t].empty() && !m_keeps[t];
    }
    for (std::size_t o = 0; o < graph.operators.size(); ++o) { // forward ones come before what reads them
        const Operator &op = graph.operators[o];
        if (op.direction != Direction::Forward)
            continue;
        bool statistics = false;
        bool others = false;
        bool constants = true;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            if (!input)
                continue;
            if (isStatisticInput(op.kind, slot))
                m_keeps[at(input)] = true;
            const bool scalarConstant = graph.at(input).type.shape.empty()
                && graph.at(input).role == TensorRole::Buffer && uses.producers[at(input)].empty();
            constants = constants && (constant[at(input)] || scalarConstant);
            if (!isFloat32(input) || graph.at(input).type.shape.empty())
                continue;
            (m_keeps[at(input)] ? statistics : others) = true;
        }
        m_constant[o] = constants;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const TensorId output = op.outputs[slot];
            if (!output)
                continue;
            if (isStatisticOutput(op.kind, slot) || (statistics && !others))
                m_keeps[at(output)] = true;
            constant[at(output)] = constants;
        }
    }
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        // A gradient of a gradient's tensor does not exist: one step is enough.
        const Tensor &tensor = graph.tensors[t];
        if (tensor.role == TensorRole::Gradient && tensor.of && m_keeps[at(tensor.of)])
            m_keeps[t] = true;
    }
    // What an optimizer makes of a weight is that weight again.
    for (const Operator &op : graph.operators) {
        if (!updatesWeight(op))
            continue;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (const TensorId old = op.inputs[slot == 0 ? 0 : slot + 1]; op.outputs[slot] && old)
                m_keeps[at(op.outputs[slot])] = m_keeps[at(old)];
    }
}

void StorageTypes::findSettings(
    const Graph &graph, const Uses &uses, const std::vector<Precision> &precisions)
{
    const auto readIn = [&](OperatorId op, TensorId tensor) {
        const auto &inputs = graph.at(op).inputs;
        return read(
            op, static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), tensor) - inputs.begin()));
    };
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const TensorId id{static_cast<std::int32_t>(t)};
        const Tensor &tensor = graph.tensors[t];
        const auto &consumers = uses.consumers[t];
        const auto updater = std::find_if(
            consumers.begin(), consumers.end(), [&](OperatorId op) { return updatesWeight(graph.at(op)); });
        DataType carried = tensor.type.dataType;
        bool first = true;
        for (const OperatorId producer : uses.producers[t]) {
            const Operator &op = graph.at(producer);
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
                if (op.outputs[slot] != id)
                    continue;
                carried = first ? made(producer, slot) : widest(carried, made(producer, slot));
                first = false;
            }
        }
        if (uses.producers[t].empty() && !consumers.empty())
            carried = readIn(updater != consumers.end() ? *updater : consumers.front(), id);
        m_carried.push_back(carried);
        const bool gradient = tensor.role == TensorRole::Gradient && tensor.of
            && graph.at(tensor.of).role == TensorRole::Weight;
        const bool open = !precisions.empty() && tensor.type.dataType == DataType::Float32 && !m_keeps[t];
        if (!gradient || !open) {
            m_accumulated.push_back(carried);
            m_reduced.push_back(carried);
            continue;
        }
        // Where nobody applies it, its first maker decides.
        OperatorId decides{};
        if (updater != consumers.end())
            decides = *updater;
        else if (!uses.producers[t].empty())
            decides = uses.producers[t].front();
        m_accumulated.push_back(decides ? precisions[at(decides)].gradient : carried);
        m_reduced.push_back(decides ? precisions[at(decides)].reduction : carried);
    }
}

bool StorageTypes::isRead(TensorId tensor, DataType type) const
{
    return (m_readTypes[at(tensor)] & bitOf(type)) != 0;
}

void StorageTypes::addVersion(TensorId weight)
{
    const std::size_t w = at(weight);
    m_keeps.push_back(m_keeps[w]);
    for (auto *types : {&m_carried, &m_accumulated, &m_reduced})
        types->push_back((*types)[w]);
    for (auto *types : {&m_readTypes, &m_modelTypes, &m_madeTypes})
        types->push_back((*types)[w]);
}

bool StorageTypes::isReadByModel(TensorId tensor, DataType type) const
{
    return (m_modelTypes[at(tensor)] & bitOf(type)) != 0;
}

bool StorageTypes::isMaster(TensorId weight, DataType type) const
{
    return m_modelTypes[at(weight)] != 0 && !isReadByModel(weight, type);
}

bool StorageTypes::isMade(TensorId tensor, DataType type) const
{
    return (m_madeTypes[at(tensor)] & bitOf(type)) != 0;
}

double lossScaleOf(const Graph &graph, const std::vector<Precision> &precisions)
{
    if (precisions.empty() || !graph.loss)
        return 1;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const auto &outputs = graph.operators[o].outputs;
        if (std::find(outputs.begin(), outputs.end(), graph.loss) != outputs.end())
            return precisions[o].lossScale;
    }
    return 1;
}

bool isLossGradient(const Graph &graph, TensorId tensor)
{
    const Tensor &info = graph.at(tensor);
    return info.role == TensorRole::Buffer && info.of && info.of == graph.loss;
}

} // namespace planloom
