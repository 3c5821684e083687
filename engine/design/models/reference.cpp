#include "engine/design/models/reference.h"

#include "engine/design/make_plan.h"
#include "engine/lowering/lower.h"

#include <algorithm>
#include <string>

namespace planloom {

Result<std::shared_ptr<const ExecutionPlan>> referenceOf(const ExecutionPlan &plan)
{
    const bool perMicroBatch = std::any_of(plan.batch.tensorRole.begin(), plan.batch.tensorRole.end(),
        [](BatchRole role) { return role == BatchRole::Local; });
    const bool wholeBatches = perMicroBatch
        && std::all_of(plan.batch.operatorDimension.begin(), plan.batch.operatorDimension.end(),
            [](std::int32_t dimension) { return dimension < 0; });
    OpenedModel model;
    static_cast<Model &>(model) = Model(plan.graph);
    PlanRequest request;
    request.model = std::make_shared<const OpenedModel>(std::move(model));
    if (perMicroBatch || plan.updates > 1)
        request.table = TableDocument("micro-batches " + std::to_string(plan.microBatches)
            + (wholeBatches ? " whole" : "") + " update every "
            + std::to_string(microBatchesPerUpdate(plan)));
    request.target = {"cpu", {}, 1};
    request.upTo = PlanGrade::Planned;
    TRY(const auto answer, planOf(request));
    Plan same = *answer->plan;
    for (std::size_t o = 0; o < plan.precisions.size(); ++o)
        same.decisions[o].precision = plan.precisions[o];
    // What is trained depends on how old the weights are that gradients are computed at.
    for (std::size_t o = 0; o < plan.weightVersions.size(); ++o)
        same.decisions[o].weightVersions = plan.weightVersions[o];
    TRY(ExecutionPlan lowered, lower(same, answer->cluster));
    return std::make_shared<const ExecutionPlan>(std::move(lowered));
}

} // namespace planloom
