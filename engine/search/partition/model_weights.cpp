#include "engine/search/partition/model_weights.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace planloom {

ModelWeights::ModelWeights(const AxisSetting &setting)
    : m_setting(setting)
    , m_graph(*setting.model->graph)
    , m_gradientOf(m_graph.tensors.size())
    , m_bytes(m_graph.tensors.size())
    , m_readers(m_graph.tensors.size(), 0)
    , m_reducedBytes(m_graph.tensors.size(), 0)
    , m_updates(m_graph.tensors.size(), 0)
    , m_updatesAside(m_graph.tensors.size(), 0)
    , m_layerWith(m_graph.tensors.size())
{
    findBytes();
    if (setting.aside && !setting.aside->empty())
        leaveOutAside();
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
        if (!m_gradientOf[t])
            continue;
        m_reducedBytes[t] = static_cast<double>(
            elementCount(m_graph.tensors[t].type.shape) * sizeOf(setting.types->reduced(m_gradientOf[t])));
        if (m_bytes[t].model == 0)
            continue;
        ++m_all.count;
        m_all.reducedBytes += m_reducedBytes[t];
        m_all.modelBytes += static_cast<double>(m_bytes[t].model);
        m_all.largest = std::max(m_all.largest, m_reducedBytes[t]);
    }
    for (std::size_t i = 0; i < setting.model->index->forwardCount(); ++i)
        for (const TensorId input : m_graph.operators[i].inputs)
            if (input && !setting.isAside(i))
                ++m_readers[at(input)];
    findLayers();
    findUpdates();
}

void ModelWeights::findBytes()
{
    const StorageTypes &types = *m_setting.types;
    // What an update makes of a state lies where the state lay.
    const auto &producers = m_setting.model->index->uses().producers;
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
        const Tensor &tensor = m_graph.tensors[t];
        const TensorId id{static_cast<std::int32_t>(t)};
        if (tensor.role == TensorRole::Gradient && tensor.of)
            m_gradientOf[at(tensor.of)] = id;
        const DataType carried = types.carried(id);
        const std::int64_t elements = elementCount(tensor.type.shape);
        WeightBytes &own = m_bytes[t];
        if (tensor.role == TensorRole::Weight || tensor.role == TensorRole::Buffer) {
            const bool master = types.isMaster(id, carried);
            m_hasMasters = m_hasMasters || (master && tensor.role == TensorRole::Weight);
            (master ? own.state : own.model) += elements * sizeOf(carried);
            for (const DataType type : castsOf(id))
                own.model += elements * sizeOf(type);
        } else if (tensor.role == TensorRole::OptimizerState && tensor.of && producers[t].empty()
            && elements == elementCount(m_graph.at(tensor.of).type.shape)) {
            m_bytes[at(tensor.of)].state += elements * sizeOf(carried);
        }
    }
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
        if (m_bytes[t].all() > 0 && m_gradientOf[t])
            m_bytes[t].gradient =
                elementCount(m_graph.tensors[t].type.shape) * sizeOf(types.accumulated(m_gradientOf[t]));
}

/// Nothing of what is decided is about them.
void ModelWeights::leaveOutAside()
{
    std::vector<bool> aside(m_graph.tensors.size(), false);
    for (const bool reads : {true, false}) // by those placed apart, and then by others
        for (std::size_t i = 0; i < m_setting.model->index->forwardCount(); ++i)
            if (m_setting.isAside(i) == reads)
                for (const TensorId input : m_graph.operators[i].inputs)
                    if (input)
                        aside[at(input)] = reads;
    for (std::size_t t = 0; t < aside.size(); ++t)
        if (aside[t] && m_graph.tensors[t].role != TensorRole::Activation) {
            m_bytes[t] = {};
            m_gradientOf[t] = {};
        }
}

