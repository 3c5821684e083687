#include "engine/binding/stage_numbers.h"
#include "engine/gesture/acting.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/row_edits.h"
#include "engine/gesture/split_gesture.h"
#include "engine/gesture/stage_rows.h"

#include <algorithm>

namespace planloom {

Proposal proposeStage(const GestureContext &context, const std::vector<OperatorId> &selected, StageId stage)
{
    return proposeStageOf(context, selected, stage, nullptr);
}

Proposal proposeStageOf(const GestureContext &context, const std::vector<OperatorId> &selected, StageId stage,
    const Selector *named)
{
    Proposal proposal;
    proposal.words = "stage " + std::to_string(stage.index);
    const auto operators = actingForward(context, selected);
    if (operators.empty())
        return withRefusal(std::move(proposal), nothingSelected());
    proposal.operators = operators;
    proposal.words =
        "put " + wordsFor(context.index(), operators) + " in stage " + std::to_string(stage.index);
    if (!stage.valid())
        return withRefusal(std::move(proposal), refusalOf("stages are numbered from 0", "stage"));
    std::vector<std::int32_t> stages = stagesByRow(context);
    stages.resize(context.graph().operators.size(), -1);
    bool changes = false;
    for (const OperatorId op : operators) {
        std::int32_t &now = stages[static_cast<std::size_t>(op.index)];
        changes = changes || now != stage.index;
        now = stage.index;
    }
    if (!changes)
        return proposal;
    if (const auto violations = numberStages(context.index(), stages).violations; !violations.empty()) {
        const StageViolation *violation = &violations.front();
        const Graph &graph = context.graph();
        return withRefusal(std::move(proposal),
            refusalOf(graph.at(violation->op).name + " in stage " + std::to_string(violation->stage)
                    + " reads what " + graph.at(violation->producer).name + " makes in stage "
                    + std::to_string(violation->producerStage),
                placeOf(graph, violation->op), "stages must not decrease along the data flow"));
    }
    RowEdits edits(context);
    if (named)
        edits.name(operators, *named);
    const Subset subset(context.index(), operators);
    std::vector<OperatorId> already;
    forEachRule<StageRule>(context, [&](std::int32_t line, const Row &row, const StageRule &rule) {
        const auto hit = subset.selected(row.selector);
        if (hit.empty())
            return;
        if (rule.index == stage.index)
            already = united(already, hit);
        else
            edits.letGo(line, hit);
    });
    forEachRule<LayoutRule>(context, [&](std::int32_t line, const Row &row, const LayoutRule &) {
        if (const auto hit = subset.selected(row.selector); !hit.empty())
            edits.letGo(line, hit);
    });
    if (const auto rest = subtracted(operators, already); !rest.empty())
        edits.append(gestureRow(edits.selectorOf(rest), StageRule{stage.index}));
    edits.finish(proposal);
    return proposal;
}

Proposal proposeRecompute(const GestureContext &context, const std::vector<OperatorId> &selected)
{
    Proposal proposal;
    proposal.words = "recompute";
    const auto operators = actingForward(context, selected);
    if (operators.empty())
        return withRefusal(std::move(proposal), nothingSelected());
    proposal.operators = operators;
    const std::string who = wordsFor(context.index(), operators);
    RowEdits edits(context);
    const Subset subset(context.index(), operators);
    std::vector<OperatorId> recomputed;
    std::vector<std::pair<std::int32_t, std::vector<OperatorId>>> rows;
    forEachRule<RecomputeRule>(context, [&](std::int32_t line, const Row &row, const RecomputeRule &) {
        auto hit = subset.selected(row.selector);
        if (hit.empty())
            return;
        recomputed = united(recomputed, hit);
        rows.emplace_back(line, std::move(hit));
    });
    const auto rest = subtracted(operators, recomputed);
    if (rest.empty()) {
        proposal.words = "keep the outputs of " + who;
        for (const auto &[line, hit] : rows)
            edits.letGo(line, hit);
    } else {
        proposal.words = "recompute " + who;
        std::vector<std::int32_t> layers;
        for (const OperatorId op : rest)
            layers.push_back(context.index().layerOf(op));
        std::sort(layers.begin(), layers.end());
        // Each layer anew: recomputing several at once would hold the outputs of all of them.
        const bool several = layers.front() != layers.back();
        edits.append(gestureRow(
            edits.selectorOf(rest), RecomputeRule{several ? RecomputePer::Layer : RecomputePer::Selection}));
    }
    edits.finish(proposal);
    return proposal;
}

} // namespace planloom
