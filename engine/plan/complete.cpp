#include "engine/plan/complete.h"

#include "engine/plan/block_places.h"
#include "engine/plan/clip_rule.h"
#include "engine/plan/coshard_regions.h"
#include "engine/plan/default_rule.h"
#include "engine/plan/idle_rows.h"
#include "engine/plan/optimizer_rule.h"
#include "engine/plan/plan_draft.h"
#include "engine/plan/precision_rule.h"
#include "engine/plan/preferences.h"
#include "engine/plan/ring.h"
#include "engine/plan/scale_units_rule.h"
#include "engine/plan/stages.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::int32_t kMostDevices = 65536;

/// A backward operator of lanes: what adds up what all lanes gave, one lane does for all of them; what reads
/// nothing of theirs, each does itself.
void mirrorLanes(PlanDraft &draft, OperatorId id)
{
    const Operator &op = draft.graph().at(id);
    OperatorDecision &decision = draft.decisionOf(id);
    auto &splits = decision.partition.splits;
    const std::int32_t lanes = laneCount(decision.partition);
    const auto everywhere = draft.inEveryLane.find(op.mirror);
    const bool reads = draft.readsOfLanes(op);
    if (lanes > 1 && splits.front().kind == SplitKind::Replicate && reads) {
        splits.erase(splits.begin());
        decision.devices.resize(decision.devices.size() / static_cast<std::size_t>(lanes));
    } else if (everywhere != draft.inEveryLane.end() && !reads) {
        const auto parts = static_cast<std::int32_t>(everywhere->second.size() / decision.devices.size());
        splits.insert(splits.begin(),
            {.kind = SplitKind::Replicate,
                .parts = parts,
                .axis = draft.bindingOf(op.mirror).allowed.lanes->axis,
                .over = SplitOver::Lanes});
        decision.devices = everywhere->second;
    }
    if (reads || (lanes > 1 && splits.front().kind == SplitKind::Dimension))
        draft.noteOfLanes(op);
}

/// Backward operators do as their forwards.
void mirrorDecisions(PlanDraft &draft)
{
    const Graph &graph = draft.graph();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Backward)
            continue;
        OperatorDecision decision = draft.decisionOf(op.mirror);
        decision.partition = mirrored(op, decision.partition);
        decision.recomputeGroup = -1;
        decision.offloaded = false;
        decision.why = "as its forward operator";
        draft.plan.decisions[i] = std::move(decision);
        if (!draft.ofLanes.empty())
            mirrorLanes(draft, {static_cast<std::int32_t>(i)});
    }
}

/// Gives attentions the modes that rows ask for.
void chooseAttentions(PlanDraft &draft)
{
    for (std::size_t i = 0; i < draft.plan.decisions.size(); ++i) {
        const auto &asked = draft.bound.bindings[i].allowed.attention;
        if (asked)
            draft.plan.decisions[i].attention = *asked;
    }
}

/// Has the operators that rows ask for read older versions of their weights.
void chooseWeightVersions(PlanDraft &draft)
{
    for (std::size_t i = 0; i < draft.plan.decisions.size(); ++i)
        draft.plan.decisions[i].weightVersions = draft.bound.bindings[i].allowed.weightVersions.value_or(1);
}

/// Gives the gradients of weights a pass of their own where rows or the schedule ask for one.
void splitBackwardPasses(PlanDraft &draft)
{
    const bool everywhere = splitsBackward(draft.plan.schedule) || splitsBackward(draft.plan.order);
    for (std::size_t i = 0; i < draft.plan.decisions.size(); ++i)
        draft.plan.decisions[i].splitBackward = draft.graph().operators[i].direction == Direction::Forward
            && draft.plan.decisions[i].coshardRegion < 0 // whose parts go through in one pass
            && (everywhere || draft.bound.bindings[i].allowed.splitBackward);
}

/// Sends to host memory what rows ask for. After all other decisions about optimizers, which start anew.
void chooseOffloads(PlanDraft &draft)
{
    for (std::size_t i = 0; i < draft.plan.decisions.size(); ++i) {
        const OperatorBinding &binding = draft.bound.bindings[i];
        if (binding.allowed.offloaded != true)
            continue;
        OperatorDecision &decision = draft.plan.decisions[i];
        decision.offloaded = true;
        decision.rows.push_back(RowId{binding.rowOf(Aspect::Offload)});
        std::sort(decision.rows.begin(), decision.rows.end());
    }
}

