#include "engine/plan/bind.h"

#include "engine/base/words.h"
#include "engine/plan/table_text.h"

#include <algorithm>

namespace planloom {

namespace {

/// Rules about the whole plan, which the others need.
void bindMesh(CompletionState &state, std::int32_t row, const MeshRule &rule)
{
    if (!state.mesh.empty())
        return state.fail(row, "there is a mesh already, in an earlier row", "switch one of the rows off");
    std::int64_t devices = 1;
    std::string text;
    for (const MeshAxis &axis : rule.axes) {
        for (const MeshAxis &other : rule.axes) {
            if (&axis != &other && axis.name == other.name)
                return state.fail(row, "two axes of the mesh are called '" + axis.name + "'");
        }
        if (axis.size < 1 || axis.name.empty())
            return state.fail(row, "expected mesh axes with a name and at least one device");
        devices = std::min<std::int64_t>(devices * axis.size, std::int64_t {1} << 40);
        text += (text.empty() ? "" : " x ") + std::to_string(axis.size);
    }
    if (rule.axes.empty())
        return state.fail(row, "a mesh needs at least one axis", "write it as: mesh dp=2");
    if (devices > state.plan.deviceCount) {
        return state.fail(row,
            "the mesh needs " + (rule.axes.size() > 1 ? text + " = " : "") + counted(devices, "device")
                + ", the plan has " + std::to_string(state.plan.deviceCount),
            "make an axis smaller, or plan for more devices");
    }
    state.mesh = rule.axes;
}

void bindMicroBatches(CompletionState &state, std::int32_t row, const MicroBatchesRule &rule)
{
    if (state.microBatchRow >= 0)
        return state.fail(row,
            "the number of micro-batches is given already, by " + rowWords(state.microBatchRow));
    state.microBatchRow = row;
    const BatchInfo &batch = state.batch;
    if (rule.count == 1)
        return;
    if (rule.count > 1 && (rule.whole || batch.size <= 1)) {
        state.plan.microBatches = rule.count;
        state.plan.wholeBatches = true;
        return;
    }
    if (batch.size % std::max(rule.count, 1) != 0 || rule.count < 1) {
        return state.fail(row,
            std::to_string(rule.count) + " micro-batches do not divide the mini-batch of "
                + counted(batch.size, "sample"),
            "choose a divisor of " + std::to_string(batch.size));
    }
    if (rule.count > batch.mostMicroBatches) {
        return state.fail(row,
            "at most " + counted(batch.mostMicroBatches, "micro-batch")
                + " can compute the same step: " + batch.limitedBy);
    }
    state.plan.microBatches = rule.count;
}

void bindSchedule(CompletionState &state, std::int32_t row, const ScheduleRule &rule)
{
    if (state.scheduleRow >= 0)
        return state.fail(row, "the schedule is given already, by " + rowWords(state.scheduleRow));
    state.scheduleRow = row;
    state.plan.schedule = rule.kind;
}

std::int32_t bindStage(
    CompletionState &state, std::int32_t row, const StageRule &rule, const std::vector<OperatorId> &acted)
{
    std::int32_t bound = 0;
    for (const OperatorId op : acted) {
        const Operator &itself = state.graph().at(op);
        if (itself.direction != Direction::Forward) {
            state.fail(
                row, "only forward operators have a stage of their own, '" + itself.name + "' is none");
            return bound;
        }
        OperatorBinding &binding = state.bindingOf(op);
        if (binding.stageRow >= 0 && binding.stage != rule.index)
            state.failBoth(row, binding.stageRow, itself, "give different stages to");
        binding.stageRow = row;
        binding.stage = rule.index;
        ++bound;
    }
    return bound;
}

std::int32_t bindRecompute(CompletionState &state, std::int32_t row, const std::vector<OperatorId> &acted)
{
    std::int32_t bound = 0;
    for (const OperatorId op : acted) {
        if (state.graph().at(op).direction != Direction::Forward)
            continue;
        OperatorBinding &binding = state.bindingOf(op);
        if (binding.recomputeRow >= 0 && binding.recomputeRow != row)
            state.failBoth(row, binding.recomputeRow, state.graph().at(op), "recompute");
        binding.recomputeRow = row;
        ++bound;
    }
    return bound;
}

/// The optimizer operators selected, or those of the weights that selected forward operators read.
std::int32_t bindSharding(CompletionState &state, std::int32_t row, const OptimizerShardingRule &rule,
    const std::vector<OperatorId> &selected)
{
    if (!rule.axis.empty() && std::none_of(state.mesh.begin(), state.mesh.end(), [&](const MeshAxis &axis) {
            return axis.name == rule.axis;
        })) {
        state.fail(row, "the mesh has no axis '" + rule.axis + "'", "add it to the mesh row");
        return 0;
    }
    const Graph &graph = state.graph();
    std::vector<OperatorId> steps;
    for (const OperatorId op : selected) {
        if (graph.at(op).direction == Direction::Optimizer)
            steps.push_back(op);
    }
    if (steps.empty()) {
        for (const OperatorId op : selected) {
            if (graph.at(op).direction != Direction::Forward)
                continue;
            for (const TensorId input : graph.at(op).inputs) {
                if (!input.valid() || graph.at(input).role != TensorRole::Weight)
                    continue;
                for (const OperatorId user :
                    state.index.uses().consumers[static_cast<std::size_t>(input.index)]) {
                    if (graph.at(user).direction == Direction::Optimizer)
                        steps.push_back(user);
                }
            }
        }
        std::sort(steps.begin(), steps.end());
        steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    }
    for (const OperatorId op : steps) {
        OperatorBinding &binding = state.bindingOf(op);
        if (binding.shardingRow >= 0
            && std::get<OptimizerShardingRule>(
                   state.table.rows[static_cast<std::size_t>(binding.shardingRow)].rule)
                != rule)
            state.failBoth(row, binding.shardingRow, graph.at(op), "shard differently");
        binding.shardingRow = row;
    }
    return static_cast<std::int32_t>(steps.size());
}

struct BindRule {
    CompletionState &state;
    std::int32_t row;
    const std::vector<OperatorId> &selected;

