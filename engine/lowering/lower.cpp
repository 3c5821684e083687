#include "engine/lowering/lower.h"

#include "engine/base/background_disposal.h"
#include "engine/base/words.h"
#include "engine/lowering/lowering.h"

namespace planloom {

Result<ExecutionPlan> lower(const Plan &plan, const Cluster &cluster, std::stop_token stop)
{
    return lower(plan, cluster, costModelOf(cluster), std::move(stop));
}

Result<ExecutionPlan> lower(
    const Plan &plan, const Cluster &cluster, const CostModel &costs, std::stop_token stop)
{
    TRY(auto materialized, materialize(plan, cluster, costs, std::move(stop)));
    auto execution = sequenceAsMade(materialized, plan);
    disposeInBackground([materialized = std::move(materialized)] {});
    return execution;
}

Result<MaterializedPlan> materialize(const Plan &plan, const Cluster &cluster, const CostModel &costs,
    std::stop_token stop, std::shared_ptr<PathMemory> paths)
{
    if (std::int64_t{plan.deviceCount} * plan.units.count > cluster.deviceCount)
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + counted(std::int64_t{plan.deviceCount} * plan.units.count, "device")
                + ", the cluster has " + std::to_string(cluster.deviceCount),
            "choose a larger cluster", "cluster"};
    TRY_VOID(validate(plan));
    const VersionedPlan versioned = withWeightVersions(plan);
    TRY(auto transformed, transform(versioned.plan));
    auto lowering = std::make_shared<Lowering>(
        versioned, cluster, costs, std::move(transformed), std::move(paths), std::move(stop));
    auto materialized = lowering->run();
    if (materialized)
        nameWeights(*materialized, plan, versioned);
    disposeInBackground([lowering = std::move(lowering)] {}); // millions of small parts
    return materialized;
}

} // namespace planloom