/// Refuses slices or lanes that would wait for one another, where a row asks for them.
void checkBlocks(PlanDraft &draft)
{
    auto placed = placeBlocks(draft.plan);
    if (placed)
        return;
    const Error error = std::move(placed).error();
    const auto rowOf = [](const OperatorBinding &binding) {
        return firstRow({binding.rowOf(Aspect::Slices), binding.rowOf(Aspect::Lanes)});
    };
    for (std::size_t i = 0; i < draft.bound.bindings.size(); ++i)
        if (rowOf(draft.bound.bindings[i]) >= 0
            && error.where == "operator:" + draft.graph().operators[i].name)
            return draft.bound.fail(rowOf(draft.bound.bindings[i]), error);
    for (const OperatorBinding &binding : draft.bound.bindings)
        if (rowOf(binding) >= 0)
            return draft.bound.fail(rowOf(binding), error);
}

/// The pairs that order rows ask for.
void addOrders(PlanDraft &draft)
{
    for (const BoundTable::Pairs &order : draft.bound.orders) {
        const auto &rule = std::get<OpOrderRule>(draft.table.rows[static_cast<std::size_t>(order.row)].rule);
        const auto &[firsts, seconds] = order.sides;
        // All with all takes as many constraints as the larger selection has operators, each named at least
        // once.
        for (std::size_t i = 0; i < std::max(firsts.size(), seconds.size()); ++i) {
            draft.plan.orders.push_back({firsts[std::min(i, firsts.size() - 1)],
                seconds[std::min(i, seconds.size() - 1)], rule.microBatchOffset, RowId{order.row},
                rule.microBatch, !order.sides.paired(), rule.part, rule.secondPart});
        }
    }
}

void addCommunicationOrders(PlanDraft &draft)
{
    for (BoundTable::Pairs &order : draft.bound.communications) {
        const auto &rule =
            std::get<CommunicateRule>(draft.table.rows[static_cast<std::size_t>(order.row)].rule);
        draft.plan.communicationOrders.push_back({order.sides.first, order.sides.second, rule.part,
            rule.secondPart, rule.before, rule.microBatchOffset, rule.microBatch, RowId{order.row}});
    }
}

