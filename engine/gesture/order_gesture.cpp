#include "engine/gesture/order_gesture.h"

#include "engine/gesture/acting.h"
#include "engine/gesture/row_edits.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace planloom {

namespace {

constexpr int kMostVisits = 16; ///< Of one operator, should rows run in circles already.

/// What runs once per step stands before all micro-batches (0) or behind them (2).
int phaseOf(const GestureContext &context, OperatorId op)
{
    const Direction direction = context.graph().at(op).direction;
    if (direction == Direction::Optimizer)
        return 2;
    if (!context.batch().oncePerStep[static_cast<std::size_t>(op.index)])
        return 1;
    return direction == Direction::Forward ? 0 : 2;
}

/// A pair that runs at different ends of the step, the other way round.
std::optional<Error> checkPhases(const GestureContext &context, const std::vector<OperatorId> &first,
    const std::vector<OperatorId> &second)
{
    const bool paired = first.size() == second.size();
    const auto byPhase = [&](OperatorId a, OperatorId b) {
        return phaseOf(context, a) < phaseOf(context, b);
    };
    for (std::size_t i = 0; i < (paired ? first.size() : 1); ++i) {
        const OperatorId a = paired ? first[i] : *std::max_element(first.begin(), first.end(), byPhase);
        const OperatorId b = paired ? second[i] : *std::min_element(second.begin(), second.end(), byPhase);
        if (phaseOf(context, a) <= phaseOf(context, b))
            continue;
        const Graph &graph = context.graph();
        return refusalOf(graph.at(a).name + " can't run before " + graph.at(b).name + ": "
                + (phaseOf(context, b) == 0 ? graph.at(b).name + " runs once, before the first micro-batch"
                                            : graph.at(a).name + " runs once, behind the last micro-batch"),
            placeOf(graph, a));
    }
    return std::nullopt;
}

std::vector<OperatorId> selectedByOrder(const SelectorIndex &index, const Selector &selector)
{
    return ofOneDirection(index.graph(), index.select(selector));
}

} // namespace

namespace {

/// The same operators' backward ones, whose names differ, where names are what is asked for.
void nameBackward(const SelectorIndex &index, Selector &selector)
{
    const Graph &graph = index.graph();
    const auto mirrored = [&](const std::string &name) {
        const OperatorId op = index.findOperator(name);
        const bool known = op.valid() && graph.at(op).mirror.valid();
        return known ? graph.at(graph.at(op).mirror).name : name;
    };
    for (std::string &name : selector.names)
        name = mirrored(name);
    if (selector.kind == SelectorKind::Name) {
        if (const auto plain = plainName(selector.text))
            selector.text = globOf(mirrored(*plain));
        else
            selector.text += '\'';
    }
    for (Selector &child : selector.children)
        nameBackward(index, child);
}

} // namespace

Selector directedSelector(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    const Graph &graph = index.graph();
    if (operators.empty() || graph.at(operators.front()).direction == Direction::Forward)
        return selectorFor(index, operators);
    const auto byName = [&] {
        std::vector<std::string> names;
        names.reserve(operators.size());
        for (const OperatorId op : operators)
            names.push_back(graph.at(op).name);
        return names.size() == 1 ? selectName(globOf(names.front())) : selectSet(std::move(names));
    };
    std::vector<OperatorId> mirrors;
    mirrors.reserve(operators.size());
    for (const OperatorId op : operators) {
        if (graph.at(op).mirror.valid())
            mirrors.push_back(graph.at(op).mirror);
    }
    if (operators.size() == 1 || mirrors.size() != operators.size())
        return byName();
    std::sort(mirrors.begin(), mirrors.end());
    Selector made{.kind = SelectorKind::And};
    made.children.push_back(selectDirection(Direction::Backward));
    made.children.push_back(selectorFor(index, mirrors));
    nameBackward(index, made.children.back());
    const auto selected = index.select(made);
    const bool exact = std::all_of(selected.begin(), selected.end(), [&](OperatorId op) {
        return graph.at(op).direction == Direction::Backward;
    }) && selected == operators;
    return exact ? made : byName();
}

