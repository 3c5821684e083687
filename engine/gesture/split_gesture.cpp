#include "engine/gesture/split_gesture.h"

#include "engine/gesture/acting.h"
#include "engine/gesture/narrow.h"
#include "engine/gesture/split_refusal.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

bool sameTarget(const Split &a, const Split &b)
{
    return a.kind == b.kind && (a.kind != SplitKind::Dimension || a.dimension == b.dimension);
}

/// The splits of one operator before and after.
struct Rewrite {
    std::vector<BoundStep> after{}; ///< Sorted.
    std::vector<std::int32_t> lines{}; ///< Rows that let go of the operator.
    std::vector<BoundStep> written{}; ///< What new rows say.
};

/// A mesh axis dropped on an operator that does not run along it: where it is to run instead.
OpAssignRule alongAxes(
    const GestureContext &context, const Domain &domain, const std::vector<BoundStep> &steps)
{
    std::vector<AxisCoordinate> fixed = domain.fixed;
    if (!domain.onMesh) {
        const auto first = coordinatesOf(context.mesh, domain.devices.front());
        for (std::size_t i = 0; first && i < context.mesh.size(); ++i) {
            const bool shared =
                std::all_of(domain.devices.begin(), domain.devices.end(), [&](DeviceId device) {
                    const auto other = coordinatesOf(context.mesh, device);
                    return other && (*other)[i] == (*first)[i];
                });
            if (shared && context.mesh[i].size > 1)
                fixed.push_back({context.mesh[i].name, (*first)[i]});
        }
    }
    std::erase_if(fixed, [&](const AxisCoordinate &c) {
        return std::any_of(
            steps.begin(), steps.end(), [&](const BoundStep &step) { return step.split.axis == c.axis; });
    });
    return {{}, fixed};
}

/// What the solver chose gives way to a split over no axis: it was chosen without knowing of that one, and
/// with both of them there would be more parts than devices.
bool givesWay(const GestureContext &context, const BoundStep &old, const std::vector<BoundStep> &added)
{
    return context.document.lines()[static_cast<std::size_t>(old.line)]->row->origin == RowOrigin::Solver
        && std::any_of(
            added.begin(), added.end(), [](const BoundStep &step) { return step.split.axis.empty(); });
}

Rewrite rewrite(const GestureContext &context, const std::vector<BoundStep> &before,
    const std::vector<BoundStep> &added, const std::vector<Split> &takenAway,
    const std::map<std::int32_t, bool> &exact)
{
    Rewrite made;
    std::vector<BoundStep> kept;
    for (const BoundStep &old : before) {
        const bool gone = givesWay(context, old, added)
            || std::any_of(takenAway.begin(), takenAway.end(),
                [&](const Split &split) { return sameTarget(old.split, split); })
            || std::any_of(added.begin(), added.end(), [&](const BoundStep &step) {
                   return (!old.split.axis.empty() && old.split.axis == step.split.axis)
                       || (sameTarget(old.split, step.split)
                           && (old.split.axis.empty() || exact.at(old.line)));
               });
        if (gone)
            made.lines.push_back(old.line);
        else
            kept.push_back(old);
    }
    made.after = kept;
    made.after.insert(made.after.end(), added.begin(), added.end());
    sortSteps(context, made.after);
    // Rows with a step over no axis compose with no other row: then one row says it all.
    const bool inner = std::any_of(
        made.after.begin(), made.after.end(), [](const BoundStep &step) { return step.split.axis.empty(); });
    const bool changes = !added.empty() || !made.lines.empty();
    if (inner && changes) {
        for (const BoundStep &old : before)
            made.lines.push_back(old.line);
    }
    std::sort(made.lines.begin(), made.lines.end());
    made.lines.erase(std::unique(made.lines.begin(), made.lines.end()), made.lines.end());
    for (const BoundStep &step : made.after) {
        if (changes && (step.line < 0 || std::binary_search(made.lines.begin(), made.lines.end(), step.line)))
            made.written.push_back(step);
    }
    return made;
}

} // namespace

