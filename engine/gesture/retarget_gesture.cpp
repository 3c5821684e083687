#include "engine/gesture/acting.h"
#include "engine/gesture/order_gesture.h"
#include "engine/gesture/row_edits.h"

#include <algorithm>

namespace planloom {

namespace {

const OpOrderRule *orderAt(const GestureContext &context, std::int32_t line)
{
    const auto &lines = context.document.lines();
    if (line < 0 || static_cast<std::size_t>(line) >= lines.size()
        || !lines[static_cast<std::size_t>(line)]->row)
        return nullptr;
    return std::get_if<OpOrderRule>(&lines[static_cast<std::size_t>(line)]->row->rule);
}

const Row &rowAt(const GestureContext &context, std::int32_t line)
{
    return *context.document.lines()[static_cast<std::size_t>(line)]->row;
}

bool meet(const std::vector<OperatorId> &ascending, const std::vector<OperatorId> &some)
{
    return std::any_of(some.begin(), some.end(),
        [&](OperatorId op) { return std::binary_search(ascending.begin(), ascending.end(), op); });
}

} // namespace

std::int32_t orderLineOf(const GestureContext &context, RowId row, const std::vector<OperatorId> &first,
    const std::vector<OperatorId> &second)
{
    const auto orders = [&](std::int32_t line) {
        const OpOrderRule *rule = orderAt(context, line);
        return rule != nullptr && rowAt(context, line).enabled
            && meet(context.index().select(rowAt(context, line).selector), first)
            && meet(context.index().select(rule->second), second);
    };
    const auto lines = context.document.rowLines();
    if (row.index >= 0 && static_cast<std::size_t>(row.index) < lines.size()
        && orders(lines[static_cast<std::size_t>(row.index)]))
        return lines[static_cast<std::size_t>(row.index)];
    // The table has changed since the plan was made.
    const auto found = std::find_if(lines.begin(), lines.end(), orders);
    return found == lines.end() ? -1 : *found;
}

Proposal proposeOrderRow(
    const GestureContext &context, std::int32_t line, const Selector &first, const Selector &second)
{
    Proposal proposal;
    proposal.words = "order";
    const OpOrderRule *rule = orderAt(context, line);
    if (rule == nullptr)
        return withRefusal(std::move(proposal), refusalOf("there is no such order any more", "order"));
    const Graph &graph = context.graph();
    const auto before = ofOneDirection(graph, context.index().select(first));
    const auto after = ofOneDirection(graph, context.index().select(second));
    if (before.empty() || after.empty()) {
        proposal.refusal =
            refusalOf(toString(before.empty() ? first : second) + " selects no operator", "order");
        return proposal;
    }
    const auto words = [&](const std::vector<OperatorId> &operators) {
        if (operators.size() == 1)
            return graph.at(operators.front()).name;
        const std::string text = wordsFor(context.index(), actingForward(context, operators));
        return graph.at(operators.front()).direction == Direction::Backward ? "backward " + text : text;
    };
    // As if this row were not there, so that it is not in its own way.
    GestureContext without = context;
    if (!without.document.apply(setEnabled(context.document, {line}, false)))
        return withRefusal(std::move(proposal), refusalOf("there is no such order any more", "order"));
    proposal = proposeOrderOf(without,
        {before, after, rule->microBatchOffset, rule->microBatch, rule->part, rule->secondPart},
        words(before) + " before " + words(after));
    proposal.edit = {};
    proposal.rows.clear();
    proposal.yielding.clear();
    proposal.yieldingWords.clear();
    if (proposal.refusal)
        return proposal;
    Row changed = rowAt(context, line);
    changed.selector = first;
    std::get<OpOrderRule>(changed.rule).second = second;
    if (changed == rowAt(context, line))
        return proposal; // as it was
    RowEdits edits(context);
    edits.replace(line, std::move(changed));
    edits.finish(proposal);
    return proposal;
}

Proposal proposeRetarget(
    const GestureContext &context, std::int32_t line, OrderEnd end, const std::vector<OperatorId> &operators)
{
    Proposal refused;
    refused.words = "order";
    const OpOrderRule *rule = orderAt(context, line);
    if (rule == nullptr)
        return withRefusal(std::move(refused), refusalOf("there is no such order any more", "order"));
    const Graph &graph = context.graph();
    const Row &row = rowAt(context, line);
    // The end keeps its direction: an order of backward operators goes on to be one.
    const Selector &old = end == OrderEnd::First ? row.selector : rule->second;
    const auto now = ofOneDirection(graph, context.index().select(old));
    const Direction direction = now.empty() ? Direction::Forward : graph.at(now.front()).direction;
    std::vector<OperatorId> wanted;
    for (const OperatorId op : operators) {
        if (op.valid() && graph.at(op).direction == direction)
            wanted.push_back(op);
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    if (wanted.empty())
        return withRefusal(std::move(refused),
            direction == Direction::Forward
                ? nothingSelected()
                : refusalOf("there is no operator of this order's direction here", "order"));
    const Selector selector = directedSelector(context.index(), wanted);
    return end == OrderEnd::First ? proposeOrderRow(context, line, selector, rule->second)
                                  : proposeOrderRow(context, line, row.selector, selector);
}

} // namespace planloom
