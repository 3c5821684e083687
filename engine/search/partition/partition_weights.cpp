// What weights take of memory and of accumulation under choices.

#include "engine/search/partition/partition_problem.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <set>

namespace planloom {

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
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
        const TensorId weight{static_cast<std::int32_t>(t)};
        const WeightBytes &whole = m_weights.bytesOf(weight);
        if (whole.all() == 0)
            continue;
        bool isRead = false;
        std::int64_t parts = m_setting.shards(); // of all readers that which can cut it least
        for (const OperatorId reader : m_setting.model->index->uses().consumers[t]) {
            const std::size_t r = at(reader);
            if (r >= m_choices.size() || isAside(r))
                continue;
            for (std::size_t slot = 0; slot < m_graph.operators[r].inputs.size(); ++slot) {
                if (m_graph.operators[r].inputs[slot] != weight)
                    continue;
                isRead = true;
                std::int64_t most = 1;
                for (const OperatorChoice &choice : choicesOf(r))
                    most = std::max<std::int64_t>(most, m_setting.partsOf(choice.inputs[slot]));
                parts = std::min(parts, most);
            }
        }
        if (!isRead)
            continue;
        least.model += whole.model / parts;
        least.state += whole.state / m_setting.shards();
        least.gradient += whole.gradient / parts;
    }
    return least;
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
        if (input && m_weights.updateSeconds(input) > 0 && read.insert(input).second
            && at(m_setting.model->index->uses().consumers[at(input)].front()) == op)
            seconds += m_weights.updateSeconds(input) * shareOf(input, choice);
    return seconds;
}

} // namespace planloom