Proposal proposeSteps(const GestureContext &context, const std::vector<OperatorId> &operators,
    const std::vector<SplitStep> &steps, std::string words, const Selector *named)
{
    Proposal proposal;
    proposal.words = std::move(words);
    const Subset subset(context.index(), operators);
    const auto before = boundSteps(context, subset);
    const auto coshard = coshardSteps(context, subset);
    const auto placements = placementsOf(context, subset);
    std::map<std::int32_t, bool> exact; // rows that speak of these operators alone
    for (const auto &bound : before) {
        for (const BoundStep &step : bound) {
            if (exact.contains(step.line))
                continue;
            const Row &row = *context.document.lines()[static_cast<std::size_t>(step.line)]->row;
            exact[step.line] = subset.selected(row.selector).size() == operators.size()
                && !selectsForwardBeyond(context.index(), row.selector, operators);
        }
    }

    RowEdits edits(context);
    if (named)
        edits.name(operators, *named);
    StepWriter writer;
    std::vector<std::pair<OpAssignRule, std::vector<OperatorId>>> moves;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const OperatorId op = operators[i];
        std::vector<BoundStep> added;
        std::vector<Split> takenAway;
        bool meant = false;
        for (const SplitStep &step : steps) {
            auto split = madeBy(context, op, step);
            if (!split)
                return withRefusal(std::move(proposal), std::move(split).error());
            if (*split) {
                added.push_back({-1, step, **split});
                meant = true;
                continue;
            }
            SplitStep whole = step; // a single part, or a dimension that this operator does not have
            whole.parts = 2;
            whole.sizes.clear();
            whole.axis.clear();
            if (auto target = madeBy(context, op, whole); target && *target) {
                takenAway.push_back(**std::move(target));
                meant = true;
            }
        }
        if (!meant)
            continue;
        proposal.operators.push_back(op);
        Rewrite made = rewrite(context, before[i], added, takenAway, exact);
        if (auto refusal = checkSteps(context, op, made.after, coshard[i]))
            return withRefusal(std::move(proposal), std::move(refusal));
        Domain domain = placements[i].domain;
        const bool overAxes = std::any_of(
            added.begin(), added.end(), [](const BoundStep &step) { return !step.split.axis.empty(); });
        if (overAxes && (!domain.onMesh || !spans(domain, made.after))) {
            const OpAssignRule rule = alongAxes(context, domain, made.after);
            domain = domainOnMesh(context.mesh, rule.coordinates);
            const auto known = std::find_if(
                moves.begin(), moves.end(), [&](const auto &move) { return move.first == rule; });
            if (known != moves.end())
                known->second.push_back(op);
            else
                moves.push_back({rule, {op}});
        }
        if (auto refusal = checkDealing(context, op, made.after, domain))
            return withRefusal(std::move(proposal), std::move(refusal));
        for (const std::int32_t line : made.lines)
            edits.letGo(line, {op});
        writer.add(op, made.written);
    }
    if (proposal.operators.empty())
        return withRefusal(std::move(proposal),
            refusalOf("none of these operators has the dimension "
                    + (steps.empty() ? std::string() : print(steps.front().dimension)),
                placeOf(context.graph(), operators.front()), "pick a dimension that its chips show"));
    writer.finish(edits);
    for (const auto &[rule, moved] : moves)
        movePlacement(context, edits, moved, rule);
    edits.finish(proposal);
    return proposal;
}

