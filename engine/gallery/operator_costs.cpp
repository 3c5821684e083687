#include "engine/gallery/operator_costs.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cmath>

namespace planloom {

OperatorCosts::OperatorCosts(const Graph &graph, const CostModel &costs, PrecisionPreset precision)
    : m_graph(graph)
    , m_costs(costs)
    , m_precision(precisionOf(precision))
    , m_types(graph, std::vector<Precision>(graph.operators.size(), m_precision))
{
}

double OperatorCosts::secondsOf(OperatorId id, std::int32_t deviceClass) const
{
    const Operator &op = m_graph.at(id);
    if (isView(op))
        return 0;
    auto inputs = typesOf(m_graph, op.inputs);
    auto outputs = typesOf(m_graph, op.outputs);
    for (std::size_t slot = 0; slot < inputs.size(); ++slot)
        if (op.inputs[slot])
            inputs[slot].dataType = m_types.read(id, slot);
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        if (op.outputs[slot])
            outputs[slot].dataType = m_types.made(id, slot);
    return m_costs.kernel({op, inputs, outputs, arithmeticOf(m_graph, op, m_precision), false, {},
        AttentionMode::Fused, deviceClass});
}

std::int64_t OperatorCosts::nanosecondsOf(OperatorId forward, std::int32_t deviceClass) const
{
    const OperatorId mirror = m_graph.at(forward).mirror;
    const double seconds = secondsOf(forward, deviceClass) + (mirror ? secondsOf(mirror, deviceClass) : 0);
    return static_cast<std::int64_t>(std::min(std::ceil(seconds * 1e9), 1e15));
}

} // namespace planloom
