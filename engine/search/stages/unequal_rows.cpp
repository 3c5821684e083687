#include "engine/search/stages/unequal_rows.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/search/memory/recompute_choice.h"
#include "engine/search/partition/sharding_choice.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

SplitStep dimensionStep(const Operator &op, std::int32_t dimension, std::int32_t parts)
{
    return {.kind = SplitKind::Dimension,
        .dimension = {.kind = DimensionRef::Kind::Identifier,
            .name = op.annotation.dimensions[static_cast<std::size_t>(dimension)].name},
        .parts = parts,
        .sizes = {},
        .axis = {}};
}

/// How an operator is cut on the devices of a group: by replicas along the batch, and what each of them has.
std::vector<SplitStep> stepsOf(
    const Model &model, OperatorId id, const StageGroup &group, const OperatorChoice &choice)
{
    const Operator &op = model.graph->at(id);
    const auto whole = [](std::int32_t parts) {
        return SplitStep{
            .kind = SplitKind::Replicate, .dimension = {}, .parts = parts, .sizes = {}, .axis = {}};
    };
    std::vector<SplitStep> steps;
    if (group.replicas > 1) {
        const std::int32_t batch = model.batch->operatorDimension[at(id)];
        const bool isCut = batch >= 0 && op.annotation.dimensions[static_cast<std::size_t>(batch)].size > 1;
        steps.push_back(isCut ? dimensionStep(op, batch, group.replicas) : whole(group.replicas));
    }
    if (group.shards > 1) {
        SplitStep step = choice.split.kind == SplitKind::Dimension
            ? dimensionStep(op, choice.split.dimension, group.shards)
            : whole(group.shards);
        step.kind = choice.split.kind;
        steps.push_back(std::move(step));
    }
    if (steps.empty()) // what follows its producer would be cut as that is
        steps.push_back(whole(1));
    const auto isWhole = [](const SplitStep &step) { return step.kind == SplitKind::Replicate; };
    if (std::all_of(steps.begin(), steps.end(), isWhole))
        return {whole(group.devices())};
    return steps;
}

std::string textOf(const std::vector<SplitStep> &steps)
{
    std::string text;
    for (const SplitStep &step : steps)
        text += std::to_string(static_cast<int>(step.kind)) + step.dimension.name + "/"
            + std::to_string(step.parts) + " ";
    return text;
}

} // namespace

Result<ConstraintTable> unequalRowsOf(const StepEstimate &estimate, const StepEstimator &estimator,
    const Model &model, const SearchSpace &space, const ConstraintTable &asked)
{
    const Configuration &chosen = estimate.configuration;
    const SelectorIndex &index = *model.index;
    ConstraintTable table;
    const auto add = [&](Selector selector, Rule rule) {
        table.rows.push_back(templateRow(std::move(selector), std::move(rule)));
        table.rows.back().origin = RowOrigin::Solver;
    };
    if (!space.ownMicroBatches && chosen.microBatches > 1)
        add({}, MicroBatchesRule{chosen.microBatches, false, 0});
    for (std::size_t s = 0; s < chosen.groups.size(); ++s) {
        const StageGroup &group = chosen.groups[s];
        const PartitionProblem &problem = estimator.problemOf(chosen.ofStage(s));
        std::vector<OperatorId> operators;
        std::map<std::string, std::pair<std::vector<SplitStep>, std::vector<OperatorId>>> bySteps;
        for (std::size_t i = 0; i < estimate.stages->stageOf.size(); ++i) {
            if (estimate.stages->stageOf[i] != static_cast<std::int32_t>(s))
                continue;
            const OperatorId id{static_cast<std::int32_t>(i)};
            operators.push_back(id);
            auto steps = stepsOf(model, id, group, problem.choiceOf(i, estimate.byStage[s]->choice[i]));
            auto &own = bySteps[textOf(steps)];
            own.first = std::move(steps);
            own.second.push_back(id);
        }
        if (operators.empty())
            return Error{ErrorCode::InvalidInput, "a stage would be empty", "use fewer stages", "search"};
        std::vector<DeviceId> devices;
        for (std::int32_t d = 0; d < group.devices(); ++d)
            devices.push_back({group.first + d});
        add(stageSelector(index, operators), OpAssignRule{std::move(devices), {}});
        add(stageSelector(index, operators), StageRule{static_cast<std::int32_t>(s)});
        for (auto &[text, own] : bySteps) {
            if (own.second.size() == operators.size()) {
                add(stageSelector(index, operators), OpTransRule{own.first});
                continue;
            }
            for (Selector &selector : selectorsByName(index, own.second))
                add(std::move(selector), OpTransRule{own.first});
        }
    }
    if (!scheduleRowAt(asked, chosen.microBatches))
        add({}, ScheduleRule{chosen.schedule});
    if (chosen.zero > 0 && space.sharding.isLeft)
        for (Row &row : shardingChoice(model, asked, chosen.zero, "").rows)
            add(std::move(row.selector), std::move(row.rule));
    if (!space.ownRecompute && chosen.recompute != RecomputeWord::None) {
        TRY(const ConstraintTable rows, recomputeChoice(model, asked, chosen.recompute));
        for (const Row &each : rows.rows)
            add(each.selector, each.rule);
    }
    return table;
}

} // namespace planloom