OrderPaths::OrderPaths(
    const GestureContext &context, const std::vector<std::int32_t> &without, const BlockPart &part)
    : m_context(context)
    , m_visits(context.graph().operators.size())
{
    forEachRule<OpOrderRule>(context, [&](std::int32_t line, const Row &row, const OpOrderRule &rule) {
        if (std::find(without.begin(), without.end(), line) != without.end())
            return;
        if (rule.part != rule.secondPart || (!rule.part.isAll() && rule.part != part))
            return;
        m_rows.push_back({selectedByOrder(context.index(), row.selector),
            selectedByOrder(context.index(), rule.second), rule.microBatchOffset});
    });
    for (std::size_t r = 0; r < m_rows.size(); ++r) {
        m_onlyLater = m_onlyLater && m_rows[r].offset >= 0;
        for (std::size_t i = 0; i < m_rows[r].first.size(); ++i) {
            m_rowsAt[m_rows[r].first[i].index].emplace_back(r, i);
            m_furthestRow = std::max(m_furthestRow, m_rows[r].first[i].index);
        }
    }
}

std::vector<OperatorId> OrderPaths::find(
    const std::vector<OperatorId> &from, const std::vector<OperatorId> &to, std::int32_t mostOffset)
{
    const Graph &graph = m_context.graph();
    for (const OperatorId op : m_touched)
        visitOf(op) = {};
    m_touched.clear();
    if (m_onlyLater && mostOffset < 0)
        return {};
    std::int32_t furthest = m_furthestRow; // behind it, data flow leads no more to where the path ends
    for (const OperatorId op : to) {
        furthest = std::max(furthest, op.index);
        visitOf(op).isEnd = true;
        m_touched.push_back(op);
    }
    std::deque<OperatorId> open;
    for (const OperatorId op : from) {
        if (visitOf(op).isEnd && mostOffset >= 0)
            return {op};
        visitOf(op).times = 1;
        m_touched.push_back(op);
        open.push_back(op);
    }
    OperatorId found;
    const auto reach = [&](OperatorId here, OperatorId next, std::int32_t add) {
        Visit &visit = visitOf(next);
        const std::int32_t total = visitOf(here).offset + add;
        if (found.valid() || next.index > furthest || (m_onlyLater && total > mostOffset)
            || (visit.times > 0 && total >= visit.offset) || visit.times >= kMostVisits)
            return;
        visit.offset = total;
        visit.before = here;
        if (visit.times++ == 0)
            m_touched.push_back(next);
        if (visit.isEnd && total <= mostOffset)
            found = next;
        else
            open.push_back(next);
    };
    while (!open.empty() && !found.valid()) {
        const OperatorId op = open.front();
        open.pop_front();
        for (const TensorId output : graph.at(op).outputs) {
            if (!output.valid())
                continue;
            for (const OperatorId user :
                m_context.index().uses().consumers[static_cast<std::size_t>(output.index)])
                reach(op, user, 0);
        }
        if (op.index > m_furthestRow)
            continue;
        const auto at = m_rowsAt.find(op.index);
        if (at == m_rowsAt.end())
            continue;
        for (const auto &[r, position] : at->second) {
            const Edges &row = m_rows[r];
            if (row.first.size() == row.second.size()) {
                reach(op, row.second[position], row.offset);
            } else {
                for (const OperatorId second : row.second)
                    reach(op, second, row.offset);
            }
        }
    }
    std::vector<OperatorId> path;
    for (OperatorId op = found; op.valid() && path.size() <= m_visits.size(); op = visitOf(op).before)
        path.push_back(op);
    std::reverse(path.begin(), path.end());
    return path;
}

