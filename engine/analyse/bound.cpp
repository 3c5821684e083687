#include "engine/analyse/bound.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/storage_types.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace planloom {

double stepBound(const ExecutionPlan &plan, const CostModel &costs)
{
    if (!costs.leastKernel)
        return 0;
    const Graph &graph = *plan.graph;
    const StorageTypes types(graph, plan.precisions);
    // Of devices that differ, whatever w >= 0 with sum of w over the devices = 1 bounds the step from below
    // by sum over operators of min over classes of w x time: the dual of dealing the work out.
    const std::size_t units = static_cast<std::size_t>(plan.units.count);
    std::vector<double> devices; // by class
    for (std::size_t u = 0; u < units; ++u)
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            const auto c = static_cast<std::size_t>(costs.classOf(
                plan.units.deviceOf(static_cast<std::int32_t>(u), DeviceId{static_cast<std::int32_t>(d)})));
            devices.resize(std::max(devices.size(), c + 1), 0);
            ++devices[c];
        }
    if (devices.empty())
        return 0;
    std::vector<std::vector<double>> times; // by operator and class
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
        // Micro-batches that cut an operator share its work; others repeat it.
        const bool repeated = op.direction != Direction::Optimizer && !plan.batch.oncePerStep[o]
            && plan.batch.operatorDimension[o] < 0;
        std::vector<double> &own = times.emplace_back();
        for (std::size_t c = 0; c < devices.size(); ++c)
            own.push_back(
                costs.leastKernel({op, inputs, outputs, arithmeticOf(graph, op, precisionOf(plan, self)),
                    false, {}, attentionOf(plan, self), static_cast<std::int32_t>(c)})
                * (repeated                                    ? plan.microBatches
                        : op.direction == Direction::Optimizer ? plan.updates
                                                               : 1));
    }
    // All alike, and each class as much as it is faster.
    std::vector<double> totals(devices.size(), 0);
    for (const std::vector<double> &own : times)
        for (std::size_t c = 0; c < own.size(); ++c)
            totals[c] += own[c];
    double best = 0;
    for (const bool bySpeed : {false, true}) {
        std::vector<double> weights(devices.size(), 0);
        double sum = 0;
        for (std::size_t c = 0; c < devices.size(); ++c) {
            weights[c] = bySpeed && totals[c] > 0 ? 1 / totals[c] : 1;
            sum += weights[c] * devices[c];
        }
        double seconds = 0;
        for (const std::vector<double> &own : times) {
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t c = 0; c < own.size(); ++c)
                if (devices[c] > 0)
                    least = std::min(least, own[c] * weights[c] / sum);
            seconds += least;
        }
        best = std::max(best, seconds);
        if (devices.size() == 1)
            break;
    }
    return best;
}

} // namespace planloom
