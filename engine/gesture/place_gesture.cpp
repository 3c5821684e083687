#include "engine/binding/followers.h"
#include "engine/binding/stage_numbers.h"
#include "engine/gesture/acting.h"
#include "engine/gesture/fit_splits.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/split_gesture.h"
#include "engine/gesture/stage_rows.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kFarthestLeader = 64; ///< How many operators back a neighbour's place is looked for.

bool anyPlaceRow(const GestureContext &context)
{
    bool any = false;
    forEachRule<OpAssignRule>(context, [&](std::int32_t, const Row &, const OpAssignRule &) { any = true; });
    return any;
}

/// True if no row places `op` or an operator whose place it takes: then it goes where its consumers are.
bool followsConsumers(const GestureContext &context, OperatorId op, const std::vector<OperatorId> &moved)
{
    std::vector<OperatorId> chain;
    for (int i = 0; op.valid() && i < kFarthestLeader; ++i) {
        if (std::binary_search(moved.begin(), moved.end(), op))
            return false;
        chain.push_back(op);
        op = leaderOf(context.index(), op).op;
    }
    std::sort(chain.begin(), chain.end());
    const Subset subset(context.index(), chain);
    bool placed = false;
    forEachRule<OpAssignRule>(context, [&](std::int32_t, const Row &row, const OpAssignRule &) {
        placed = placed || !subset.selected(row.selector).empty();
    });
    return !placed;
}

/// Writes rows that keep operators in their places which no row names and which would follow those that move.
void pinNeighbours(const GestureContext &context, RowEdits &edits, const std::vector<OperatorId> &moved)
{
    const SelectorIndex &index = context.index();
    if (!anyPlaceRow(context)) {
        // Nothing was placed so far: all the others stay everywhere.
        if (!selectsForwardBeyond(index, selectAll(), moved))
            return;
        Selector others{.kind = SelectorKind::Not};
        others.children.push_back(edits.selectorOf(moved));
        const Domain all = everywhere(context.mesh, context.deviceCount);
        edits.append(gestureRow(
            std::move(others), OpAssignRule{all.onMesh ? std::vector<DeviceId>{} : all.devices, {}}));
        return;
    }
    if (!context.plan)
        return;
    std::vector<OperatorId> consumers;
    std::vector<OperatorId> producers;
    for (const OperatorId op : moved) {
        for (const OperatorId user : forwardConsumers(index, op))
            consumers.push_back(user);
        for (const OperatorId maker : forwardProducers(index, op))
            producers.push_back(maker);
    }
    const auto neighbours = subtracted(
        united(forwardOnes(index.graph(), consumers), forwardOnes(index.graph(), producers)), moved);
    consumers = forwardOnes(index.graph(), consumers);
    const Subset subset(index, neighbours);
    const auto placements = placementsOf(context, subset);
    std::vector<std::pair<OpAssignRule, std::vector<OperatorId>>> pins;
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
        const OperatorId op = neighbours[i];
        if (placements[i].line >= 0 || !placements[i].known)
            continue;
        const OperatorId leader = leaderOf(index, op).op;
        const bool follows = leader.valid() && std::binary_search(moved.begin(), moved.end(), leader);
        if (!follows && !followsConsumers(context, op, moved))
            continue;
        const OpAssignRule rule = ruleOf(context, placements[i].domain);
        const auto known =
            std::find_if(pins.begin(), pins.end(), [&](const auto &pin) { return pin.first == rule; });
        if (known != pins.end())
            known->second.push_back(op);
        else
            pins.push_back({rule, {op}});
    }
    for (const auto &[rule, operators] : pins)
        edits.append(gestureRow(edits.selectorOf(operators), rule));
}

/// Takes the operators out of place rows that say something else. @return those that no row places there yet
std::vector<OperatorId> releaseFromPlaceRows(const GestureContext &context, RowEdits &edits,
    const std::vector<OperatorId> &operators, const Domain *domain)
{
    const Subset subset(context.index(), operators);
    std::vector<OperatorId> placed;
    forEachRule<OpAssignRule>(context, [&](std::int32_t line, const Row &row, const OpAssignRule &rule) {
        const auto selected = subset.selected(row.selector);
        if (selected.empty())
            return;
        if (domain && domainOf(context, rule) == *domain)
            placed = united(placed, selected);
        else
            edits.letGo(line, selected);
    });
    forEachRule<LayoutRule>(context, [&](std::int32_t line, const Row &row, const LayoutRule &rule) {
        if (const auto selected = subset.selected(row.selector); !selected.empty() && !rule.axis.empty())
            edits.letGo(line, selected);
    });
    return subtracted(operators, placed);
}

