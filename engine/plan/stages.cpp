#include "engine/plan/stages.h"

#include "engine/binding/stage_numbers.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

constexpr std::int32_t kMostRuns = 64;

void byRows(PlanDraft &draft, const std::vector<std::int32_t> &byRow)
{
    const Graph &graph = draft.graph();
    const StageNumbers numbers = numberStages(draft.index(), byRow);
    for (std::size_t i = 0; i < numbers.stage.size(); ++i) {
        if (graph.operators[i].direction == Direction::Forward)
            draft.plan.decisions[i].stage = {numbers.stage[i]};
    }
    for (const StageViolation &violation : numbers.violations) {
        draft.fail(draft.bindingOf(violation.op).rowOf(Aspect::Stage),
            "operator '" + graph.at(violation.op).name + "' is in stage " + std::to_string(violation.stage)
                + ", but reads '" + graph.at(violation.producer).name + "' of stage "
                + std::to_string(violation.producerStage),
            "stages must not decrease along the data flow");
    }
}

void byPlacement(PlanDraft &draft)
{
    const Graph &graph = draft.graph();
    std::vector<bool> placed(graph.operators.size());
    for (std::size_t i = 0; i < placed.size(); ++i)
        placed[i] = draft.bound.bindings[i].rowOf(Aspect::Place) >= 0;
    const auto isFree = freeOperators(draft.index(), placed, false);
    std::vector<std::int32_t> stages(placed.size(), 0);
    std::int32_t run = -1;
    std::vector<DeviceId> current;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction != Direction::Forward || isFree[i])
            continue;
        std::vector<DeviceId> devices = distinct(draft.plan.decisions[i].devices);
        std::sort(devices.begin(), devices.end());
        if (run < 0 || devices != current) {
            ++run;
            current = std::move(devices);
        }
        stages[i] = run;
    }
    if (run + 1 > kMostRuns && !draft.bound.plan.scheduleRow.valid())
        std::fill(stages.begin(), stages.end(), 0);
    else
        joinConsumers(draft.index(), isFree, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        if (graph.operators[i].direction == Direction::Forward)
            draft.plan.decisions[i].stage = {stages[i]};
    }
}

/// Rows that say of how many stages theirs is one.
void checkStageCounts(PlanDraft &draft)
{
    std::int32_t before = -1;
    for (std::size_t i = 0; i < draft.table.rows.size(); ++i) {
        const auto *rule = std::get_if<StageRule>(&draft.table.rows[i].rule);
        if (!rule || !draft.table.rows[i].enabled || rule->count == 0)
            continue;
        const auto row = static_cast<std::int32_t>(i);
        if (before >= 0
            && std::get<StageRule>(draft.table.rows[static_cast<std::size_t>(before)].rule).count
                != rule->count)
            return draft.bound.failBoth(draft.table, row, before, "count different numbers of stages",
                "switch one of the rows off, or give them the same number");
        before = row;
        if (rule->count != draft.plan.stageCount)
            draft.fail(row,
                "the plan has " + std::to_string(draft.plan.stageCount)
                    + (draft.plan.stageCount == 1 ? " stage" : " stages") + ", and the row says "
                    + std::to_string(rule->count),
                "give operators to the other stages, or solve: the search finds them");
    }
}

} // namespace

void assignStages(PlanDraft &draft)
{
    std::vector<std::int32_t> byRow(draft.bound.bindings.size(), -1);
    bool any = false;
    for (std::size_t i = 0; i < byRow.size(); ++i) {
        if (const std::int32_t *stage = draft.bound.bindings[i].allowed.stage.preferred()) {
            byRow[i] = *stage;
            any = true;
        }
    }
    if (any)
        byRows(draft, byRow);
    else
        byPlacement(draft);
    draft.plan.stageCount = 1;
    for (std::size_t i = 0; i < draft.plan.decisions.size(); ++i) {
        if (draft.graph().operators[i].direction == Direction::Forward)
            draft.plan.stageCount = std::max(draft.plan.stageCount, draft.plan.decisions[i].stage.index + 1);
    }
    checkStageCounts(draft);
}

void assignRecomputeGroups(PlanDraft &draft)
{
    const Graph &graph = draft.graph();
    const bool trains = std::any_of(graph.operators.begin(), graph.operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    if (!trains)
        return;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> groups; // row, part, stage
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorBinding &binding = draft.bound.bindings[i];
        // Parts that take turns run again, unless their row keeps what they make; what goes round in a ring
        // keeps its outputs, though its parts take turns.
        const auto &recompute = binding.allowed.recompute;
        const bool again = recompute && recompute->when == Switched::Always;
        const bool keeps = recompute || !binding.allowed.ring.empty() || binding.allowed.coshardKeeps == true;
        std::int32_t row = again ? binding.rowOf(Aspect::Recompute)
            : keeps              ? -1
                                 : binding.rowOf(Aspect::Coshard);
        if (row < 0 || graph.operators[i].direction != Direction::Forward)
            continue;
        const auto id = static_cast<std::int32_t>(i);
        std::int32_t part = draft.index().layerOf({id}); // per layer
        if (const auto *rule =
                std::get_if<RecomputeRule>(&draft.table.rows[static_cast<std::size_t>(row)].rule)) {
            if (rule->per == RecomputePer::Selection)
                part = 0;
            else if (rule->per == RecomputePer::Operator)
                part = id;
        }
        if (!again && draft.plan.decisions[i].coshardRegion >= 0) { // of several rows
            row = -1;
            part = draft.plan.decisions[i].coshardRegion;
        }
        OperatorDecision &decision = draft.plan.decisions[i];
        const auto [found, isNew] = groups.emplace(
            std::tuple(row, part, decision.stage.index), static_cast<std::int32_t>(groups.size()));
        decision.recomputeGroup = found->second;
    }
}

} // namespace planloom
