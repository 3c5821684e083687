// Rows about the whole plan: mesh, micro-batches, schedule, in-flight, sizes of the inputs.
#include "engine/base/words.h"
#include "engine/table/kinds/beside.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

Error invalidRule(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), {}};
}

/// What the plan has of a degree, where a row has given it.
std::optional<std::int64_t> givenOf(Degree degree, const PlanMeaning &plan)
{
    if (degree == Degree::MicroBatches)
        return plan.microBatchesRow.valid() ? std::optional<std::int64_t>(plan.microBatches) : std::nullopt;
    const auto role = roleOf(degree);
    if (plan.mesh.empty() || !role)
        return std::nullopt;
    return sizeOfRole(plan.mesh, *role);
}

Result<void> keepsTo(const DegreeRule &rule, RowId row, const PlanMeaning &plan)
{
    const auto given = givenOf(rule.degree, plan);
    if (!given || rule.bound.allows(*given))
        return {};
    const RowId by = rule.degree == Degree::MicroBatches ? plan.microBatchesRow : plan.meshRow;
    return invalidRule("'" + print(Rule{rule}) + "' of " + rowWords(row.index)
            + " does not hold: " + rowWords(by.index) + " makes it " + std::to_string(*given),
        "change one of the two rows, or switch it off");
}

/// Of the rows about degrees that came before.
Result<void> keepsToDegrees(const PlanMeaning &plan)
{
    for (const auto &[row, rule] : plan.degrees)
        TRY_VOID(keepsTo(rule, row, plan));
    return {};
}

// What a row about the whole plan adds to what those before it say together, or why it cannot hold.

Result<void> applyRule(const Model &, std::int32_t, const DegreeRule &rule, RowId row, PlanMeaning &plan)
{
    TRY_VOID(keepsTo(rule, row, plan));
    std::vector<CountBound> bounds{rule.bound};
    for (const auto &[other, before] : plan.degrees)
        if (before.degree == rule.degree)
            bounds.push_back(before.bound);
    if (!canAgree(bounds)) // three of them, of which any two agree
        return invalidRule(
            "no number of " + std::string(nameOf(rule.degree)) + " keeps to this row and to those before it",
            "change one of the rows, or switch it off");
    plan.degrees.emplace_back(row, rule);
    return {};
}

Result<void> applyRule(
    const Model &, std::int32_t deviceCount, const MeshRule &rule, RowId row, PlanMeaning &plan)
{
    std::int64_t devices = 1;
    std::string text;
    for (const MeshAxis &axis : rule.axes) {
        for (const MeshAxis &other : rule.axes) {
            if (&axis != &other && axis.name == other.name)
                return invalidRule("two axes of the mesh are called '" + axis.name + "'");
        }
        if (axis.size < 1 || axis.name.empty())
            return invalidRule("expected mesh axes with a name and at least one device");
        devices = std::min<std::int64_t>(devices * axis.size, std::int64_t{1} << 40);
        text += (text.empty() ? "" : " x ") + std::to_string(axis.size);
    }
    if (rule.axes.empty())
        return invalidRule("a mesh needs at least one axis", "write it as: mesh dp=2");
    constexpr std::int64_t kMostRead = 1 << 16;
    if (devices <= std::max<std::int64_t>(deviceCount, kMostRead)) {
        // Other rows are read with it even where there are too few devices: nothing is wrong with them.
        plan.mesh = rule.axes;
        plan.meshRow = row;
    }
    if (devices > deviceCount) {
        return invalidRule("the mesh needs " + (rule.axes.size() > 1 ? text + " = " : "")
                + counted(devices, "device") + ", the plan has " + std::to_string(deviceCount),
            "make an axis smaller, or plan for more devices");
    }
    return keepsToDegrees(plan);
}

Result<void> applyRule(
    const Model &model, std::int32_t, const MicroBatchesRule &rule, RowId row, PlanMeaning &plan)
{
    plan.microBatchesRow = row;
    if (rule.updateEvery > 0 && rule.count % rule.updateEvery != 0)
        return invalidRule("updates every " + counted(rule.updateEvery, "micro-batch") + " do not divide "
                + std::to_string(rule.count),
            "choose a divisor of the number of micro-batches");
    plan.updates = rule.updateEvery > 0 ? rule.count / rule.updateEvery : 1;
    const BatchInfo &batch = *model.batch;
    if (rule.count == 1)
        return keepsToDegrees(plan);
    if (rule.count > 1 && (rule.whole || batch.size <= 1)) {
        plan.microBatches = rule.count;
        plan.wholeBatches = true;
        return keepsToDegrees(plan);
    }
    if (batch.size % std::max(rule.count, 1) != 0 || rule.count < 1) {
        return invalidRule(std::to_string(rule.count) + " micro-batches do not divide the mini-batch of "
                + counted(batch.size, "sample"),
            "choose a divisor of " + std::to_string(batch.size));
    }
    if (rule.count > batch.mostMicroBatches) {
        return invalidRule("at most " + counted(batch.mostMicroBatches, "micro-batch")
            + " can compute the same step: " + batch.limitedBy);
    }
    plan.microBatches = rule.count;
    return keepsToDegrees(plan);
}

/// Says which rows there are; which of them holds is known behind all rows about the whole plan.
Result<void> applyRule(const Model &, std::int32_t, const ScheduleRule &rule, RowId row, PlanMeaning &plan)
{
    if (rule.chosen) {
        plan.scheduleLeftRow = row;
        plan.scheduleLeft = rule;
    } else {
        plan.scheduleRows[rule.microBatches] = {row, rule.kind};
    }
    return {};
}