Proposal proposeOrderOf(
    const GestureContext &context, const OrderGesture &gesture, std::string words, bool turnsAround)
{
    const auto &[first, second, offset, microBatch, part, secondPart] = gesture;
    Proposal proposal;
    proposal.words = std::move(words);
    const Graph &graph = context.graph();
    {
        std::vector<OperatorId> all = first;
        all.insert(all.end(), second.begin(), second.end());
        proposal.operators = actingForward(context, all);
    }
    const SelectorIndex &index = context.index();
    Row row = gestureRow(directedSelector(index, first),
        OpOrderRule{.second = directedSelector(index, second),
            .microBatchOffset = offset,
            .microBatch = microBatch,
            .part = part,
            .secondPart = secondPart});
    // The same pair again: the row gets the new offset.
    std::int32_t same = -1;
    std::vector<std::int32_t> without;
    RowEdits edits(context);
    forEachRule<OpOrderRule>(
        context, [&, offset = offset](std::int32_t line, const Row &old, const OpOrderRule &rule) {
            const auto &mine = std::get<OpOrderRule>(row.rule);
            if (old.selector == row.selector && rule.second == mine.second
                && rule.microBatch == mine.microBatch && rule.part == mine.part
                && rule.secondPart == mine.secondPart)
                same = line;
            const bool opposite = old.selector == mine.second && rule.second == row.selector
                && rule.part == mine.secondPart && rule.secondPart == mine.part;
            if (turnsAround && opposite && rule.microBatchOffset + offset <= 0) {
                edits.remove(line);
                without.push_back(line);
            }
        });
    if (same >= 0)
        without.push_back(same);
    if (const std::int32_t count = context.plan ? context.plan->microBatches : 0; microBatch >= 0 && count > 0
        && (microBatch >= count || microBatch + offset < 0 || microBatch + offset >= count)) {
        const std::int32_t missing = microBatch >= count ? microBatch : microBatch + offset;
        return withRefusal(std::move(proposal),
            refusalOf("there is no micro-batch " + std::to_string(missing) + ": the plan has "
                    + std::to_string(count) + ", numbered from 0",
                "order"));
    }
    if (auto refused = checkPhases(context, first, second))
        return withRefusal(std::move(proposal), std::move(refused));
    std::vector<OperatorId> cycle;
    OrderPaths finder(context, without, part);
    const bool knowsPaths = part == secondPart;
    // From any to any first: mostly there is no path at all, which one search says for all pairs.
    if (knowsPaths && (first.size() != second.size() || first.size() > 1))
        cycle = finder.find(second, first, -offset);
    if (knowsPaths && first.size() == second.size() && (first.size() == 1 || !cycle.empty())) {
        cycle.clear();
        for (std::size_t i = 0; i < first.size() && cycle.empty(); ++i)
            cycle = finder.find({second[i]}, {first[i]}, -offset);
    }
    if (!cycle.empty()) {
        std::rotate(cycle.begin(), cycle.end() - 1, cycle.end()); // the first operator first
        proposal.cycle = cycle;
        const std::string &a = graph.at(cycle.front()).name;
        const std::string &b = graph.at(cycle.size() > 1 ? cycle[1] : cycle.front()).name;
        return withRefusal(std::move(proposal),
            refusalOf(cycle.size() == 1 ? a + " can't run before itself"
                    : offset == 0
                    ? a + " can't run before " + b + ": it needs what comes out of it"
                    : a + " can't run before " + b + " of that micro-batch: it needs what comes out of it",
                placeOf(graph, cycle.front()), "the path between them is marked"));
    }
    if (same >= 0)
        edits.replace(same, std::move(row));
    else
        edits.append(std::move(row));
    edits.finish(proposal);
    return proposal;
}

Proposal proposeOrder(const GestureContext &context, const OrderGesture &gesture)
{
    const Graph &graph = context.graph();
    const auto first = ofOneDirection(graph, gesture.first);
    const auto second = ofOneDirection(graph, gesture.second);
    Proposal refused;
    refused.words = "order";
    if (first.empty() || second.empty())
        return withRefusal(std::move(refused), nothingSelected());
    const auto words = [&](const std::vector<OperatorId> &operators) {
        const std::string text = wordsFor(context.index(), actingForward(context, operators));
        const Direction direction = graph.at(operators.front()).direction;
        if (direction == Direction::Optimizer)
            return operators.size() == 1 ? graph.at(operators.front()).name
                                         : countWords(operators.size(), "optimizer operator");
        return direction == Direction::Backward ? "backward " + text : text;
    };
    std::string text = words(first) + " before " + words(second);
    if (gesture.microBatchOffset != 0) {
        const int distance = std::abs(gesture.microBatchOffset);
        text += " of the micro-batch " + std::to_string(distance)
            + (gesture.microBatchOffset > 0 ? " later" : " earlier");
    }
    if (gesture.microBatch >= 0)
        text += ", only for micro-batch " + std::to_string(gesture.microBatch);
    OrderGesture directed = gesture;
    directed.first = first;
    directed.second = second;
    return proposeOrderOf(context, directed, std::move(text));
}

} // namespace planloom
