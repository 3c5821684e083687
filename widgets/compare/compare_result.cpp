#include "widgets/compare/compare_result.h"

#include "engine/analyse/plan_difference.h"
#include "engine/table/table_text.h"
#include "widgets/common/delta.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

ComparedRow::Cells cellsOf(const Row &row)
{
    ComparedRow::Cells cells;
    cells.text = print(row);
    cells.selector = hasSelector(row.rule) ? toString(row.selector) : std::string{};
    cells.rule = print(row.rule);
    const std::string word = nameOf(row.rule);
    if (cells.rule.rfind(word, 0) != 0)
        cells.rule = word + " " + cells.rule;
    cells.enabled = row.enabled;
    return cells;
}

/// Two rows that say different things about one subject, where the engine sees two single ones: a rule that
/// moved to another selector.
void pairBySameRule(std::vector<ComparedRow> &rows)
{
    std::map<std::string, std::vector<std::size_t>> onlyB;
    for (std::size_t i = rows.size(); i-- > 0;) {
        if (rows[i].kind == ComparedRow::Kind::OnlyB)
            onlyB[rows[i].b.rule].push_back(i); // the first one last
    }
    std::set<std::size_t> taken;
    for (ComparedRow &row : rows) {
        if (row.kind != ComparedRow::Kind::OnlyA)
            continue;
        const auto found = onlyB.find(row.a.rule);
        if (found == onlyB.end() || found->second.empty())
            continue;
        const std::size_t other = found->second.back();
        found->second.pop_back();
        row.kind = ComparedRow::Kind::Changed;
        row.b = rows[other].b;
        taken.insert(other);
    }
    std::size_t at = 0;
    rows.erase(
        std::remove_if(rows.begin(), rows.end(), [&](const ComparedRow &) { return taken.count(at++) != 0; }),
        rows.end());
}

} // namespace

std::vector<ComparedRow> compareRows(const ConstraintTable &a, const ConstraintTable &b)
{
    std::vector<ComparedRow> rows;
    std::set<std::int32_t> different;
    for (const RowDifference &difference : differenceOf(a, b)) {
        ComparedRow row;
        if (difference.a.valid()) {
            row.a = cellsOf(a.rows[static_cast<std::size_t>(difference.a.index)]);
            different.insert(difference.a.index);
        }
        if (difference.b.valid())
            row.b = cellsOf(b.rows[static_cast<std::size_t>(difference.b.index)]);
        row.kind = difference.kind == RowDifference::Kind::Changed ? ComparedRow::Kind::Changed
            : difference.kind == RowDifference::Kind::OnlyInA      ? ComparedRow::Kind::OnlyA
                                                                   : ComparedRow::Kind::OnlyB;
        rows.push_back(std::move(row));
    }
    pairBySameRule(rows);
    for (std::size_t i = 0; i < a.rows.size(); ++i) {
        if (different.count(static_cast<std::int32_t>(i)) != 0)
            continue;
        ComparedRow row;
        row.a = row.b = cellsOf(a.rows[i]);
        rows.push_back(std::move(row));
    }
    return rows;
}

TableEdit takeOver(const TableDocument &table, const ComparedRow &row, bool fromA)
{
    const std::string &wanted = fromA ? row.a.text : row.b.text;
    const std::string &other = fromA ? row.b.text : row.a.text;
    const auto lineOf = [&table](const std::string &text) -> std::optional<std::int32_t> {
        if (text.empty())
            return {};
        for (std::int32_t line = 0; line < table.lineCount(); ++line) {
            const auto &known = table.lines()[static_cast<std::size_t>(line)]->row;
            if (known && print(*known) == text)
                return line;
        }
        return {};
    };
    if (wanted.empty()) {
        const auto line = lineOf(other);
        return line ? removeLines(table, {*line}) : TableEdit{};
    }
    if (lineOf(wanted))
        return {};
    const auto parsed = parseRow(wanted);
    if (!parsed)
        return {};
    if (const auto line = lineOf(other))
        return replaceRow(table, *line, *parsed);
    for (std::int32_t line = 0; line < table.lineCount(); ++line) {
        const auto &known = table.lines()[static_cast<std::size_t>(line)]->row;
        if (!known || known->rule.index() != parsed->rule.index())
            continue;
        if (!hasSelector(known->rule) || toString(known->selector) == toString(parsed->selector))
            return replaceRow(table, line, *parsed);
    }
    return appendRows(table, {*parsed});
}

bool CompareResult::isEmpty() const
{
    const bool sameRows = std::all_of(
        rows.begin(), rows.end(), [](const ComparedRow &row) { return row.kind == ComparedRow::Kind::Same; });
    const bool sameTime = !waterfall || waterfall->from == waterfall->to;
    return sameRows && sameTime && moves.empty()
        && counts[static_cast<std::size_t>(OperatorChange::Same)]
        == static_cast<std::int32_t>(operators.size());
}

std::int64_t noiseOf(const Timeline &a, const Timeline &b)
{
    const auto shorter = static_cast<double>(std::min(a.step.count(), b.step.count()));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(kNoiseShare * shorter));
}

CompareSnapshot comparePlans(PlanUpdateSnapshot a, PlanUpdateSnapshot b, std::stop_token stop)
{
    auto result = std::make_shared<CompareResult>();
    result->a = std::move(a);
    result->b = std::move(b);
    result->rows = compareRows(result->a->table.table(), result->b->table.table());
    if (!result->a->scene || !result->b->scene)
        return result;
    const TimelineScene &from = *result->a->scene;
    const TimelineScene &to = *result->b->scene;
    result->waterfall = waterfallOf(*from.plan, *from.timeline, *to.plan, *to.timeline);
    if (stop.stop_requested())
        return nullptr;
    const auto operators = differenceOf(*from.plan, *to.plan, stop);
    if (!operators)
        return nullptr;
    result->operators.assign(to.graph().operators.size(), 0);
    for (const OperatorDifference &difference : operators->operators) {
        if (!difference.b.valid())
            continue;
        // What only b has is new there: cut and placed as it was nowhere before.
        const bool isNew = !difference.a.valid();
        const OperatorChange change = isNew || (difference.split && difference.placed) ? OperatorChange::Both
            : difference.split                                                         ? OperatorChange::Split
            : difference.placed  ? OperatorChange::Placed
            : difference.ordered ? OperatorChange::Ordered
                                 : OperatorChange::Computed;
        result->operators[static_cast<std::size_t>(difference.b.index)] = static_cast<std::uint8_t>(change);
    }
    for (const std::uint8_t change : result->operators)
        ++result->counts[change];
    const ConstraintTable rowsA = result->a->table.table();
    const ConstraintTable rowsB = result->b->table.table();
    auto causes = traceDifference({result->a->plan.get(), &rowsA, &result->a->operatorNanoseconds},
        {result->b->plan.get(), &rowsB, &result->b->operatorNanoseconds}, *operators, stop);
    if (!causes)
        return nullptr;
    result->causes = *std::move(causes);
    auto moves = movesOf(from, to, noiseOf(*from.timeline, *to.timeline), stop);
    if (!moves)
        return nullptr;
    result->moves = std::move(*moves);
    return result;
}

} // namespace planloom
