#include "engine/analyse/bound.h"

#include "engine/graph/catalogue.h"
#include "engine/hardware/cost.h"

namespace planloom {

double stepBound(const ExecutionPlan &plan, const Cluster &cluster)
{
    const Graph &graph = *plan.graph;
    DeviceModel device = cluster.device;
    device.launchLatency.value = 0;
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
        DataType dataType = DataType::Float32;
        for (const TensorType &type : outputs)
            if (isFloating(type.dataType))
                dataType = type.dataType;
        const AttentionMode attention = attentionOf(plan, OperatorId{static_cast<std::int32_t>(o)});
        double own =
            operatorSeconds(device, categoryOf(op.kind), workOf(op, inputs, outputs, attention), dataType);
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
