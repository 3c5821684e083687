// What weights take of memory, of the optimizer and of communication, whole and under choices.

#include "engine/search/partition/partition_problem.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace planloom {

/// Weights that only operators placed apart read take nothing of what is decided here.
void PartitionProblem::leaveOutWeightsAside()
{
    std::vector<bool> aside(m_graph.tensors.size(), false);
    for (const bool reads : {true, false}) // by those placed apart, and then by others
        for (std::size_t i = 0; i < m_choices.size(); ++i)
            if (isAside(i) == reads)
                for (const TensorId input : m_graph.operators[i].inputs)
                    if (input)
                        aside[static_cast<std::size_t>(input.index)] = reads;
    for (std::size_t t = 0; t < aside.size(); ++t)
        if (aside[t] && m_graph.tensors[t].role != TensorRole::Activation) {
            m_weightBytes[t] = {};
            m_gradientOf[t] = {};
        }
}

/// What weights take of memory and of the optimizer.
void PartitionProblem::findWeights()
{
    m_gradientOf.assign(m_graph.tensors.size(), {});
    m_weightBytes.assign(m_graph.tensors.size(), {});
    // What an update makes of a state lies where the state lay.
    const auto &producers = m_setting.model->index->uses().producers;
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
        const Tensor &tensor = m_graph.tensors[t];
        const TensorId id{static_cast<std::int32_t>(t)};
        if (tensor.role == TensorRole::Gradient && tensor.of)
            m_gradientOf[static_cast<std::size_t>(tensor.of.index)] = id;
        const StorageTypes &types = *m_setting.types;
        const DataType carried = types.carried(id);
        const std::int64_t elements = elementCount(tensor.type.shape);
        WeightBytes &own = m_weightBytes[t];
        if (tensor.role == TensorRole::Weight || tensor.role == TensorRole::Buffer) {
            const bool master = types.isMaster(id, carried);
            m_hasMasters = m_hasMasters || (master && tensor.role == TensorRole::Weight);
            (master ? own.state : own.model) += elements * sizeOf(carried);
            if (master)
                for (const DataType type : {DataType::BFloat16, DataType::Float16, DataType::Float32})
                    if (type != carried && types.isReadByModel(id, type))
                        own.model += elements * sizeOf(type);
        } else if (tensor.role == TensorRole::OptimizerState && tensor.of && producers[t].empty()
            && elements == elementCount(m_graph.at(tensor.of).type.shape)) {
            m_weightBytes[static_cast<std::size_t>(tensor.of.index)].state += elements * sizeOf(carried);
        }
    }
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
        if (m_weightBytes[t].all() > 0 && m_gradientOf[t])
            m_weightBytes[t].gradient = elementCount(m_graph.tensors[t].type.shape)
                * sizeOf(m_setting.types->accumulated(m_gradientOf[t]));
    if (m_setting.aside && !m_setting.aside->empty())
        leaveOutWeightsAside();
    m_reducedBytes.assign(m_graph.tensors.size(), 0);
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
        if (!m_gradientOf[t])
            continue;
        m_reducedBytes[t] = static_cast<double>(
            elementCount(m_graph.tensors[t].type.shape) * sizeOf(m_setting.types->reduced(m_gradientOf[t])));
        if (m_weightBytes[t].model == 0)
            continue;
        const auto modelBytes = static_cast<double>(m_weightBytes[t].model);
        ++m_allWeights.count;
        m_allWeights.reducedBytes += m_reducedBytes[t];
        m_allWeights.modelBytes += modelBytes;
        m_allWeights.largest = std::max(m_allWeights.largest, m_reducedBytes[t]);
    }
    m_updates.assign(m_graph.tensors.size(), 0);
    m_updatesAside.assign(m_graph.tensors.size(), 0);
    m_readers.assign(m_graph.tensors.size(), 0);
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        for (const TensorId input : m_graph.operators[i].inputs)
            if (input && !isAside(i))
                ++m_readers[static_cast<std::size_t>(input.index)];
    findLayers();
    std::map<std::pair<std::int64_t, OperatorKind>, double> known; // of what is alike
    const CostModel &costs = *m_setting.costs;
    for (std::size_t i = m_choices.size(); i < m_graph.operators.size(); ++i) {
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
            const DataType carried = m_setting.types->carried(weight);
            if (m_setting.types->isMaster(weight, carried))
                for (const DataType type : {DataType::BFloat16, DataType::Float16, DataType::Float32})
                    if (type != carried && m_setting.types->isReadByModel(weight, type))
                        seconds->second += costs.copy(Bytes{elements * (sizeOf(type) + sizeOf(carried)) / 2},
                                               m_setting.deviceClass)
                            - costs.copy(Bytes{}, m_setting.deviceClass);
        }
        (gradientOf(weight) ? m_updates : m_updatesAside)[static_cast<std::size_t>(weight.index)] =
            seconds->second;
    }
    m_allWeights.update = std::accumulate(m_updates.begin(), m_updates.end(), 0.0);
}

