#include "engine/design/explain/traced_difference.h"

#include "engine/analyse/statistics.h"
#include "engine/design/make_plan.h"
#include "engine/design/remembered.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// What one side knows of its operators.
class CauseSide
{
public:
    CauseSide(const TracedPlan &side, const std::set<RowId> &differing)
        : m_side(side)
        , m_differing(differing)
    {
        const auto &operators = side.plan->graph->operators;
        for (std::size_t i = 0; i < operators.size(); ++i)
            m_byName.emplace(operators[i].name, OperatorId{static_cast<std::int32_t>(i)});
        for (const RowId row : differing) {
            const Rule &rule = side.rows->rows[at(row)].rule;
            if (std::holds_alternative<MeshRule>(rule))
                m_mesh.insert(row);
            if (!hasSelector(rule))
                m_whole.insert(row);
        }
    }

    OperatorId find(const std::string &name) const
    {
        const auto found = m_byName.find(name);
        return found == m_byName.end() ? OperatorId{} : found->second;
    }

    /// Rows that decide the operator and that the other table does not have.
    std::set<RowId> rowsOf(const std::string &name) const
    {
        std::set<RowId> rows;
        const OperatorId op = find(name);
        if (!op.valid())
            return rows;
        const OperatorDecision &decision = m_side.plan->decisions[at(op)];
        for (const RowId row : decision.rows)
            if (m_differing.contains(row))
                rows.insert(row);
        const auto &splits = decision.partition.splits;
        if (std::any_of(splits.begin(), splits.end(), [](const Split &split) { return !split.axis.empty(); }))
            rows.insert(m_mesh.begin(), m_mesh.end());
        return rows;
    }

    /// Names of what the operator follows: its forward operator, else those that make its inputs.
    std::vector<std::string> leadersOf(const std::string &name, const Uses &uses) const
    {
        std::vector<std::string> leaders;
        const OperatorId id = find(name);
        if (!id.valid())
            return leaders;
        const Graph &graph = *m_side.plan->graph;
        const Operator &op = graph.at(id);
        if (op.direction == Direction::Backward && op.mirror.valid())
            return {graph.at(op.mirror).name};
        for (const TensorId input : op.inputs)
            if (input.valid())
                for (const OperatorId producer : uses.producers[at(input)])
                    leaders.push_back(graph.at(producer).name);
        return leaders;
    }

    const std::set<RowId> &whole() const { return m_whole; }
    Uses uses() const { return usesOf(*m_side.plan->graph); }

private:
    const TracedPlan &m_side;
    const std::set<RowId> &m_differing;
    std::set<RowId> m_mesh{};
    std::set<RowId> m_whole{}; ///< About the whole plan.
    std::unordered_map<std::string, OperatorId> m_byName{};
};

std::optional<std::int64_t> kernelTimeOf(const TracedPlan &side, OperatorId op)
{
    if (!side.kernelNanoseconds || (op.valid() && at(op) >= side.kernelNanoseconds->size()))
        return std::nullopt;
    return op.valid() ? (*side.kernelNanoseconds)[at(op)] : 0;
}

/// Rows that are on in one table, and not in the other.
std::pair<std::set<RowId>, std::set<RowId>> differingRows(const ConstraintTable &a, const ConstraintTable &b)
{
    std::pair<std::set<RowId>, std::set<RowId>> rows;
    for (const RowDifference &difference : differenceOf(a, b)) {
        if (difference.a.valid() && a.rows[at(difference.a)].enabled)
            rows.first.insert(difference.a);
        if (difference.b.valid() && b.rows[at(difference.b)].enabled)
            rows.second.insert(difference.b);
    }
    return rows;
}

} // namespace

std::string wordsOf(const OperatorDifference &difference)
{
    if (!difference.a.valid())
        return "only in B";
    if (!difference.b.valid())
        return "only in A";
    std::string text;
    for (const auto &[holds, word] :
        {std::pair{difference.split, "split"}, std::pair{difference.placed, "placed"},
            std::pair{difference.ordered, "ordered"}, std::pair{difference.computed, "computed"}})
        if (holds)
            text += (text.empty() ? "" : ", ") + std::string(word);
    return text;
}

std::string wordsOf(const DifferenceCause &cause)
{
    OperatorDifference all = cause.operators.front();
    for (const OperatorDifference &each : cause.operators) {
        all.split |= each.split;
        all.placed |= each.placed;
        all.ordered |= each.ordered;
        all.computed |= each.computed;
    }
    return wordsOf(all);
}

