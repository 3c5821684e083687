#include "engine/gesture/hold_free.h"

#include "engine/gesture/acting.h"
#include "engine/gesture/fit_splits.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/order_gesture.h"
#include "engine/gesture/row_steps.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

/// What the plan decided for an operator, as the steps of a row.
std::vector<BoundStep> plannedSteps(
    const GestureContext &context, OperatorId id, const OperatorDecision &decision)
{
    const Operator &op = context.graph().at(id);
    const std::int32_t batch = context.batch().operatorDimension[static_cast<std::size_t>(id.index)];
    std::vector<BoundStep> steps;
    for (const Split &split : decision.partition.splits) {
        if (split.over == SplitOver::Lanes)
            continue; // a row of their own makes them
        SplitStep step{.kind = split.kind,
            .dimension = {},
            .parts = split.parts,
            .sizes = split.sizes,
            .axis = split.axis};
        if (!split.axis.empty() || !split.sizes.empty())
            step.parts = 0;
        if (split.kind == SplitKind::Dimension && split.dimension == batch)
            step.dimension = {.kind = DimensionRef::Kind::Meaning, .name = {}};
        else if (split.kind == SplitKind::Dimension)
            step.dimension.name = op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].name;
        steps.push_back({-1, std::move(step), split});
    }
    return steps;
}

/// The devices of a decision as a place row would list them.
OpAssignRule plannedPlace(
    const GestureContext &context, const OperatorDecision &decision, std::size_t coshard)
{
    std::vector<DeviceId> devices;
    for (std::size_t i = 0; i < decision.devices.size(); i += coshard)
        devices.push_back(decision.devices[i]);
    const auto once = distinct(devices);
    if (devices.size() % once.size() == 0
        && repeated(once, static_cast<std::int32_t>(devices.size() / once.size())) == devices)
        devices = once;
    if (const auto part = partOfMesh(context.mesh, devices))
        return {{}, *part};
    return {devices, {}};
}

/// A decision as its slice row finds it: rows say what is done with each slice.
OperatorDecision withoutSlices(OperatorDecision decision)
{
    if (const auto slices = static_cast<std::size_t>(sliceCount(decision.partition)); slices > 1) {
        const std::size_t inLane =
            decision.devices.size() / static_cast<std::size_t>(laneCount(decision.partition));
        std::vector<DeviceId> devices;
        for (std::size_t i = 0; i < decision.devices.size(); ++i)
            if (i % inLane < inLane / slices)
                devices.push_back(decision.devices[i]);
        decision.devices = std::move(devices);
        decision.partition.splits.erase(decision.partition.splits.begin()
            + static_cast<std::ptrdiff_t>(blockSplits(decision.partition)) - 1);
    }
    return decision;
}

/// By stage: lanes run in it.
std::vector<bool> stagesInLanes(const Plan &plan)
{
    std::vector<bool> inLanes(static_cast<std::size_t>(plan.stageCount), false);
    for (const OperatorDecision &decision : plan.decisions)
        if (decision.stage.valid() && laneCount(decision.partition) > 1)
            inLanes[static_cast<std::size_t>(decision.stage.index)] = true;
    return inLanes;
}

bool overAxis(const BoundStep &step)
{
    return !step.split.axis.empty();
}

} // namespace

