#include "engine/analyse/bound.h"

#include "engine/graph/catalogue.h"

namespace planloom {

double stepBound(const ExecutionPlan &plan, const CostModel &costs)
{
    if (!costs.leastKernel)
        return 0;
    const Graph &graph = *plan.graph;
    double seconds = 0;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        if (isView(op))
            continue;
        std::vector<TensorType> inputs;
        std::vector<TensorType> outputs;
        for (const TensorId id : op.inputs)
            inputs.push_back(id ? graph.at(id).type : TensorType{});
        for (const TensorId id : op.outputs)
            outputs.push_back(id ? graph.at(id).type : TensorType{});
        double own = costs.leastKernel({op, inputs, outputs, computeTypeOf(inputs, outputs), false, {},
            attentionOf(plan, OperatorId{static_cast<std::int32_t>(o)})});
        // Micro-batches that cut an operator share its work; others repeat it.
        const bool repeated = op.direction != Direction::Optimizer && !plan.batch.oncePerStep[o]
            && plan.batch.operatorDimension[o] < 0;
        if (repeated)
            own *= plan.microBatches;
        seconds += own;
    }
    return seconds / static_cast<double>(plan.devices.size());
}

} // namespace planloom
