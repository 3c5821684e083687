#pragma once

#include "engine/design/make_plan.h"

namespace planloom {

/// The model in one piece on one device, in `microBatches`: what a run is compared with.
inline Result<ExecutionPlan> unpartitionedPlan(
    const GraphSnapshot &graph, std::int32_t microBatches, bool wholeBatches)
{
    OpenedModel model;
    static_cast<Model &>(model) = Model(graph);
    PlanRequest request;
    request.model = std::make_shared<const OpenedModel>(std::move(model));
    if (microBatches > 1)
        request.table =
            TableDocument("micro-batches " + std::to_string(microBatches) + (wholeBatches ? " whole" : ""));
    request.target = {"cpu", {}, 1};
    request.upTo = PlanGrade::Lowered;
    TRY(const auto answer, planOf(request));
    return *answer->execution;
}

} // namespace planloom
