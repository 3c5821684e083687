#include "engine/plan/stages.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

constexpr std::int32_t kMostRuns = 64;

/// By operator: forward, named by no place row (by no stage row, and without weights, if those count), and so
/// are all operators it depends on.
std::vector<bool> freeOperators(const CompletionState &state, bool byStageRows)
{
    const Graph &graph = state.graph();
    std::vector<bool> isFree(graph.operators.size(), false);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        const OperatorBinding &binding = state.bindings[i];
        bool none = byStageRows ? binding.stageRow < 0 : binding.placeRow < 0;
        for (const TensorId input : op.inputs) {
            if (!input.valid())
                continue;
            none = none && !(byStageRows && graph.at(input).role == TensorRole::Weight);
            for (const OperatorId maker : state.index.uses().producers[static_cast<std::size_t>(input.index)])
                none = none && isFree[static_cast<std::size_t>(maker.index)];
        }
        isFree[i] = none;
    }
    return isFree;
}

/// Stage of free operators: the first of those of their consumers.
void joinConsumers(CompletionState &state, const std::vector<bool> &isFree)
{
    const Graph &graph = state.graph();
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        if (!isFree[i])
            continue;
        std::int32_t first = -1;
        for (const TensorId output : graph.operators[i].outputs) {
            if (!output.valid())
                continue;
            for (const OperatorId user :
                state.index.uses().consumers[static_cast<std::size_t>(output.index)]) {
                if (graph.at(user).direction != Direction::Forward)
                    continue;
                const std::int32_t stage = state.decisionOf(user).stage.index;
                first = first < 0 ? stage : std::min(first, stage);
            }
        }
        state.plan.decisions[i].stage = {std::max(first, 0)};
    }
}

void byRows(CompletionState &state)
{
    const Graph &graph = state.graph();
    const auto isFree = freeOperators(state, true);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || isFree[i])
            continue;
        const OperatorBinding &binding = state.bindings[i];
        std::int32_t last = 0;
        OperatorId from;
        for (const TensorId input : op.inputs) {
            if (!input.valid())
                continue;
            for (const OperatorId maker :
                state.index.uses().producers[static_cast<std::size_t>(input.index)]) {
                if (graph.at(maker).direction != Direction::Forward
                    || isFree[static_cast<std::size_t>(maker.index)])
                    continue;
                if (state.decisionOf(maker).stage.index >= last) {
                    last = state.decisionOf(maker).stage.index;
                    from = maker;
                }
            }
        }
        state.plan.decisions[i].stage = {binding.stageRow >= 0 ? binding.stage : last};
        if (binding.stageRow >= 0 && binding.stage < last) {
            state.fail(binding.stageRow,
                "operator '" + op.name + "' is in stage " + std::to_string(binding.stage) + ", but reads '"
                    + graph.at(from).name + "' of stage " + std::to_string(last),
                "stages must not decrease along the data flow");
        }
    }
    joinConsumers(state, isFree);
}

void byPlacement(CompletionState &state)
{
    const Graph &graph = state.graph();
    const auto isFree = freeOperators(state, false);
    std::int32_t run = -1;
    std::vector<DeviceId> current;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction != Direction::Forward || isFree[i])
            continue;
        std::vector<DeviceId> devices = distinct(state.plan.decisions[i].devices);
        std::sort(devices.begin(), devices.end());
        if (run < 0 || devices != current) {
            ++run;
            current = std::move(devices);
        }
        state.plan.decisions[i].stage = {run};
    }
    if (run + 1 > kMostRuns && state.scheduleRow < 0) {
        for (OperatorDecision &decision : state.plan.decisions)
            decision.stage = {0};
        return;
    }
    joinConsumers(state, isFree);
}

} // namespace

void assignStages(CompletionState &state)
{
    const bool rows = std::any_of(state.bindings.begin(), state.bindings.end(),
        [](const OperatorBinding &b) { return b.stageRow >= 0; });
    if (rows)
        byRows(state);
    else
        byPlacement(state);
    state.plan.stageCount = 1;
    for (std::size_t i = 0; i < state.plan.decisions.size(); ++i) {
        if (state.graph().operators[i].direction == Direction::Forward)
            state.plan.stageCount = std::max(state.plan.stageCount, state.plan.decisions[i].stage.index + 1);
    }
}

void assignRecomputeGroups(CompletionState &state)
{
    const Graph &graph = state.graph();
    const bool trains = std::any_of(graph.operators.begin(), graph.operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    if (!trains)
        return;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> groups; // row, part, stage
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorBinding &binding = state.bindings[i];
        const std::int32_t row = binding.recomputeRow >= 0 ? binding.recomputeRow : binding.coshardRow;
        if (row < 0 || graph.operators[i].direction != Direction::Forward)
            continue;
        const auto id = static_cast<std::int32_t>(i);
        std::int32_t part = state.index.layerOf({id}); // per layer
        if (const auto *rule =
                std::get_if<RecomputeRule>(&state.table.rows[static_cast<std::size_t>(row)].rule)) {
            if (rule->per == RecomputePer::Selection)
                part = 0;
            else if (rule->per == RecomputePer::Operator)
                part = id;
        }
        OperatorDecision &decision = state.plan.decisions[i];
        const auto [found, isNew] = groups.emplace(
            std::tuple(row, part, decision.stage.index), static_cast<std::int32_t>(groups.size()));
        decision.recomputeGroup = found->second;
    }
}

} // namespace planloom
