#include "engine/table/kinds/meaning.h"

#include "engine/table/kinds/beside.h"

#include <algorithm>

namespace planloom {

std::optional<OperatorMeaning> composedSplits(
    const OperatorMeaning &a, const OperatorMeaning &b, const std::vector<MeshAxis> &mesh)
{
    if (!a.splits() || !b.splits()) {
        OperatorMeaning both;
        both.axes = a.splits() ? a.axes : b.axes;
        both.within = a.splits() ? a.within : b.within;
        return both;
    }
    OperatorMeaning both;
    both.within = intersection(a.within, b.within);
    if (both.within.isEmpty())
        return std::nullopt;
    const auto sameAxes = [](const AxisMeaning &x, const AxisMeaning &y) { return x.axis == y.axis; };
    // Who speaks of a device's own parts says all there is.
    const bool whole = !a.within.isAnything() || !b.within.isAnything();
    if (whole
        && (a.within.isAnything() != b.within.isAnything()
            || !std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(), sameAxes)))
        return std::nullopt;
    both.axes = a.axes;
    for (const AxisMeaning &theirs : b.axes) {
        const auto mine = std::find_if(both.axes.begin(), both.axes.end(),
            [&](const AxisMeaning &each) { return each.axis == theirs.axis; });
        if (mine == both.axes.end()) {
            both.axes.push_back(theirs);
            continue;
        }
        mine->allowed = intersection(mine->allowed, theirs.allowed);
        if (mine->allowed.isEmpty())
            return std::nullopt;
    }
    std::stable_sort(both.axes.begin(), both.axes.end(), [&](const AxisMeaning &x, const AxisMeaning &y) {
        return meshPosition(mesh, x.axis) < meshPosition(mesh, y.axis);
    });
    return both;
}

AllowedPlaceSnapshot intersection(const AllowedPlaceSnapshot &a, const AllowedPlaceSnapshot &b)
{
    if (!a || !b || a == b)
        return a ? a : b;
    const auto onMesh = [](const AllowedPlaceSnapshot &place) {
        const Domain *exact = place->exact();
        return exact && exact->onMesh;
    };
    return std::make_shared<const AllowedPlace>(
        onMesh(b) && !onMesh(a) ? intersection(*b, *a) : intersection(*a, *b));
}

std::int64_t partsOf(const std::vector<Split> &splits, std::int32_t dimension)
{
    std::int64_t parts = 1;
    for (const Split &split : splits)
        if (split.kind == SplitKind::Dimension && (dimension < 0 || split.dimension == dimension))
            parts = std::min<std::int64_t>(parts * split.parts, kMostCount);
    return parts;
}

bool keepTo(const std::vector<PartsMeaning> &bounds, const std::vector<Split> &splits)
{
    return std::all_of(bounds.begin(), bounds.end(),
        [&](const PartsMeaning &each) { return each.bound.allows(partsOf(splits, each.dimension)); });
}

namespace {

/// What rows decide of how an operator is cut, alone.
std::vector<Split> exactSplits(const OperatorMeaning &meaning)
{
    std::vector<Split> splits;
    for (const AxisMeaning &axis : meaning.axes)
        if (const Split *exact = axis.allowed.exact())
            splits.push_back(*exact);
    if (const std::vector<Split> *within = meaning.within.exact())
        splits.insert(splits.end(), within->begin(), within->end());
    for (const Allowed<Split> *each : {&meaning.coshard, &meaning.slices})
        if (const Split *exact = each->exact())
            splits.push_back(*exact);
    return splits;
}

/// Whether some number of parts that two meanings decide together can still grow into one that both allow.
bool partsCanHold(const OperatorMeaning &a, const OperatorMeaning &b)
{
    if (a.parts.empty() && b.parts.empty())
        return true;
    std::vector<PartsMeaning> all = a.parts;
    all.insert(all.end(), b.parts.begin(), b.parts.end());
    std::vector<Split> splits = exactSplits(a);
    for (Split &split : exactSplits(b))
        if (std::find(splits.begin(), splits.end(), split) == splits.end())
            splits.push_back(std::move(split));
    for (const PartsMeaning &one : all) {
        std::vector<CountBound> bounds;
        for (const PartsMeaning &other : all)
            if (other.dimension == one.dimension)
                bounds.push_back(other.bound);
        const std::int64_t least = partsOf(splits, one.dimension);
        const bool grows = one.bound.kind == CountBound::Kind::OneOf
            ? std::any_of(one.bound.values.begin(), one.bound.values.end(),
                [&](std::int32_t value) { return value % least == 0; })
            : one.bound.kind == CountBound::Kind::AtLeast || least <= one.bound.values.front();
        if (!grows || !canAgree(bounds))
            return false;
    }
    return true;
}

} // namespace