std::optional<PartitionProblem::Accumulation> PartitionProblem::accumulationOf(
    std::size_t op, std::size_t slot, const OperatorChoice &choice) const
{
    const Operator &own = m_graph.operators[op];
    const TensorId weight = own.inputs[slot];
    const ShardLayout form = choice.inputGradients[slot];
    if (!weight || form.isAbsent() || m_graph.at(weight).role != TensorRole::Weight || !gradientOf(weight))
        return std::nullopt;
    const CostModel &costs = *m_setting.costs;
    const auto copy = [&](std::int64_t moved) {
        return costs.copy(Bytes{std::max<std::int64_t>(moved, 0) / 2}, m_setting.deviceClass);
    };
    std::int64_t elements = elementCount(m_graph.at(weight).type.shape);
    elements /= m_setting.partsOf(choice.inputs[slot]);
    const std::int64_t out = elements * sizeOf(m_setting.types->accumulated(gradientOf(weight)));
    const std::int64_t in = elements * sizeOf(m_setting.types->made(own.mirror, slot));
    Accumulation result;
    result.sums = m_setting.sumsOf(form);
    if (categoryOf(own) == OperatorCategory::Product) { // adds to what is there itself
        result.more = copy(2 * out - in) - copy(0);
        result.first = copy(out - in) - copy(0);
    } else {
        result.more = copy(in + 2 * out);
        result.first = copy(in + out);
    }
    result.cast = in == out ? 0 : copy(in + out);
    return result;
}

double PartitionProblem::accumulationSeconds(std::size_t op, const OperatorChoice &choice) const
{
    const double once = 1.0 / std::max(1, m_setting.microBatches);
    double seconds = 0;
    for (std::size_t slot = 0; slot < choice.inputGradients.size(); ++slot)
        if (const auto adds = accumulationOf(op, slot, choice))
            seconds += std::min(adds->first, adds->more) * once + adds->more * (1 - once);
    return seconds;
}

WeightBytes PartitionProblem::leastWeightBytes() const
{
    WeightBytes least;
    for (std::size_t t = 0; t < m_weightBytes.size(); ++t) {
        if (m_weightBytes[t].all() == 0)
            continue;
        bool isRead = false;
        std::int64_t parts = m_setting.shards(); // of all readers that which can cut it least
        for (const OperatorId reader : m_setting.model->index->uses().consumers[t]) {
            const auto r = static_cast<std::size_t>(reader.index);
            if (r >= m_choices.size() || isAside(r))
                continue;
            for (std::size_t slot = 0; slot < m_graph.operators[r].inputs.size(); ++slot) {
                if (m_graph.operators[r].inputs[slot] != TensorId{static_cast<std::int32_t>(t)})
                    continue;
                const auto &choices = m_choices[r]->choices;
                isRead = true;
                std::int64_t most = 1;
                for (const OperatorChoice &choice : choices)
                    most = std::max<std::int64_t>(most, m_setting.partsOf(choice.inputs[slot]));
                parts = std::min(parts, most);
            }
        }
        if (!isRead)
            continue;
        least.model += m_weightBytes[t].model / parts;
        least.state += m_weightBytes[t].state / m_setting.shards();
        least.gradient += m_weightBytes[t].gradient / parts;
    }
    return least;
}

/// What belongs to no layer goes by the operator that is the first to read it.
void PartitionProblem::findLayers()
{
    std::map<std::int32_t, LayerBytes> layers;
    std::vector<std::pair<TensorId, std::int32_t>> read; // weights, and their layers
    std::vector<bool> isRead(m_graph.tensors.size(), false);
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        for (const TensorId input : m_graph.operators[i].inputs) {
            const auto t = static_cast<std::size_t>(input ? input.index : 0);
            if (!input || m_reducedBytes[t] == 0 || isRead[t])
                continue;
            isRead[t] = true;
            const auto reader = static_cast<std::int32_t>(i);
            const std::int32_t layer = m_setting.model->index->layerOf({reader});
            read.emplace_back(input, layer < 0 ? -1 - reader : layer);
            LayerBytes &own = layers[read.back().second];
            own.reducedBytes += m_reducedBytes[t];
            own.modelBytes += static_cast<double>(bytesOf(input).model);
        }
    m_layerWith.resize(m_graph.tensors.size());
    for (const auto &[weight, layer] : read)
        m_layerWith[static_cast<std::size_t>(weight.index)] = layers[layer];
    for (const auto &[layer, own] : layers)
        m_largestLayer = {std::max(m_largestLayer.reducedBytes, own.reducedBytes),
            std::max(m_largestLayer.modelBytes, own.modelBytes)};
}

double PartitionProblem::secondsOf(
    TensorId weight, const WeightTraffic &traffic, double share, double readers) const
{
    if (!gradientOf(weight))
        return 0;
    const double reduced = m_reducedBytes[static_cast<std::size_t>(weight.index)];
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

double PartitionProblem::trafficSeconds(const WeightTraffic &traffic) const
{
    return traffic.fixed * m_allWeights.count + traffic.perReducedByte * m_allWeights.reducedBytes
        + traffic.perModelByte * m_allWeights.modelBytes;
}

double PartitionProblem::shareOf(TensorId weight, const std::vector<std::int32_t> &choice) const
{
    ShardLayout held = kAbsentLayout;
    for (const OperatorId reader :
        m_setting.model->index->uses().consumers[static_cast<std::size_t>(weight.index)]) {
        const auto r = static_cast<std::size_t>(reader.index);
        if (r >= m_choices.size() || isAside(r))
            continue;
        const Operator &op = m_graph.operators[r];
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot] != weight)
                continue;
            const ShardLayout own = choiceOf(r, choice[r]).inputs[slot];
            if (!held.isAbsent() && held != own)
                return 1;
            held = own;
        }
    }
    return 1.0 / m_setting.partsOf(held);
}

double PartitionProblem::updateSecondsOf(std::size_t op, const std::vector<std::int32_t> &choice) const
{
    double seconds = 0;
    std::set<TensorId> read;
    for (const TensorId input : m_graph.operators[op].inputs)
        if (input && updateSeconds(input) > 0 && read.insert(input).second
            && static_cast<std::size_t>(m_setting.model->index->uses()
                                            .consumers[static_cast<std::size_t>(input.index)]
                                            .front()
                                            .index)
                == op)
            seconds += updateSeconds(input) * shareOf(input, choice);
    return seconds;
}

} // namespace planloom
