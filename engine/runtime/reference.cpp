#include "engine/runtime/reference.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"

#include <algorithm>

namespace planloom {

Result<ExecutionPlan> unpartitionedPlan(const GraphSnapshot &graph, std::int32_t microBatches, bool wholeBatches)
{
    TRY(auto completion, completePlan(graph, 1, ConstraintTable{}));
    completion.plan.microBatches = microBatches;
    completion.plan.wholeBatches = wholeBatches;
    TRY(const auto cluster, clusterNamed("cpu:1"));
    return lower(completion.plan, cluster);
}

Result<std::shared_ptr<const ExecutionPlan>> referenceOf(const ExecutionPlan &plan)
{
    const bool perMicroBatch = std::any_of(plan.batch.tensorRole.begin(), plan.batch.tensorRole.end(),
        [](BatchRole role) { return role == BatchRole::Local; });
    const bool wholeBatches = perMicroBatch
        && std::all_of(plan.batch.operatorDimension.begin(), plan.batch.operatorDimension.end(),
            [](std::int32_t dimension) { return dimension < 0; });
    TRY(auto reference, unpartitionedPlan(plan.graph, perMicroBatch ? plan.microBatches : 1, wholeBatches));
    return std::make_shared<const ExecutionPlan>(std::move(reference));
}

} // namespace planloom
