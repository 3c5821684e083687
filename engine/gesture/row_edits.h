#pragma once

#include "engine/gesture/gesture.h"
#include "engine/gesture/narrow.h"
#include "engine/table/domain.h"
#include "engine/table/selector_matcher.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Changes of several rows of a document on their way to one edit. Lines are those of the document.
class RowEdits
{
public:
    explicit RowEdits(const GestureContext &context)
        : m_context(context)
        , m_writer(context.index())
    {
    }

    /// The row at `line` no longer speaks of `operators` (forward, ascending, selected by it).
    void letGo(std::int32_t line, const std::vector<OperatorId> &operators);
    /// `line` becomes `row`; a row that also lets go of operators is written as `row` all the same.
    void replace(std::int32_t line, Row row);
    void remove(std::int32_t line);
    /// Behind the last row; or in the place of a row that goes, of the same kind and the first such.
    void append(Row row);

    /// `selectorFor`, remembered: rows that give way exclude what the new row names.
    const Selector &selectorOf(const std::vector<OperatorId> &operators) { return m_writer.write(operators); }
    /// Makes `selectorOf(operators)` say `selector`, which selects them and no other forward operators.
    void name(const std::vector<OperatorId> &operators, const Selector &selector)
    {
        m_writer.name(operators, selector);
    }
    /// True if the row at `line` speaks of `op` no more.
    bool letsGo(std::int32_t line, OperatorId op);
    /// Those of `selected` (ascending) of which the row at `line` speaks no more.
    std::vector<OperatorId> dropped(std::int32_t line, const std::vector<OperatorId> &selected);
    const std::vector<Row> &appended() const { return m_appended; }

    /// Fills in edit, rows, yielding and yieldingWords. Appended rows that stand in the table already, on and
    /// as they are, are not written again.
    void finish(Proposal &proposal);

private:
    struct Change {
        std::vector<OperatorId> dropped{}; ///< Ascending, each once, if `sorted`.
        bool sorted = true;
        std::optional<Row> row{};
        bool removed = false;
    };
    const TableLine &lineAt(std::int32_t line) const
    {
        return *m_context.document.lines()[static_cast<std::size_t>(line)];
    }
    /// Sorts first what was let go.
    const std::vector<OperatorId> &droppedBy(Change &change) const;
    void narrowRows(Proposal &proposal);
    void placeAppended(Proposal &proposal);

    const GestureContext &m_context;
    SelectorWriter m_writer;
    std::map<std::int32_t, Change> m_changes{};
    std::vector<Row> m_appended{};
};

/// A row of origin gesture.
Row gestureRow(Selector selector, Rule rule);

/// Calls `visit(line, row)` for each row that is on.
template<typename Visit> void forEachRow(const GestureContext &context, Visit visit)
{
    const auto &lines = context.document.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i]->row && lines[i]->row->enabled)
            visit(static_cast<std::int32_t>(i), *lines[i]->row);
    }
}

/// As `forEachRow`, for rows of one rule: `visit(line, row, rule)`.
template<typename RuleType, typename Visit> void forEachRule(const GestureContext &context, Visit visit)
{
    forEachRow(context, [&](std::int32_t line, const Row &row) {
        if (const auto *rule = std::get_if<RuleType>(&row.rule))
            visit(line, row, *rule);
    });
}

/// The place rows on some operators.
struct PlacementByRow {
    std::int32_t line = -1; ///< The last place row that is on; -1 if none places the operator.
    Domain domain{}; ///< Where it runs, by that row; else by the plan, else everywhere.
    bool known = true; ///< False if neither a row nor a plan says so.
};
/// By position in `subset`, which holds forward operators.
std::vector<PlacementByRow> placementsOf(const GestureContext &context, const Subset &subset);

/// The place of a rule, if its devices and coordinates exist.
std::optional<Domain> domainOf(const GestureContext &context, const OpAssignRule &rule);
/// How a row would say where `domain` is.
OpAssignRule ruleOf(const GestureContext &context, const Domain &domain);

/// "GPU 1", "GPUs 0-3", "the mesh", "pp=1".
std::string wordsFor(const GestureContext &context, const OpAssignRule &rule);
/// "operator:NAME" or, with a part, "operator:NAME/k".
std::string placeOf(const Graph &graph, OperatorId op, const std::string &part = {});
Error refusalOf(std::string sentence, std::string where = {}, std::string advice = {});
/// The proposal as it is, with the reason why it may not be.
Proposal withRefusal(Proposal proposal, std::optional<Error> why);
/// "24 operators", "1 operator".
std::string countWords(std::size_t count, const char *what = "operator");

} // namespace planloom