/// What belongs to no layer goes by the operator that is the first to read it.
void ModelWeights::findLayers()
{
    std::map<std::int32_t, LayerBytes> layers;
    std::map<TensorId, std::int32_t> layerOf;
    for (std::int32_t reader = 0; at(reader) < m_setting.model->index->forwardCount(); ++reader)
        for (const TensorId input : m_graph.operators[at(reader)].inputs) {
            if (!input || m_reducedBytes[at(input)] == 0 || layerOf.contains(input))
                continue;
            const std::int32_t number = m_setting.model->index->layerOf({reader});
            const std::int32_t layer = layerOf[input] = number < 0 ? -1 - reader : number;
            layers[layer].reducedBytes += m_reducedBytes[at(input)];
            layers[layer].modelBytes += static_cast<double>(bytesOf(input).model);
        }
    for (const auto &[weight, layer] : layerOf)
        m_layerWith[at(weight)] = layers[layer];
    for (const auto &[layer, own] : layers)
        m_largestLayer = {std::max(m_largestLayer.reducedBytes, own.reducedBytes),
            std::max(m_largestLayer.modelBytes, own.modelBytes)};
}

std::vector<DataType> ModelWeights::castsOf(TensorId weight) const
{
    std::vector<DataType> casts;
    const DataType carried = m_setting.types->carried(weight);
    if (m_setting.types->isMaster(weight, carried))
        for (const DataType type : {DataType::BFloat16, DataType::Float16, DataType::Float32})
            if (type != carried && m_setting.types->isReadByModel(weight, type))
                casts.push_back(type);
    return casts;
}

void ModelWeights::findUpdates()
{
    std::map<std::pair<std::int64_t, OperatorKind>, double> known; // of what is alike
    const CostModel &costs = *m_setting.costs;
    for (std::size_t i = m_setting.model->index->forwardCount(); i < m_graph.operators.size(); ++i) {
        const Operator &op = m_graph.operators[i];
        if (op.direction != Direction::Optimizer || op.inputs.empty() || !op.inputs.front())
            continue;
        const TensorId weight = op.inputs.front();
        const std::int64_t elements = elementCount(m_graph.at(weight).type.shape);
        const auto [seconds, fresh] = known.try_emplace({elements, op.kind});
        if (fresh) {
            const OperatorId id{static_cast<std::int32_t>(i)};
            std::vector<TensorType> inputs(op.inputs.size());
            std::vector<TensorType> outputs(op.outputs.size());
            for (std::size_t slot = 0; slot < inputs.size(); ++slot)
                if (op.inputs[slot])
                    inputs[slot] = {m_setting.types->read(id, slot), m_graph.at(op.inputs[slot]).type.shape};
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                if (op.outputs[slot])
                    outputs[slot] = {
                        m_setting.types->made(id, slot), m_graph.at(op.outputs[slot]).type.shape};
            seconds->second = costs.kernel({op, inputs, outputs, computeTypeOf(inputs, outputs), true, {},
                AttentionMode::Fused, m_setting.deviceClass});
            const std::int64_t carried = sizeOf(m_setting.types->carried(weight));
            for (const DataType type : castsOf(weight))
                seconds->second +=
                    costs.copy(Bytes{elements * (sizeOf(type) + carried) / 2}, m_setting.deviceClass)
                    - costs.copy(Bytes{}, m_setting.deviceClass);
        }
        (gradientOf(weight) ? m_updates : m_updatesAside)[at(weight)] = seconds->second;
    }
    m_all.update = std::accumulate(m_updates.begin(), m_updates.end(), 0.0);
}

double ModelWeights::trafficSeconds(const WeightTraffic &traffic) const
{
    return traffic.fixed * m_all.count + traffic.perReducedByte * m_all.reducedBytes
        + traffic.perModelByte * m_all.modelBytes;
}

double ModelWeights::secondsOf(
    TensorId weight, const WeightTraffic &traffic, double share, double readers) const
{
    if (!gradientOf(weight))
        return 0;
    const double reduced = m_reducedBytes[at(weight)];
    const auto model = static_cast<double>(bytesOf(weight).model);
    if (share * readers * reduced < traffic.launchedFrom)
        return traffic.fixed / readers
            + share * (traffic.perReducedByte * reduced + traffic.perModelByte * model);
    double seconds = -traffic.launchLess;
    for (const OwnLaunch &launch : traffic.launches)
        if (const auto bytes =
                static_cast<std::int64_t>(share * readers * (launch.ofModel ? model : reduced));
            launch.over.ranks > 1 && bytes > 0)
            seconds += m_setting.costs->collective(launch.kind, Bytes{bytes}, launch.over);
    return seconds / readers;
}

} // namespace planloom
