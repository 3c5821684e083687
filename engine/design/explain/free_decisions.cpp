#include "engine/design/explain/free_decisions.h"

#include "engine/conflict/row_facts.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// "0-3, 8"
std::string devicesText(const std::vector<DeviceId> &all)
{
    const std::set<DeviceId> devices(all.begin(), all.end());
    std::string text;
    for (auto first = devices.begin(); first != devices.end();) {
        auto last = first;
        while (std::next(last) != devices.end() && std::next(last)->index == last->index + 1)
            ++last;
        text += (text.empty() ? "" : ", ") + std::to_string(first->index);
        if (last != first)
            text += "-" + std::to_string(last->index);
        first = std::next(last);
    }
    return text;
}

std::string chosenText(const Operator &op, const OperatorDecision &decision, std::int32_t stageCount)
{
    const std::string partition = toString(op.annotation, decision.partition);
    std::string text = partition.empty() ? "whole" : partition;
    text += "; devices " + devicesText(decision.devices);
    if (stageCount > 1 && decision.stage.valid())
        text += "; stage " + std::to_string(decision.stage.index);
    if (decision.recomputeGroup >= 0)
        text += "; computed again";
    return text;
}

bool isOfSearch(const Row &row)
{
    return row.enabled && row.origin == RowOrigin::Solver;
}

} // namespace

std::vector<bool> leftFree(const Plan &plan, const ConstraintTable &rows)
{
    const auto holds = [&](RowId row) {
        return at(row) < rows.rows.size() && !isOfSearch(rows.rows[at(row)]);
    };
    std::vector<bool> isFree(plan.decisions.size(), false);
    for (std::size_t i = 0; i < isFree.size(); ++i)
        isFree[i] = plan.graph->operators[i].direction == Direction::Forward
            && std::none_of(plan.decisions[i].rows.begin(), plan.decisions[i].rows.end(), holds);
    for (const OrderConstraint &order : plan.orders)
        if (holds(order.row))
            isFree[at(order.first)] = isFree[at(order.second)] = false;
    return isFree;
}

std::int32_t countFree(const Plan &plan, const ConstraintTable &rows)
{
    const std::vector<bool> isFree = leftFree(plan, rows);
    return static_cast<std::int32_t>(std::count(isFree.begin(), isFree.end(), true));
}

std::vector<FreeDecision> freeDecisionsOf(const Model &model, const Plan &plan, const ConstraintTable &rows)
{
    const Graph &graph = *plan.graph;
    using Key = std::tuple<std::string, std::string, bool, std::string>; // kind, chosen, by whom, why
    std::map<Key, std::vector<OperatorId>> alike;
    const std::vector<bool> isFree = leftFree(plan, rows);
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const Operator &op = graph.operators[i];
        const OperatorDecision &decision = plan.decisions[i];
        if (!isFree[i])
            continue;
        const bool bySearch = !decision.rows.empty();
        // Whom operators follow differs from one to the next.
        const std::string why =
            bySearch || decision.why.find("follows '") != std::string::npos ? std::string{} : decision.why;
        alike[{typeNameOf(op), chosenText(op, decision, plan.stageCount), bySearch, why}].push_back(
            {static_cast<std::int32_t>(i)});
    }
    std::vector<FreeDecision> found;
    for (auto &[key, operators] : alike) {
        const auto &[kind, chosen, bySearch, why] = key;
        std::string words = wordsFor(*model.index, operators);
        const std::string &reason = plan.decisions[at(operators.front())].why;
        found.push_back({kind, std::move(operators), std::move(words), chosen, bySearch,
            bySearch          ? std::string{}
                : why.empty() ? (reason.empty() ? reason : "follows its producer")
                              : why});
    }
    std::stable_sort(found.begin(), found.end(),
        [](const FreeDecision &a, const FreeDecision &b) { return a.operators.size() > b.operators.size(); });
    return found;
}

std::vector<std::int32_t> linesOfSearch(const TableDocument &document)
{
    std::vector<std::int32_t> lines;
    for (std::int32_t line = 0; line < document.lineCount(); ++line)
        if (const auto &row = document.lines()[static_cast<std::size_t>(line)]->row;
            row && row->origin == RowOrigin::Solver)
            lines.push_back(line);
    return lines;
}