Proposal proposeHold(const GestureContext &context, const std::vector<OperatorId> &selected)
{
    Proposal proposal;
    proposal.words = "hold";
    const auto operators = actingForward(context, selected);
    if (operators.empty())
        return withRefusal(std::move(proposal), nothingSelected());
    proposal.words = "hold " + wordsFor(context.index(), operators);
    proposal.operators = operators;
    if (!context.plan)
        return withRefusal(std::move(proposal), refusalOf("there is no plan yet to hold", "plan"));
    const Subset subset(context.index(), operators);
    const auto bound = boundSteps(context, subset);
    const auto coshard = coshardSteps(context, subset);
    const auto placements = placementsOf(context, subset);
    const auto inLanes = stagesInLanes(*context.plan);
    RowEdits edits(context);
    StepWriter writer;
    std::vector<std::pair<OpAssignRule, std::vector<OperatorId>>> places;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const auto at = static_cast<std::size_t>(operators[i].index);
        if (at >= context.plan->decisions.size() || context.plan->decisions[at].devices.empty())
            continue;
        const OperatorDecision decision = withoutSlices(context.plan->decisions[at]);
        auto steps = plannedSteps(context, operators[i], decision);
        const bool cosharded = coshard[i].dimension >= 0 && coshard[i].parts > 1 && !steps.empty();
        if (cosharded)
            steps.pop_back(); // the innermost, which its own row makes
        // What cannot run in lanes stands where its stage's lanes end: a row would place it in all of them.
        const bool behindLanes =
            laneCount(decision.partition) == 1 && inLanes[static_cast<std::size_t>(decision.stage.index)];
        if (placements[i].line < 0 && !behindLanes) {
            const OpAssignRule rule =
                plannedPlace(context, decision, cosharded ? static_cast<std::size_t>(coshard[i].parts) : 1);
            const auto known = std::find_if(
                places.begin(), places.end(), [&](const auto &place) { return place.first == rule; });
            if (known != places.end())
                known->second.push_back(operators[i]);
            else
                places.push_back({rule, {operators[i]}});
        }
        // Rows over other axes may stand beside; a row with parts of its own says all there is to say.
        const bool allAxes = std::all_of(steps.begin(), steps.end(), overAxis)
            && std::all_of(bound[i].begin(), bound[i].end(), overAxis);
        if (!bound[i].empty() && !allAxes)
            continue;
        std::erase_if(steps, [&](const BoundStep &step) {
            return std::any_of(bound[i].begin(), bound[i].end(),
                [&](const BoundStep &b) { return b.split.axis == step.split.axis; });
        });
        writer.add(operators[i], steps);
    }
    writer.finish(edits);
    for (const auto &[rule, placed] : places)
        edits.append(gestureRow(edits.selectorOf(placed), rule));
    edits.finish(proposal);
    return proposal;
}

void freeSharding(const GestureContext &context, RowEdits &edits, std::int32_t line, const Row &row,
    const std::vector<OperatorId> &operators)
{
    const SelectorIndex &index = context.index();
    const Graph &graph = context.graph();
    const auto meant = actsOn(context, row.rule, index.select(row.selector));
    if (!meant)
        return;
    const std::vector<OperatorId> &steps = *meant;
    const auto freed = optimizersOf(index, operators);
    const auto left = subtracted(steps, freed);
    if (left.size() == steps.size())
        return;
    if (left.empty())
        return edits.remove(line);
    std::vector<std::string> names;
    const bool exclude = freed.size() < left.size();
    for (const OperatorId op : exclude ? freed : left)
        names.push_back(graph.at(op).name);
    Row narrowed = row;
    Selector set = selectSet(std::move(names));
    if (exclude) {
        Selector no{.kind = SelectorKind::Not};
        no.children.push_back(std::move(set));
        Selector both{.kind = SelectorKind::And};
        both.children.push_back(selectDirection(Direction::Optimizer));
        if (row.selector.kind != SelectorKind::Weight || row.selector.text != "*")
            both.children.push_back(row.selector);
        both.children.push_back(std::move(no));
        const auto now = ofOneDirection(graph, index.select(both));
        set = now == left ? std::move(both) : Selector{};
        if (now != left) {
            std::vector<std::string> kept;
            for (const OperatorId op : left)
                kept.push_back(graph.at(op).name);
            set = selectSet(std::move(kept));
        }
    }
    narrowed.selector = std::move(set);
    edits.replace(line, std::move(narrowed));
}

namespace {

/// Takes operators, and their backward ones, out of an order row.
void freeOrder(const GestureContext &context, RowEdits &edits, std::int32_t line, const Row &row,
    const OpOrderRule &rule, const std::vector<OperatorId> &operators)
{
    const SelectorIndex &index = context.index();
    const Graph &graph = context.graph();
    auto first = ofOneDirection(graph, index.select(row.selector));
    auto second = ofOneDirection(graph, index.select(rule.second));
    const bool paired = first.size() == second.size();
    const auto isFreed = [&](OperatorId op) {
        const Operator &itself = graph.at(op);
        const OperatorId forward = itself.direction == Direction::Backward ? itself.mirror : op;
        return std::binary_search(operators.begin(), operators.end(), forward);
    };
    const std::size_t before = first.size() + second.size();
    if (paired) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < first.size(); ++i) {
            if (isFreed(first[i]) || isFreed(second[i]))
                continue;
            first[kept] = first[i];
            second[kept++] = second[i];
        }
        first.resize(kept);
        second.resize(kept);
    } else {
        std::erase_if(first, isFreed);
        std::erase_if(second, isFreed);
    }
    if (first.size() + second.size() == before)
        return;
    // All with all must not become a pairing by chance.
    if (first.empty() || second.empty() || (!paired && first.size() == second.size() && first.size() > 1))
        return edits.remove(line);
    Row narrowed = row;
    narrowed.selector = directedSelector(index, first);
    OpOrderRule kept = rule;
    kept.second = directedSelector(index, second);
    narrowed.rule = std::move(kept);
    edits.replace(line, std::move(narrowed));
}

} // namespace