Result<void> applyRule(const Model &, std::int32_t, const OverlapRule &rule, RowId row, PlanMeaning &plan)
{
    plan.overlapRow = row;
    plan.overlap = rule.overlap;
    return {};
}

/// Decides nothing of the plan: its model was opened with the sizes (engine/design/models/model_rows.h). As
/// the two behind it.
Result<void> applyRule(
    const Model &model, std::int32_t, const DimensionSizeRule &rule, RowId row, PlanMeaning &plan)
{
    const std::vector<InputDimension> &known = model.graph->dimensions;
    const InputDimension *dimension = findDimension(known, rule.name);
    if (dimension == nullptr)
        return invalidRule("the inputs of the model have no dimension '" + rule.name + "' to choose",
            known.empty() ? "their sizes are fixed in the file: export it with dynamic shapes"
                          : "they have " + namesText(known));
    plan.sizeRows[dimension->name] = row;
    if (rule.size < dimension->least || rule.size > dimension->most)
        return invalidRule("'" + dimension->name + "' may be " + rangeText(*dimension) + ", not "
            + std::to_string(rule.size));
    if (rule.size != dimension->size)
        return invalidRule("the model is open with " + dimension->name + " = "
                + std::to_string(dimension->size) + ": it could not be opened with "
                + std::to_string(rule.size),
            "choose another size");
    return {};
}

/// "'a', 'b'": the names of a map.
template<typename Map> std::string namesIn(const Map &map)
{
    std::string names;
    for (const auto &[name, value] : map)
        names += (names.empty() ? "'" : ", '") + name + "'";
    return names;
}

Result<void> applyRule(
    const Model &model, std::int32_t, const CapacityRule &rule, RowId row, PlanMeaning &plan)
{
    const auto &rooms = model.graph->rooms;
    const auto found = rooms.find(rule.name);
    if (found == rooms.end())
        return invalidRule("no operator '" + rule.name + "' needs room for what data choose",
            rooms.empty() ? "in this model all sizes are known" : "those that do are " + namesIn(rooms));
    plan.capacityRows[rule.name] = row;
    if (rule.capacity != found->second)
        return invalidRule("the model is open with room " + toString(found->second) + " of '" + rule.name
                + "': it could not be opened with " + toString(rule.capacity),
            "choose another room");
    return {};
}

Result<void> applyRule(const Model &model, std::int32_t, const UnrollRule &rule, RowId, PlanMeaning &)
{
    const auto &known = model.graph->recurrences;
    if (known.empty())
        return invalidRule("the model has no recurrence (LSTM, GRU, RNN) to unroll");
    if (rule.name != "all" && known.count(rule.name) == 0)
        return invalidRule("no recurrence is called '" + rule.name + "'", "the model has " + namesIn(known));
    for (const auto &[name, choice] : known) {
        if ((rule.name != "all" && rule.name != name) || choice.isUnrolled)
            continue;
        if (!choice.problem.empty() && rule.name != "all")
            return invalidRule(choice.problem);
        if (choice.problem.empty())
            return invalidRule("the model is open with '" + name + "' as one operator",
                "it could not be opened with its steps: see the messages");
    }
    return {};
}

} // namespace

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
                if constexpr (requires { applyRule(model, deviceCount, own, row, plan); }) {
                    for (const std::size_t other : held)
                        if (besides(*model.graph, rule, table.rows[other].rule) == Beside::Clash)
                            return clashError(*model.graph, rule, table.rows[other].rule,
                                RowId{static_cast<std::int32_t>(other)});
                    TRY_VOID(applyRule(model, deviceCount, own, row, plan));
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

Result<std::vector<std::int32_t>> RuleMeaning<InFlightRule>::stagesOf(
    const InFlightRule &rule, std::int32_t stageCount)
{
    if (rule.count < 1)
        return invalidRule("a stage holds at least one micro-batch in flight");
    if (rule.stage >= stageCount) {
        return invalidRule("there is no stage " + std::to_string(rule.stage) + ": the plan has "
            + counted(stageCount, "stage") + ", numbered from 0");
    }
    std::vector<std::int32_t> stages;
    for (std::int32_t s = std::max(rule.stage, 0); s < (rule.stage < 0 ? stageCount : rule.stage + 1); ++s)
        stages.push_back(s);
    return stages;
}

Result<std::vector<std::pair<std::int32_t, std::int32_t>>> RuleMeaning<InterleaveRule>::pairsOf(
    const InterleaveRule &rule, std::int32_t stageCount, std::int32_t microBatches)
{
    if (const std::int32_t last = std::max(rule.stage, rule.secondStage); last >= stageCount)
        return invalidRule("there is no stage " + std::to_string(last) + ": the plan has "
            + counted(stageCount, "stage") + ", numbered from 0");
    if (std::abs(rule.microBatchOffset) >= microBatches)
        return invalidRule("no two micro-batches are " + std::to_string(std::abs(rule.microBatchOffset))
            + " apart: the plan has " + std::to_string(microBatches));
    if (rule.microBatchOffset == 0 && rule.first == rule.second && rule.stage == rule.secondStage
        && rule.lane == rule.secondLane)
        return invalidRule("a block cannot run beside itself");
    if (rule.stage >= 0)
        return std::vector{std::pair(rule.stage, rule.secondStage)};
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::int32_t s = 0; s < stageCount; ++s)
        pairs.emplace_back(s, s);
    return pairs;
}

} // namespace planloom
