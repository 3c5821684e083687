#include "engine/plan/complete.h"

#include "engine/plan/bind.h"
#include "engine/plan/default_rule.h"
#include "engine/plan/optimizer_rule.h"
#include "engine/plan/preferences.h"
#include "engine/table/selector_index.h"
#include "engine/plan/stages.h"

namespace planloom {

namespace {

constexpr std::int32_t kMostDevices = 65536;

/// Backward operators do as their forwards.
void mirrorDecisions(CompletionState &state)
{
    const Graph &graph = state.graph();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Backward)
            continue;
        OperatorDecision decision = state.decisionOf(op.mirror);
        decision.partition = mirrored(op, decision.partition);
        decision.recomputeGroup = -1;
        decision.why = "as its forward operator";
        state.plan.decisions[i] = std::move(decision);
    }
}

} // namespace

Result<Completion> completePlan(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
{
    if (!model)
        return Error {ErrorCode::InvalidInput, "there is no model to plan", "", "plan"};
    if (deviceCount < 1 || deviceCount > kMostDevices) {
        return Error {ErrorCode::InvalidInput,
            "expected 1 to " + std::to_string(kMostDevices) + " devices, found "
                + std::to_string(deviceCount),
            "", "devices"};
    }
    if (hasPreferences(table))
        return completeWithPreferences(model, deviceCount, table);
    CompletionState state {*model.index, table, *model.batch};
    state.plan.graph = model.graph;
    state.plan.batch = model.batch;
    state.plan.deviceCount = deviceCount;
    state.plan.decisions.assign(model.graph->operators.size(), {});

    bindRows(state);
    if (!state.failed)
        applyDefaultRule(state);
    if (!state.failed)
        assignStages(state);
    if (!state.failed)
        bindInFlight(state);
    if (!state.failed) {
        assignRecomputeGroups(state);
        mirrorDecisions(state);
        decideOptimizers(state);
    }
    Completion completion;
    completion.rows = std::move(state.reports);
    if (state.failed)
        return completion;
    if (auto valid = validate(state.plan); !valid) {
        Error error = std::move(valid).error();
        error.message = "the completed plan does not hold: " + error.message;
        return error;
    }
    completion.plan = std::move(state.plan);
    return completion;
}

std::optional<Error> firstError(const Completion &completion)
{
    for (const RowReport &report : completion.rows) {
        if (report.error)
            return report.error;
    }
    return std::nullopt;
}

} // namespace planloom