namespace {

/// How a row names a dimension of `on`, so that it fits all operators.
std::optional<DimensionRef> referenceTo(const GestureContext &context,
    const std::vector<OperatorId> &operators, OperatorId on, std::int32_t dimension)
{
    const Graph &graph = context.graph();
    const Operator &op = graph.at(on);
    const std::string &name = op.annotation.dimensions[static_cast<std::size_t>(dimension)].name;
    const auto alike = [&](const Annotation &other) {
        const Annotation &mine = op.annotation;
        return other.inputs == mine.inputs && other.outputs == mine.outputs
            && std::equal(other.dimensions.begin(), other.dimensions.end(), mine.dimensions.begin(),
                mine.dimensions.end(),
                [](const Dimension &a, const Dimension &b) { return a.name == b.name; });
    };
    if (std::all_of(operators.begin(), operators.end(),
            [&](OperatorId other) { return alike(graph.at(other).annotation); }))
        return DimensionRef{.kind = DimensionRef::Kind::Identifier, .name = name};
    const auto fits = [&](const DimensionRef &ref) {
        return std::all_of(operators.begin(), operators.end(), [&](OperatorId other) {
            return madeBy(context, other, {.kind = SplitKind::Dimension, .dimension = ref, .parts = 2})
                .has_value();
        });
    };
    if (context.batchOf(on) == dimension)
        return DimensionRef{.kind = DimensionRef::Kind::Meaning, .name = {}};
    std::optional<DimensionRef> found;
    const auto look = [&](const std::vector<TensorTerms> &tensors, DimensionRef::Kind kind) {
        for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
            const auto &terms = tensors[slot].terms;
            for (std::size_t t = 0; t < terms.size() && !tensors[slot].opaque; ++t) {
                if (splittableFactor(op.annotation, terms[t]) != dimension)
                    continue;
                const bool last = t + 1 == terms.size();
                DimensionRef ref{.kind = kind,
                    .name = {},
                    .slot = static_cast<std::int32_t>(slot),
                    .dimension = last ? -1 : static_cast<std::int32_t>(t)};
                if (!found || (!fits(*found) && fits(ref)))
                    found = ref;
            }
        }
    };
    look(op.annotation.outputs, DimensionRef::Kind::Output);
    look(op.annotation.inputs, DimensionRef::Kind::Input);
    return found;
}

} // namespace

Proposal proposeSplit(const GestureContext &context, const SplitGesture &gesture)
{
    Proposal proposal;
    const auto operators = actingForward(context, gesture.operators);
    const Graph &graph = context.graph();
    SplitStep step{.kind = gesture.kind,
        .dimension = {},
        .parts = gesture.axis.empty() ? gesture.parts : 0,
        .sizes = {},
        .axis = gesture.axis};
    const std::string amount =
        gesture.axis.empty() ? " by " + std::to_string(gesture.parts) : " over " + gesture.axis;
    std::string what = gesture.kind == SplitKind::Replicate ? "replicate" : "split the value";
    const bool known =
        gesture.on.valid() && static_cast<std::size_t>(gesture.on.index) < graph.operators.size();
    if (operators.empty() || !known) {
        proposal.words = what + amount;
        return withRefusal(std::move(proposal), nothingSelected());
    }
    OperatorId on = gesture.on;
    if (graph.at(on).direction == Direction::Backward)
        on = graph.at(on).mirror;
    if (gesture.kind == SplitKind::Dimension) {
        const Operator &op = graph.at(on);
        if (gesture.dimension < 0
            || static_cast<std::size_t>(gesture.dimension) >= op.annotation.dimensions.size()) {
            proposal.words = "split" + amount;
            return withRefusal(
                std::move(proposal), refusalOf(op.name + " has no such dimension", placeOf(graph, on)));
        }
        what = "split " + labelOf(op.annotation, gesture.dimension);
        proposal.words = what + amount;
        proposal.operators = operators;
        if (const std::string lock = lockOf(op, gesture.dimension); !lock.empty())
            return withRefusal(std::move(proposal),
                refusalOf(lock + ": it can't be split",
                    placeOf(graph, on,
                        op.annotation.dimensions[static_cast<std::size_t>(gesture.dimension)].name)));
        const auto reference = referenceTo(context, operators, on, gesture.dimension);
        if (!reference)
            return withRefusal(std::move(proposal),
                refusalOf("the operators selected don't share this dimension", placeOf(graph, on),
                    "select operators of one kind, or split one of them"));
        step.dimension = *reference;
    }
    if (gesture.axis.empty() && gesture.parts < 1) {
        proposal.words = what + amount;
        proposal.refusal =
            refusalOf("an operator can't be split into " + std::to_string(gesture.parts) + " parts",
                placeOf(graph, on));
        return proposal;
    }
    const bool away = gesture.axis.empty() && gesture.parts == 1;
    return proposeSteps(context, operators, {step}, away ? "no longer " + what : what + amount);
}

} // namespace planloom
