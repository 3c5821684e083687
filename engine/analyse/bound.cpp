#include "engine/analyse/bound.h"

#include "engine/graph/catalogue.h"
#include "engine/graph/storage_types.h"

namespace planloom {

double stepBound(const ExecutionPlan &plan, const CostModel &costs)
{
    if (!costs.leastKernel)
        return 0;
    const Graph &graph = *plan.graph;
    const StorageTypes types(graph, plan.precisions);
    double seconds = 0;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        if (isView(op))
            continue;
        std::vector<TensorType> inputs;
        std::vector<TensorType> outputs;
        const OperatorId self{static_cast<std::int32_t>(o)};
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId id = op.inputs[slot];
            inputs.push_back(id ? TensorType{types.read(self, slot), graph.at(id).type.shape} : TensorType{});
        }
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const TensorId id = op.outputs[slot];
            outputs.push_back(
                id ? TensorType{types.made(self, slot), graph.at(id).type.shape} : TensorType{});
        }
        double own = costs.leastKernel({op, inputs, outputs, arithmeticOf(graph, op, precisionOf(plan, self)),
            false, {}, attentionOf(plan, self)});
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
