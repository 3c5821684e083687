#include "engine/search/search_rows.h"

#include "engine/binding/followers.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/plan/followed_split.h"
#include "engine/search/memory/recompute_choice.h"
#include "engine/search/memory/turn_units.h"
#include "engine/table/domain.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

bool sameCut(const Split &a, const Split &b)
{
    return a.kind == b.kind && a.parts == b.parts
        && (a.kind != SplitKind::Dimension || (a.dimension == b.dimension && a.sizes == b.sizes));
}

/// A split as a row says it: its kind, the name of its dimension, the sizes of uneven parts, and whether its
/// parts lie in zigzags.
using SaidSplit = std::tuple<SplitKind, std::string, std::vector<std::int64_t>, bool>;

/// Whether an operator's split into equal parts cuts a sequence that twice as many parts would cut, too.
bool mayZigzag(const SelectorIndex &index, OperatorId op, const Split &split)
{
    if (split.kind != SplitKind::Dimension || !split.sizes.empty())
        return false;
    const DimensionClasses &classes = index.dimensions();
    const DimensionClassId own = classes.ofOperator[at(op)][at(split.dimension)];
    if (!own.valid())
        return false;
    const DimensionClassId sequence = leadingWith(classes, own, DimensionMeaning::Sequence);
    return sequence.valid() && classes.at(sequence).extent % (2 * std::int64_t{split.parts}) == 0;
}

/// Operators whose partition over an axis no row of the asked ones gives, and the default rule would not
/// choose.
/// @param own  of a choice: the split over the axis; @param other  that over the other one
/// @param zigzag  sequences are cut in zigzags
std::map<SaidSplit, std::vector<OperatorId>> toBeSaid(const PartitionProblem &problem,
    const std::vector<std::int32_t> &choice, const PlacedOperators &placed, Split OperatorChoice::*own,
    Split OperatorChoice::*other, bool zigzag)
{
    const AxisSetting &setting = problem.setting();
    const Graph &graph = *setting.model->graph;
    std::map<SaidSplit, std::vector<OperatorId>> bySplit;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i) {
        if (placed.isAside(i))
            continue;
        const OperatorId id{static_cast<std::int32_t>(i)};
        const Operator &op = graph.operators[i];
        const Split &wanted = problem.choiceOf(i, choice[i]).*own;
        if (setting.bound) {
            const auto &axes = setting.bound->of(id).allowed.axes;
            if (std::any_of(axes.begin(), axes.end(), [&](const AxisMeaning &axis) {
                    return axis.axis == wanted.axis && axis.allowed.exact();
                }))
                continue;
        }
        const Split whole{.kind = SplitKind::Replicate, .parts = wanted.parts, .axis = wanted.axis};
        Split byDefault = whole;
        bool isSure = true; // whatever is known of the other axis then
        if (const Leader leader = leaderOf(*setting.model->index, id); leader.op.valid()) {
            const auto l = at(leader.op);
            const Split &theirs = problem.choiceOf(l, choice[l]).*own;
            byDefault = followed(graph, leader, op, theirs, {}).value_or(whole);
            const Split &around = problem.choiceOf(i, choice[i]).*other;
            isSure = around.kind == SplitKind::Replicate
                || sameCut(byDefault, followed(graph, leader, op, theirs, {around}).value_or(whole));
        }
        // Numbers of parts, being cut alike, and lists of devices have the default rule choose otherwise.
        const bool isBound = setting.bound
            && (placed.isPlaced(i) || !setting.bound->of(id).allowed.parts.empty()
                || setting.bound->alikeOf(id).leader);
        if (sameCut(wanted, byDefault) && isSure && !isBound)
            continue;
        const std::string name = wanted.kind == SplitKind::Dimension
            ? op.annotation.dimensions[static_cast<std::size_t>(wanted.dimension)].name
            : std::string{};
        bySplit[{wanted.kind, name, wanted.sizes, zigzag && mayZigzag(*setting.model->index, id, wanted)}]
            .push_back(id);
    }
    return bySplit;
}

/// All operators but some forward ones.
Selector allBut(const SelectorIndex &index, const std::vector<bool> &left)
{
    std::vector<OperatorId> operators;
    for (std::size_t i = 0; i < left.size(); ++i)
        if (left[i])
            operators.push_back({static_cast<std::int32_t>(i)});
    if (operators.empty())
        return {};
    Selector others{.kind = SelectorKind::Not};
    others.children.push_back(stageSelector(index, operators));
    return others;
}

/// Whether some weight's gradients are summands on devices of the shards' axes.
bool addsUpOverShards(const PartitionProblem &problem, const std::vector<std::int32_t> &choice)
{
    const Graph &graph = *problem.setting().model->graph;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i)
        for (std::size_t slot = 0; slot < graph.operators[i].inputs.size(); ++slot) {
            const auto accumulation = problem.accumulationOf(i, slot, problem.choiceOf(i, choice[i]));
            if (accumulation && accumulation->sums != ShardAxes::None)
                return true;
        }
    return false;
}

} // namespace