Proposal proposeFree(const GestureContext &context, const std::vector<OperatorId> &selected)
{
    Proposal proposal;
    proposal.words = "free";
    const auto operators = actingForward(context, selected);
    if (operators.empty())
        return withRefusal(std::move(proposal), nothingSelected());
    proposal.operators = operators;
    proposal.words = "free " + wordsFor(context.index(), operators);
    const SelectorIndex &index = context.index();
    std::vector<OperatorId> both = operators;
    for (const OperatorId op : operators) {
        if (const OperatorId mirror = context.graph().at(op).mirror; mirror.valid())
            both.push_back(mirror);
    }
    std::sort(both.begin(), both.end());
    const Subset forward(index, operators);
    const Subset withBackward(index, both);
    RowEdits edits(context);
    forEachRow(context, [&](std::int32_t line, const Row &row) {
        if (!hasSelector(row.rule) || row.selector.kind == SelectorKind::All)
            return;
        if (const auto *order = std::get_if<OpOrderRule>(&row.rule)) {
            if (!withBackward.selected(row.selector).empty() || !withBackward.selected(order->second).empty())
                freeOrder(context, edits, line, row, *order, operators);
        } else if (std::holds_alternative<OptimizerShardingRule>(row.rule)) {
            if (row.selector.kind != SelectorKind::Weight || row.selector.text != "*")
                freeSharding(context, edits, line, row, operators);
        } else if (const auto hit = forward.selected(row.selector); !hit.empty()) {
            edits.letGo(line, hit);
        }
    });
    fitFollowers(context, edits);
    edits.finish(proposal);
    return proposal;
}

std::vector<std::int32_t> rowsActingOn(const GestureContext &context, OperatorId op)
{
    std::vector<std::int32_t> lines;
    const Graph &graph = context.graph();
    if (op.index < 0 || static_cast<std::size_t>(op.index) >= graph.operators.size())
        return lines;
    const SelectorIndex &index = context.index();
    const Direction direction = graph.at(op).direction;
    const OperatorId acting = direction == Direction::Backward ? graph.at(op).mirror : op;
    const Subset itself(index, {op});
    const Subset subset(index, {acting});
    const std::vector<OperatorId> optimizers =
        direction == Direction::Optimizer ? std::vector<OperatorId>{} : optimizersOf(index, {acting});
    const Subset steps(index, optimizers);
    const auto onlyOptimizers = [&](const Selector &selector) {
        return !selectsForwardBeyond(index, selector, {});
    };
    const auto binds = [&](const Row &row) {
        if (const auto *order = std::get_if<OpOrderRule>(&row.rule)) {
            for (const Selector *selector : {&row.selector, &order->second}) {
                if (itself.selected(*selector).empty())
                    continue;
                const auto bound = ofOneDirection(graph, index.select(*selector));
                if (std::binary_search(bound.begin(), bound.end(), op))
                    return true;
            }
            return false;
        }
        if (std::holds_alternative<OptimizerShardingRule>(row.rule)) {
            if (direction == Direction::Optimizer) {
                const auto acted = actsOn(context, row.rule, index.select(row.selector));
                return acted && std::binary_search(acted->begin(), acted->end(), op);
            }
            return !optimizers.empty()
                && (!steps.selected(row.selector).empty() || !subset.selected(row.selector).empty());
        }
        if (subset.selected(row.selector).empty())
            return false;
        if (direction == Direction::Optimizer && !onlyOptimizers(row.selector))
            return false;
        const auto acted = actsOn(context, row.rule, {acting});
        if (!acted || acted->empty())
            return false;
        const auto meaning = meaningOf(context, row.rule, acting);
        return !meaning || meaning->has_value();
    };
    forEachRow(context, [&](std::int32_t line, const Row &row) {
        if (hasSelector(row.rule) && binds(row))
            lines.push_back(line);
    });
    return lines;
}

} // namespace planloom