std::optional<std::vector<DifferenceCause>> traceDifference(
    const TracedPlan &a, const TracedPlan &b, const PlanDifference &difference, const std::stop_token &stop)
{
    const auto [onlyA, onlyB] = differingRows(*a.rows, *b.rows);
    const CauseSide sideA(a, onlyA);
    const CauseSide sideB(b, onlyB);
    using Rows = std::pair<std::set<RowId>, std::set<RowId>>;
    struct Found {
        Rows rows{};
        bool inherited = false;
    };
    std::unordered_map<std::string, Found> found;
    const auto isNone = [](const Rows &rows) { return rows.first.empty() && rows.second.empty(); };
    for (const OperatorDifference &each : difference.operators)
        found[each.name].rows = {sideA.rowsOf(each.name), sideB.rowsOf(each.name)};
    // What no row decides follows what some do: what it comes from, else its neighbours, the nearest first.
    const Uses usesA = sideA.uses();
    const Uses usesB = sideB.uses();
    std::unordered_map<std::string, std::vector<std::string>> followers;
    std::deque<std::string> reached;
    for (const OperatorDifference &each : difference.operators) {
        if (stop.stop_requested())
            return std::nullopt;
        Found &own = found[each.name];
        std::vector<std::string> leaders = sideB.leadersOf(each.name, usesB);
        const std::vector<std::string> others = sideA.leadersOf(each.name, usesA);
        leaders.insert(leaders.end(), others.begin(), others.end());
        for (const std::string &leader : leaders) {
            const auto its = found.find(leader);
            if (its == found.end())
                continue;
            followers[leader].push_back(each.name);
            followers[each.name].push_back(leader);
            if (isNone(own.rows) && !isNone(its->second.rows))
                own = {its->second.rows, true};
        }
        if (isNone(own.rows) && each.ordered && !(each.split || each.placed || each.computed))
            own = {{sideA.whole(), sideB.whole()}, true};
        if (!isNone(own.rows))
            reached.push_back(each.name);
    }
    for (; !reached.empty(); reached.pop_front()) {
        const Found leader = found[reached.front()];
        for (const std::string &name : followers[reached.front()])
            if (Found &own = found[name]; isNone(own.rows)) {
                own = {leader.rows, true};
                reached.push_back(name);
            }
    }
    for (auto &[name, own] : found)
        if (isNone(own.rows))
            own = {sideA.whole().empty() && sideB.whole().empty() ? Rows{onlyA, onlyB}
                                                                  : Rows{sideA.whole(), sideB.whole()},
                true};
    std::map<std::tuple<std::set<RowId>, std::set<RowId>, bool>, DifferenceCause> causes;
    for (const OperatorDifference &each : difference.operators) {
        const Found &own = found[each.name];
        DifferenceCause &cause = causes[{own.rows.first, own.rows.second, own.inherited}];
        cause.a.assign(own.rows.first.begin(), own.rows.first.end());
        cause.b.assign(own.rows.second.begin(), own.rows.second.end());
        cause.inherited = own.inherited;
        cause.operators.push_back(each);
        const auto before = kernelTimeOf(a, each.a);
        const auto after = kernelTimeOf(b, each.b);
        if (before && after)
            cause.nanoseconds = cause.nanoseconds.value_or(0) + *after - *before;
    }
    std::vector<DifferenceCause> sorted;
    for (auto &[key, cause] : causes)
        sorted.push_back(std::move(cause));
    std::stable_sort(sorted.begin(), sorted.end(), [](const DifferenceCause &x, const DifferenceCause &y) {
        return x.operators.size() > y.operators.size();
    });
    return sorted;
}

Result<TracedPlans> traceDifference(const ExecutionPlan &a, const Timeline &timelineA, const ExecutionPlan &b,
    const Timeline &timelineB, const PlanDifference &difference, const std::stop_token &stop)
{
    TracedPlans traced;
    const auto planned = [&stop](const ExecutionPlan &execution) -> Result<PlanAnswerSnapshot> {
        TRY(const std::string rows, rowsRemembered(execution));
        TRY(const ModelSource source, rememberedModel(execution));
        PlanRequest request;
        TRY(request.model, openModel(source, stop, KeepContent::No));
        request.table = TableDocument(rows);
        request.target = rememberedTarget(execution);
        request.target.deviceCount =
            static_cast<std::int32_t>(execution.devices.size()) * execution.units.count;
        request.upTo = PlanGrade::Planned;
        return planOf(request, stop);
    };
    TRY(const PlanAnswerSnapshot first, planned(a));
    TRY(const PlanAnswerSnapshot second, planned(b));
    traced.a = first->table.table();
    traced.b = second->table.table();
    const auto timesA = kernelTimesOf(a, timelineA);
    const auto timesB = kernelTimesOf(b, timelineB);
    auto causes = traceDifference(
        {first->plan.get(), &traced.a, &timesA}, {second->plan.get(), &traced.b, &timesB}, difference, stop);
    if (!causes)
        return cancelled();
    traced.causes = *std::move(causes);
    return traced;
}

} // namespace planloom