/// Gives the plan's stages the limits of in-flight rows.
void limitStages(PlanDraft &draft)
{
    const auto stages = static_cast<std::size_t>(draft.plan.stageCount);
    std::vector<std::int32_t> limits(stages, 0);
    std::vector<RowId> rows(stages, RowId{});
    bool any = false;
    const bool trains = std::any_of(draft.graph().operators.begin(), draft.graph().operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    for (std::size_t i = 0; i < draft.table.rows.size(); ++i) {
        const auto *rule = std::get_if<InFlightRule>(&draft.table.rows[i].rule);
        if (!rule || !draft.table.rows[i].enabled)
            continue;
        const auto row = static_cast<std::int32_t>(i);
        auto limited = RuleMeaning<InFlightRule>::stagesOf(*rule, draft.plan.stageCount);
        if (!limited) {
            draft.bound.fail(row, std::move(limited).error());
            continue;
        }
        if (!trains) {
            draft.bound.reports[i].warning = "nothing is in flight: the model has no backward pass";
            continue;
        }
        for (const std::int32_t s : *limited) {
            const auto stage = static_cast<std::size_t>(s);
            if (rows[stage].valid() && limits[stage] != rule->count) {
                draft.bound.failBoth(draft.table, row, rows[stage].index,
                    "give stage " + std::to_string(s) + " different numbers of micro-batches in flight",
                    "switch one of the rows off, or name other stages");
                break;
            }
            limits[stage] = rule->count;
            rows[stage] = RowId{row};
            any = true;
        }
    }
    if (any && !draft.failed()) {
        draft.plan.inFlight = std::move(limits);
        draft.plan.inFlightRows = std::move(rows);
    }
}

/// Gives the plan the pairs of blocks of interleave rows.
void interleaveBlocks(PlanDraft &draft)
{
    for (std::size_t i = 0; i < draft.table.rows.size(); ++i) {
        const auto *rule = std::get_if<InterleaveRule>(&draft.table.rows[i].rule);
        if (!rule || !draft.table.rows[i].enabled)
            continue;
        const auto row = static_cast<std::int32_t>(i);
        auto pairs =
            RuleMeaning<InterleaveRule>::pairsOf(*rule, draft.plan.stageCount, draft.plan.microBatches);
        if (!pairs) {
            draft.bound.fail(row, std::move(pairs).error());
            continue;
        }
        for (const auto &[first, second] : *pairs)
            draft.plan.interleaved.push_back({StageId{first}, rule->first, StageId{second}, rule->second,
                rule->microBatchOffset, RowId{row}, rule->lane, rule->secondLane});
    }
}

PlanDraft draftOf(
    const Model &model, std::int32_t deviceCount, const ConstraintTable &table, const ScaleUnits &units)
{
    PlanDraft draft{table, bindTable(model, deviceCount, table)};
    draft.plan.graph = model.graph;
    draft.plan.batch = model.batch;
    draft.plan.deviceCount = deviceCount;
    draft.plan.units = units;
    draft.plan.decisions.assign(model.graph->operators.size(), {});
    const PlanMeaning &said = draft.bound.plan;
    draft.plan.microBatches = said.microBatches;
    draft.plan.wholeBatches = said.wholeBatches;
    draft.plan.updates = said.updates;
    draft.plan.schedule = said.schedule;
    draft.plan.order = said.order;
    draft.plan.overlap = said.overlap;
    draft.domainNumber(everywhere(said.mesh, deviceCount));
    return draft;
}

/// Completes rows without preferences to the plan of one unit.
/// @param shardings  by operator: the row that shares its update out over the units, -1 without; may be empty
Result<Completion> completeOne(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const CompletionOptions &options, const ScaleUnits &units, const std::vector<std::int32_t> &shardings)
{
    PlanDraft draft = draftOf(model, deviceCount, table, units);
    if (!draft.failed())
        (options.decider ? *options.decider : defaultDecider()).decide(draft);
    if (!draft.failed())
        assignStages(draft);
    if (!draft.failed())
        limitStages(draft);
    if (!draft.failed())
        interleaveBlocks(draft);
    if (!draft.failed()) {
        addOrders(draft);
        addCommunicationOrders(draft);
        chooseRings(draft);
        assignCoshardRegions(draft);
        assignRecomputeGroups(draft);
        chooseAttentions(draft);
        chooseWeightVersions(draft);
        splitBackwardPasses(draft);
        mirrorDecisions(draft);
        warnOfIdleRows(draft);
        checkBlocks(draft);
        decideOptimizers(draft);
        shareOutUpdates(draft, shardings);
        groupShardedWeights(draft);
        chooseOffloads(draft);
        decidePrecisions(draft, options.precision);
        decideClipping(draft);
    }
    Completion completion;
    completion.rows = std::move(draft.bound.reports);
    if (draft.bound.failed)
        return completion;
    if (auto valid = validate(draft.plan); !valid) {
        Error error = std::move(valid).error();
        error.message = "the completed plan does not hold: " + error.message;
        return error;
    }
    completion.plan = std::move(draft.plan);
    return completion;
}

/// The rows that are off in a unit's table act as they would on all devices.
Result<Completion> completeUnits(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const TableInUnits &inUnits, const CompletionOptions &options)
{
    const Graph &graph = *model.graph;
    const PlanMeaning whole = planMeaning(model, deviceCount, table);
    const RowSetting setting{model, deviceCount, whole.mesh};
    std::vector<std::int32_t> shardings(graph.operators.size(), -1);
    std::map<std::int32_t, std::int32_t> bound; // by row
    for (const std::int32_t row : inUnits.shardingRows) {
        const Row &itself = table.rows[static_cast<std::size_t>(row)];
        const auto selected = model.index->select(itself.selector);
        TRY(const auto acted,
            RuleMeaning<OptimizerShardingRule>::actsOn(
                setting, std::get<OptimizerShardingRule>(itself.rule), selected));
        for (const OperatorId op : acted)
            shardings[static_cast<std::size_t>(op.index)] = row;
        bound[row] = static_cast<std::int32_t>(acted.size());
    }
    bound[inUnits.batchRow] =
        boundAlone(setting, whole.microBatches, table.rows[static_cast<std::size_t>(inUnits.batchRow)]);
    TRY(Completion completion,
        completeOne(model, inUnits.deviceCount, inUnits.table, options, inUnits.units, shardings));
    for (const auto &[row, count] : bound)
        completion.rows[static_cast<std::size_t>(row)].bound = count;
    for (std::size_t o = 0; completion.plan.graph && o < graph.operators.size(); ++o) {
        OperatorDecision &decision = completion.plan.decisions[o];
        if (graph.operators[o].direction != Direction::Optimizer && model.batch->operatorDimension[o] >= 0) {
            decision.rows.push_back(RowId{inUnits.batchRow});
            std::sort(decision.rows.begin(), decision.rows.end());
        }
    }
    return completion;
}

} // namespace

Result<Completion> completePlan(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const CompletionOptions &options)
{
    if (!model)
        return Error{ErrorCode::InvalidInput, "there is no model to plan", "", "plan"};
    if (deviceCount < 1 || deviceCount > kMostDevices) {
        return Error{ErrorCode::InvalidInput,
            "expected 1 to " + std::to_string(kMostDevices) + " devices, found "
                + std::to_string(deviceCount),
            "", "devices"};
    }
    if (hasPreferences(table))
        return completeWithPreferences(model, deviceCount, table, options);
    if (options.units == UseUnits::WherePossible
        || (options.units == UseUnits::WhereLarge && deviceCount > kMostExplicitDevices))
        if (const auto inUnits = findUnits(model, deviceCount, table, options.alike))
            return completeUnits(model, deviceCount, table, *inUnits, options);
    return completeOne(model, deviceCount, table, options, {}, {});
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
