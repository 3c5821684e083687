#include "engine/lowering/weight_versions.h"

#include <algorithm>
#include <map>

namespace planloom {

VersionedPlan withWeightVersions(const Plan &plan)
{
    VersionedPlan versioned{plan, {}};
    if (std::all_of(plan.decisions.begin(), plan.decisions.end(),
            [](const OperatorDecision &decision) { return decision.weightVersions == 1; }))
        return versioned;
    const std::vector<bool> trained = trainedWeights(*plan.graph);
    auto graph = std::make_shared<Graph>(*plan.graph);
    auto batch = std::make_shared<BatchInfo>(*batchOf(plan));
    std::map<WeightVersion, TensorId> tensors;
    for (std::size_t o = 0; o < graph->operators.size(); ++o) {
        Operator &op = graph->operators[o];
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const std::int32_t staleness = stalenessOf(op, slot, plan.decisions[o].weightVersions, trained);
            if (staleness == 0)
                continue;
            const TensorId weight = op.inputs[slot];
            const auto [known, fresh] =
                tensors.try_emplace({weight, staleness}, static_cast<std::int32_t>(graph->tensors.size()));
            if (fresh) {
                Tensor older = graph->at(weight);
                older.name += "@" + std::to_string(staleness);
                graph->tensors.push_back(std::move(older));
                batch->tensorRole.push_back(batch->tensorRole[static_cast<std::size_t>(weight.index)]);
                batch->tensorDimension.push_back(
                    batch->tensorDimension[static_cast<std::size_t>(weight.index)]);
                versioned.versions.push_back(known->first);
            }
            op.inputs[slot] = known->second;
        }
    }
    versioned.plan.graph = std::move(graph);
    versioned.plan.batch = std::move(batch);
    return versioned;
}

void nameWeights(MaterializedPlan &materialized, const Plan &plan, const VersionedPlan &versioned)
{
    if (versioned.versions.empty())
        return;
    ExecutionPlan &programs = materialized.programs;
    const std::size_t tensors = plan.graph->tensors.size();
    programs.graph = plan.graph;
    programs.batch.tensorRole.resize(tensors);
    programs.batch.tensorDimension.resize(tensors);
    for (const OperatorDecision &decision : plan.decisions)
        programs.weightVersions.push_back(decision.weightVersions);
    for (DeviceProgram &program : programs.devices)
        for (BufferInfo &buffer : program.buffers.edit()) {
            const auto tensor = static_cast<std::size_t>(buffer.tensor.index);
            if (tensor < tensors)
                continue;
            const WeightVersion &version = versioned.versions[tensor - tensors];
            buffer.tensor = version.weight;
            buffer.staleness = static_cast<std::int16_t>(version.staleness);
        }
}

} // namespace planloom