std::optional<RowId> scheduleThatHoldsSearch(const ConstraintTable &rows)
{
    if (std::none_of(rows.rows.begin(), rows.rows.end(), isOfSearch))
        return std::nullopt;
    const auto row = scheduleRowAt(rows, givenMicroBatches(rows).value_or(1));
    if (!row || isOfSearch(rows.rows[at(*row)]))
        return std::nullopt;
    const ScheduleKind kind = std::get<ScheduleRule>(rows.rows[at(*row)].rule).kind;
    const bool isKnown =
        std::find(kSearchedSchedules.begin(), kSearchedSchedules.end(), kind) != kSearchedSchedules.end();
    return isKnown ? std::nullopt : row;
}

TableEdit keepRows(const TableDocument &document, const std::vector<std::int32_t> &lines)
{
    const std::vector<std::int32_t> chosen = linesOfSearch(document);
    const auto ruleAt = [&](std::int32_t line) -> const Rule & {
        return document.lines()[static_cast<std::size_t>(line)]->row->rule;
    };
    const auto isAsked = [&](std::int32_t line) {
        return std::find(lines.begin(), lines.end(), line) != lines.end();
    };
    const bool mesh = std::any_of(chosen.begin(), chosen.end(),
        [&](std::int32_t line) { return isAsked(line) && needsMesh(ruleAt(line)); });
    TableDocument kept = document;
    for (const std::int32_t line : chosen) {
        if (!isAsked(line) && !(mesh && std::holds_alternative<MeshRule>(ruleAt(line))))
            continue;
        Row own = *document.lines()[static_cast<std::size_t>(line)]->row;
        own.origin = RowOrigin::Text;
        if (!kept.apply(replaceRow(kept, line, own)))
            return {};
    }
    return difference(document, kept);
}

Result<TableEdit> keepDecisions(const GestureContext &context, const std::vector<OperatorId> &operators)
{
    if (!context.plan)
        return Error{ErrorCode::InvalidInput, "there is no plan yet to keep", {}, "plan"};
    const ConstraintTable rows = context.document.table();
    std::set<std::size_t> kept;
    std::vector<OperatorId> byDefault;
    for (const OperatorId op : operators) {
        const OperatorDecision &decision = context.plan->decisions[at(op)];
        bool isSaid = false;
        for (const RowId row : decision.rows)
            if (at(row) < rows.rows.size() && isOfSearch(rows.rows[at(row)])) {
                kept.insert(at(row));
                isSaid = true;
            }
        if (!isSaid)
            byDefault.push_back(op);
    }
    const bool meshKept = std::any_of(byDefault.begin(), byDefault.end(), [&](OperatorId op) {
        const auto &splits = context.plan->decisions[at(op)].partition.splits;
        return std::any_of(
            splits.begin(), splits.end(), [](const Split &split) { return !split.axis.empty(); });
    });
    for (std::size_t row = 0; meshKept && row < rows.rows.size(); ++row)
        if (isOfSearch(rows.rows[row]) && std::holds_alternative<MeshRule>(rows.rows[row].rule))
            kept.insert(row);
    const std::vector<bool> isFree = leftFree(*context.plan, rows);
    std::vector<bool> isAsked(isFree.size(), false);
    for (const OperatorId op : operators)
        isAsked[at(op)] = true;
    bool all = true; // then nothing is left to the search
    for (std::size_t i = 0; i < isFree.size(); ++i)
        all = all && (!isFree[i] || isAsked[i]);
    for (std::size_t row = 0; all && row < rows.rows.size(); ++row)
        if (isOfSearch(rows.rows[row]))
            kept.insert(row);
    GestureContext after = context;
    const std::vector<std::int32_t> rowLines = context.document.rowLines();
    std::vector<std::int32_t> lines;
    for (const std::size_t row : kept)
        lines.push_back(rowLines[row]);
    TRY_VOID(after.document.apply(keepRows(after.document, lines)));
    if (!byDefault.empty()) {
        const Proposal held = proposeHold(after, byDefault);
        if (held.refusal)
            return *held.refusal;
        TRY_VOID(after.document.apply(held.edit));
    }
    return difference(context.document, after.document);
}

} // namespace planloom