    std::int32_t operator()(const OpTransRule &rule) const { return bindOpTrans(state, row, rule, selected); }
    std::int32_t operator()(const CoshardRule &rule) const { return bindCoshard(state, row, rule, selected); }
    std::int32_t operator()(const OpAssignRule &rule) const
    {
        return bindOpAssign(state, row, rule, selected);
    }
    std::int32_t operator()(const OpOrderRule &rule) const { return bindOpOrder(state, row, rule, selected); }
    std::int32_t operator()(const StageRule &rule) const
    {
        return bindStage(state, row, rule, actedOn(state.graph(), selected));
    }
    std::int32_t operator()(const RecomputeRule &) const
    {
        return bindRecompute(state, row, actedOn(state.graph(), selected));
    }
    std::int32_t operator()(const OptimizerShardingRule &rule) const
    {
        return bindSharding(state, row, rule, selected);
    }
    template<typename Other> std::int32_t operator()(const Other &) const
    {
        return 0; // about the whole plan, bound before
    }
};

} // namespace

void CompletionState::fail(std::int32_t row, std::string message, std::string advice, const char *field)
{
    failed = true;
    RowReport &report = reports[static_cast<std::size_t>(row)];
    if (!report.error) {
        report.error = Error {
            ErrorCode::InvalidInput, std::move(message), std::move(advice), placeOf(RowId {row}, field)};
    }
}

void CompletionState::failBoth(
    std::int32_t row, std::int32_t other, const Operator &op, const std::string &what)
{
    failBoth(row, other, what + " operator '" + op.name + "'",
        "switch one of the rows off, or narrow its selector");
}

void CompletionState::failBoth(
    std::int32_t row, std::int32_t other, const std::string &what, const std::string &advice)
{
    const auto message = [&](std::int32_t with) {
        return "this row and " + rowWords(with) + " ('"
            + print(table.rows[static_cast<std::size_t>(with)]).substr(0, 120) + "') " + what;
    };
    for (const auto &[one, another] : {std::pair {row, other}, std::pair {other, row}}) {
        const bool isNew = !reports[static_cast<std::size_t>(one)].error;
        fail(one, message(another), advice);
        if (isNew)
            reports[static_cast<std::size_t>(one)].error->code = ErrorCode::Conflict;
    }
}

std::int32_t CompletionState::domainNumber(Domain domain)
{
    const auto found = std::find(domains.begin(), domains.end(), domain);
    if (found != domains.end())
        return static_cast<std::int32_t>(found - domains.begin());
    domains.push_back(std::move(domain));
    return static_cast<std::int32_t>(domains.size()) - 1;
}

std::vector<OperatorId> actedOn(const Graph &graph, const std::vector<OperatorId> &selected)
{
    for (const Direction direction : {Direction::Forward, Direction::Optimizer}) {
        std::vector<OperatorId> acted;
        for (const OperatorId op : selected) {
            if (graph.at(op).direction == direction)
                acted.push_back(op);
        }
        if (!acted.empty())
            return acted;
    }
    return {};
}

void bindRows(CompletionState &state)
{
    const auto &rows = state.table.rows;
    state.reports.assign(rows.size(), {});
    state.bindings.assign(state.graph().operators.size(), {});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = static_cast<std::int32_t>(i);
        if (!rows[i].enabled)
            continue;
        if (const auto *mesh = std::get_if<MeshRule>(&rows[i].rule))
            bindMesh(state, row, *mesh);
        else if (const auto *microBatches = std::get_if<MicroBatchesRule>(&rows[i].rule))
            bindMicroBatches(state, row, *microBatches);
        else if (const auto *schedule = std::get_if<ScheduleRule>(&rows[i].rule))
            bindSchedule(state, row, *schedule);
    }

    if (state.mesh.empty()) {
        std::vector<DeviceId> all;
        for (std::int32_t d = 0; d < state.plan.deviceCount; ++d)
            all.push_back({d});
        state.domainNumber(domainOfList(std::move(all)));
    } else {
        state.domainNumber(domainOnMesh(state.mesh, {}));
    }

    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!hasSelector(rows[i].rule))
            continue;
        RowReport &report = state.reports[i];
        const auto selected = state.index.select(rows[i].selector);
        report.selected = static_cast<std::int32_t>(selected.size());
        if (!rows[i].enabled)
            continue;
        const auto row = static_cast<std::int32_t>(i);
        if (const auto check = state.index.check(rows[i].selector); !check) {
            state.fail(row, check.error().message, check.error().advice, "selector");
            continue;
        }
        report.bound = std::visit(BindRule {state, row, selected}, rows[i].rule);
        if (report.bound == 0 && !report.error) {
            report.warning = selected.empty()
                ? "the selector names no operator of this model"
                : selected.size() == 1
                ? "the operator it selects cannot take this rule"
                : "none of the " + std::to_string(selected.size()) + " operators it selects can take this rule";
        }
    }
}

} // namespace planloom