Result<ConstraintTable> rowsOf(const StepEstimate &estimate, const PartitionProblem &problem,
    const PlacedOperators &placed, const Model &model, const SearchSpace &space, const ConstraintTable &asked,
    const std::string &zigzag)
{
    const Configuration &chosen = estimate.configuration;
    const SelectorIndex &index = *model.index;
    ConstraintTable table;
    const auto add = [&](Selector selector, Rule rule) {
        table.rows.push_back(templateRow(std::move(selector), std::move(rule)));
        table.rows.back().origin = RowOrigin::Solver;
    };
    if (!space.ownMesh) {
        MeshRule mesh = meshRule(chosen, space);
        if (!mesh.axes.empty())
            add({}, std::move(mesh));
    }
    if (!space.ownMicroBatches && chosen.microBatches > 1)
        add({}, MicroBatchesRule{chosen.microBatches, false, 0});
    if (chosen.replicas > 1) {
        const SplitStep step{.kind = SplitKind::Dimension,
            .dimension = {.kind = DimensionRef::Kind::Meaning, .name = {}},
            .parts = 0,
            .sizes = {},
            .axis = space.replicaAxis};
        const auto isSaid = [&](const Row &row) {
            const auto *rule = std::get_if<OpTransRule>(&row.rule);
            return rule && row.enabled
                && std::any_of(rule->steps.begin(), rule->steps.end(),
                    [&](const SplitStep &each) { return each.axis == space.replicaAxis; });
        };
        if (std::none_of(asked.rows.begin(), asked.rows.end(), isSaid))
            add(allBut(index, placed.aside), OpTransRule{{step}});
    }
    if (chosen.stages() > 1) {
        std::vector<std::vector<OperatorId>> stages(static_cast<std::size_t>(chosen.stages()));
        for (std::size_t i = 0; i < estimate.stages->stageOf.size(); ++i)
            stages[at(estimate.stages->stageOf[i])].push_back({static_cast<std::int32_t>(i)});
        for (std::size_t s = 0; s < stages.size(); ++s) {
            if (stages[s].empty())
                return Error{ErrorCode::InvalidInput, "a stage would be empty", "use fewer stages", "search"};
            const auto number = static_cast<std::int32_t>(s);
            std::vector<OperatorId> free = stages[s]; // that no row places
            std::erase_if(free, [&](OperatorId op) { return placed.isPlaced(at(op)); });
            if (!free.empty())
                add(stageSelector(index, free), OpAssignRule{{}, {{space.rankAxis, number % chosen.ranks}}});
            add(stageSelector(index, stages[s]), StageRule{number});
        }
        if (!scheduleRowAt(asked, chosen.microBatches))
            add({}, ScheduleRule{chosen.schedule});
    } else if (!placed.placed.empty()) { // else they would follow those that rows place
        const std::vector<MeshAxis> &mesh = problem.setting().bound->setting.mesh;
        if (std::find(placed.placed.begin(), placed.placed.end(), false) != placed.placed.end())
            add(allBut(index, placed.placed),
                OpAssignRule{mesh.empty() ? everywhere(mesh, 1).devices : std::vector<DeviceId>{}, {}});
    }
    const auto sayOver = [&](const std::string &axis, Split OperatorChoice::*own,
                             Split OperatorChoice::*other) {
        for (const auto &[split, operators] :
            toBeSaid(problem, estimate.partition->choice, placed, own, other, axis == zigzag)) {
            const auto &[kind, name, sizes, isZigzag] = split;
            SplitStep step{.kind = kind,
                .dimension = {.kind = DimensionRef::Kind::Identifier, .name = name},
                .parts = 0,
                .sizes = sizes,
                .axis = axis,
                .zigzag = isZigzag};
            for (Selector &selector : selectorsByName(index, operators))
                add(std::move(selector), OpTransRule{{step}});
        }
    };
    if (chosen.outerShards > 1)
        sayOver(space.outerShardAxis, &OperatorChoice::outer, &OperatorChoice::split);
    if (chosen.shards > 1)
        sayOver(space.shardAxis, &OperatorChoice::split, &OperatorChoice::outer);
    // Updates are shared out by those that have gradients to be added up: other replicas would only be more
    // groups to launch collectives for.
    if (chosen.zero > 0 && space.sharding.isLeft)
        for (Row &row : shardingChoice(model, asked, chosen.zero,
                 addsUpOverShards(problem, estimate.partition->choice) ? "" : space.replicaAxis)
                            .rows)
            add(std::move(row.selector), std::move(row.rule));
    if (!space.ownRecompute && chosen.recompute != RecomputeWord::None) {
        TRY(ConstraintTable rows, recomputeChoice(model, asked, chosen.recompute));
        for (Row &each : rows.rows) {
            each.origin = RowOrigin::Solver;
            table.rows.push_back(std::move(each));
        }
    }
    if (estimate.stages->units && !estimate.stages->turns.empty()) {
        std::vector<std::int32_t> turns;
        for (const TurnUnit &unit : estimate.stages->units->units)
            turns.push_back(estimate.stages->turns[at(unit.operators.front())]);
        for (Row &row : turnRows(model, estimate.stages->units->units, turns).rows)
            add(std::move(row.selector), std::move(row.rule));
    }
    return table;
}

} // namespace planloom