std::optional<Aspect> clashOf(const OperatorMeaning &a, const OperatorMeaning &b)
{
    if (!composedSplits(a, b, {}))
        return Aspect::Split;
    if (!partsCanHold(a, b))
        return Aspect::Parts;
    if (const auto both = intersection(a.place, b.place); both && both->isEmpty())
        return Aspect::Place;
    if (intersection(a.coshard, b.coshard).isEmpty()
        || (a.coshardKeeps && b.coshardKeeps && *a.coshardKeeps != *b.coshardKeeps)
        || (!a.ring.empty() && !b.ring.empty() && a.ring != b.ring))
        return Aspect::Coshard;
    if (intersection(a.slices, b.slices).isEmpty())
        return Aspect::Slices;
    if (a.lanes && b.lanes && *a.lanes != *b.lanes)
        return Aspect::Lanes;
    if (intersection(a.stage, b.stage).isEmpty())
        return Aspect::Stage;
    // What is recomputed together is a group; an operator is in one.
    if ((a.recompute && b.recompute) || (a.recompute && b.keepsOutputs) || (a.keepsOutputs && b.recompute))
        return Aspect::Recompute;
    if (a.sharding && b.sharding && *a.sharding != *b.sharding)
        return Aspect::Sharding;
    if (a.precision && b.precision && clashingSetting(*a.precision, *b.precision))
        return Aspect::Precision;
    if (a.attention && b.attention && *a.attention != *b.attention)
        return Aspect::Attention;
    if (a.weightVersions && b.weightVersions && *a.weightVersions != *b.weightVersions)
        return Aspect::WeightVersions;
    if ((a.offloaded && b.staysOnDevice) || (a.staysOnDevice && b.offloaded))
        return Aspect::Offload;
    return std::nullopt;
}

Result<std::optional<OperatorMeaning>> meaningOf(const RowSetting &setting, const Rule &rule, OperatorId op)
{
    return std::visit(
        [&]<typename RuleType>(const RuleType &own) -> Result<std::optional<OperatorMeaning>> {
            if constexpr (MeansOfOperators<RuleType>)
                return RuleMeaning<RuleType>::of(setting, own, op);
            else
                return std::optional<OperatorMeaning>{};
        },
        rule);
}

Result<std::vector<OperatorId>> actsOn(
    const RowSetting &setting, const Rule &rule, const std::vector<OperatorId> &selected)
{
    return std::visit(
        [&]<typename RuleType>(const RuleType &own) -> Result<std::vector<OperatorId>> {
            if constexpr (MeansOfOperators<RuleType> || MeansOfSelections<RuleType>)
                return RuleMeaning<RuleType>::actsOn(setting, own, selected);
            else
                return std::vector<OperatorId>{};
        },
        rule);
}

PlanMeaning planMeaning(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const std::function<void(RowId, Error)> &failed)
{
    PlanMeaning plan;
    std::vector<std::size_t> held;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        if (!table.rows[i].enabled)
            continue;
        const RowId row{static_cast<std::int32_t>(i)};
        const Rule &rule = table.rows[i].rule;
        const auto applied = std::visit(
            [&]<typename RuleType>(const RuleType &own) -> Result<void> {
                if constexpr (requires {
                                  RuleMeaning<RuleType>::apply(model, deviceCount, own, row, plan);
                              }) {
                    for (const std::size_t other : held)
                        if (besides(*model.graph, rule, table.rows[other].rule) == Beside::Clash)
                            return clashError(*model.graph, rule, table.rows[other].rule,
                                RowId{static_cast<std::int32_t>(other)});
                    TRY_VOID(RuleMeaning<RuleType>::apply(model, deviceCount, own, row, plan));
                    held.push_back(i);
                }
                return {};
            },
            rule);
        if (!applied && failed)
            failed(row, applied.error());
    }
    if (const auto row = scheduleRowAt(table, plan.microBatches)) {
        const auto &rule = std::get<ScheduleRule>(table.rows[static_cast<std::size_t>(row->index)].rule);
        plan.scheduleRow = *row;
        plan.schedule = rule.kind;
        plan.order = rule.order;
    }
    return plan;
}

std::optional<std::int32_t> givenMicroBatches(const ConstraintTable &table)
{
    for (const Row &row : table.rows)
        if (const auto *rule = std::get_if<MicroBatchesRule>(&row.rule); rule && row.enabled)
            return rule->count;
    return std::nullopt;
}

std::optional<RowId> scheduleRowAt(const ConstraintTable &table, std::int32_t microBatches)
{
    std::optional<RowId> found;
    bool own = false;
    for (std::size_t i = 0; i < table.rows.size() && !own; ++i) {
        const auto *rule = std::get_if<ScheduleRule>(&table.rows[i].rule);
        if (!rule || !table.rows[i].enabled || rule->chosen || !rule->holdsAt(microBatches))
            continue;
        own = rule->microBatches > 0;
        if (own || !found)
            found = RowId{static_cast<std::int32_t>(i)};
    }
    return found;
}

RowSetting settingOf(const Model &model, std::int32_t deviceCount, const ConstraintTable &table)
{
    return {model, deviceCount, planMeaning(model, deviceCount, table).mesh};
}

} // namespace planloom