/// Moves operators to the stage that runs on these devices, where the data flow lets them.
void moveStage(const GestureContext &context, RowEdits &edits, const std::vector<OperatorId> &operators,
    const std::vector<DeviceId> &devices)
{
    std::vector<std::int32_t> stages = stagesByRow(context);
    const StageId target = stages.empty() ? StageId{} : stageOn(context, devices);
    if (!target.valid())
        return;
    std::vector<OperatorId> moved;
    for (const OperatorId op : operators) {
        std::int32_t &stage = stages[static_cast<std::size_t>(op.index)];
        if (stage != target.index)
            moved.push_back(op);
        stage = target.index;
    }
    if (moved.empty() || !numberStages(context.index(), stages).violations.empty())
        return;
    const Subset subset(context.index(), moved);
    forEachRule<StageRule>(context, [&](std::int32_t line, const Row &row, const StageRule &) {
        if (const auto selected = subset.selected(row.selector); !selected.empty())
            edits.letGo(line, selected);
    });
    edits.append(gestureRow(edits.selectorOf(moved), StageRule{target.index}));
}

/// Several devices that make up a part of the mesh, in its order, are that part.
Result<OpAssignRule> targetOf(const GestureContext &context, const PlaceGesture &gesture)
{
    OpAssignRule rule{gesture.devices, gesture.coordinates};
    if (!gesture.devices.empty())
        rule.coordinates.clear();
    TRY_VOID(RuleMeaning<OpAssignRule>::check(context, rule));
    if (rule.devices.size() > 1) {
        if (const auto part = partOfMesh(context.mesh, rule.devices))
            return OpAssignRule{{}, *part};
    }
    return rule;
}

Proposal freePlacement(const GestureContext &context, const std::vector<OperatorId> &operators)
{
    Proposal proposal;
    proposal.operators = operators;
    proposal.words = "free the place of " + wordsFor(context.index(), operators);
    RowEdits edits(context);
    releaseFromPlaceRows(context, edits, operators, nullptr);
    fitFollowers(context, edits);
    edits.finish(proposal);
    return proposal;
}

} // namespace

void movePlacement(const GestureContext &context, RowEdits &edits, const std::vector<OperatorId> &operators,
    const OpAssignRule &rule)
{
    const auto domain = domainOf(context, rule);
    const auto moved = releaseFromPlaceRows(context, edits, operators, domain ? &*domain : nullptr);
    if (moved.empty())
        return;
    edits.append(gestureRow(edits.selectorOf(moved), rule));
    pinNeighbours(context, edits, operators);
}

Proposal proposePlace(const GestureContext &context, const PlaceGesture &gesture)
{
    return proposePlaceOf(context, gesture, nullptr);
}

Proposal proposePlaceOf(const GestureContext &context, const PlaceGesture &gesture, const Selector *named)
{
    Proposal proposal;
    proposal.words = "place";
    const auto operators = actingForward(context, gesture.operators);
    if (operators.empty())
        return withRefusal(std::move(proposal), nothingSelected());
    if (gesture.devices.empty() && gesture.coordinates.empty())
        return freePlacement(context, operators);
    const std::string who = wordsFor(context.index(), operators);
    proposal.operators = operators;
    const auto rule = targetOf(context, gesture);
    if (!rule) {
        proposal.words += " " + who;
        return withRefusal(std::move(proposal), rule.error());
    }
    const bool byCoordinates = rule->devices.empty() && !rule->coordinates.empty();
    proposal.words = (gesture.replicate ? "replicate " : "place ") + who + (byCoordinates ? " at " : " on ")
        + wordsFor(context, *rule);
    const Domain domain = *domainOf(context, *rule);
    RowEdits edits(context);
    if (named)
        edits.name(operators, *named);
    const auto devices = distinct(domain.devices);
    if (gesture.replicate && devices.size() > 1) {
        const Subset subset(context.index(), operators);
        const auto bound = boundSteps(context, subset);
        SplitStep all{.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(devices.size())};
        std::vector<OperatorId> others;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            if (bound[i].size() == 1 && bound[i].front().step == all)
                continue;
            others.push_back(operators[i]);
            for (const BoundStep &step : bound[i])
                edits.letGo(step.line, {operators[i]});
        }
        if (!others.empty())
            edits.append(gestureRow(edits.selectorOf(others), OpTransRule{{all}}));
    } else if (auto refusal = fitSplits(context, edits, operators, domain))
        return withRefusal(std::move(proposal), std::move(refusal));
    movePlacement(context, edits, operators, *rule);
    moveStage(context, edits, operators, devices);
    edits.finish(proposal);
    return proposal;
}

} // namespace planloom
