#include "engine/gesture/row_edits.h"

#include "engine/base/words.h"
#include "engine/gesture/narrow.h"
#include "engine/hardware/device_word.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

void RowEdits::letGo(std::int32_t line, const std::vector<OperatorId> &operators)
{
    Change &change = m_changes[line];
    change.dropped.insert(change.dropped.end(), operators.begin(), operators.end());
    change.sorted = false;
}

void RowEdits::replace(std::int32_t line, Row row)
{
    m_changes[line].row = std::move(row);
}

void RowEdits::remove(std::int32_t line)
{
    m_changes[line].removed = true;
}

void RowEdits::append(Row row)
{
    m_appended.push_back(std::move(row));
}

const std::vector<OperatorId> &RowEdits::droppedBy(Change &change) const
{
    if (!change.sorted)
        change.dropped = forwardOnes(m_context.graph(), std::move(change.dropped));
    change.sorted = true;
    return change.dropped;
}

bool RowEdits::letsGo(std::int32_t line, OperatorId op)
{
    const auto change = m_changes.find(line);
    if (change == m_changes.end())
        return false;
    const auto &dropped = droppedBy(change->second);
    return change->second.removed || std::binary_search(dropped.begin(), dropped.end(), op);
}

std::vector<OperatorId> RowEdits::dropped(std::int32_t line, const std::vector<OperatorId> &selected)
{
    const auto change = m_changes.find(line);
    if (change == m_changes.end())
        return {};
    return change->second.removed ? selected : droppedBy(change->second);
}

void RowEdits::narrowRows(Proposal &proposal)
{
    for (auto &[line, change] : m_changes) {
        if (change.row || (change.dropped.empty() && !change.removed))
            continue;
        const Row &old = *lineAt(line).row;
        const std::string name = "row " + std::to_string(line + 1);
        proposal.yielding.push_back(line);
        if (!change.removed) {
            if (auto rest = without(m_writer, old.selector, change.dropped)) {
                change.row = old;
                change.row->selector = *std::move(rest);
                proposal.yieldingWords.push_back(name + " lets go of " + countWords(change.dropped.size()));
                continue;
            }
        }
        change.removed = true;
        proposal.yieldingWords.push_back(name + " goes");
    }
}

void RowEdits::placeAppended(Proposal &proposal)
{
    // What stands there already, word for word, needs no second row: it stays.
    std::erase_if(m_appended, [&](const Row &row) {
        for (auto &[line, change] : m_changes) {
            const Row &old = *lineAt(line).row;
            if (change.removed && old.enabled && old.selector == row.selector && old.rule == row.rule) {
                change.removed = false;
                const auto at = std::find(proposal.yielding.begin(), proposal.yielding.end(), line);
                if (at != proposal.yielding.end()) {
                    proposal.yieldingWords.erase(
                        proposal.yieldingWords.begin() + (at - proposal.yielding.begin()));
                    proposal.yielding.erase(at);
                }
                change.dropped.clear();
                return true;
            }
        }
        return false;
    });
    std::vector<Row> behind;
    for (Row &row : m_appended) {
        const auto goes = std::find_if(m_changes.begin(), m_changes.end(), [&](const auto &entry) {
            return entry.second.removed && !entry.second.row
                && lineAt(entry.first).row->rule.index() == row.rule.index();
        });
        proposal.rows.push_back(print(row));
        if (goes == m_changes.end()) {
            behind.push_back(std::move(row));
            continue;
        }
        row.note = lineAt(goes->first).row->note;
        goes->second.row = std::move(row);
    }
    m_appended = std::move(behind);
}

void RowEdits::finish(Proposal &proposal)
{
    for (auto &[line, change] : m_changes)
        droppedBy(change);
    narrowRows(proposal);
    for (const auto &[line, change] : m_changes) {
        if (change.row && change.dropped.empty() && !change.removed)
            proposal.rows.push_back(print(*change.row));
    }
    placeAppended(proposal);

    const TableDocument &document = m_context.document;
    std::vector<TableSplice> splices;
    const auto add = [&](TableEdit edit) {
        for (TableSplice &splice : edit.splices)
            splices.push_back(std::move(splice));
    };
    for (const auto &[line, change] : m_changes) {
        if (change.row)
            add(replaceRow(document, line, *change.row));
        else if (change.removed)
            add(removeLines(document, {line}));
    }
    add(appendRows(document, m_appended));
    // Each was made for the document as it is; they lie one behind the other.
    std::stable_sort(splices.begin(), splices.end(),
        [](const TableSplice &a, const TableSplice &b) { return a.line < b.line; });
    std::int32_t shift = 0;
    for (TableSplice &splice : splices) {
        splice.line += shift;
        shift += static_cast<std::int32_t>(splice.inserted.size())
            - static_cast<std::int32_t>(splice.removed.size());
    }
    proposal.edit.splices = std::move(splices);
    if (proposal.edit.empty())
        proposal.rows.clear();
}

Row gestureRow(Selector selector, Rule rule)
{
    Row row;
    row.selector = std::move(selector);
    row.rule = std::move(rule);
    row.origin = RowOrigin::Gesture;
    return row;
}

std::optional<Domain> domainOf(const GestureContext &context, const OpAssignRule &rule)
{
    auto domain = RuleMeaning<OpAssignRule>::domainOf(context, rule);
    return domain ? std::optional(*std::move(domain)) : std::nullopt;
}

OpAssignRule ruleOf(const GestureContext &context, const Domain &domain)
{
    if (domain.onMesh)
        return {{}, domain.fixed};
    if (const auto part = partOfMesh(context.mesh, domain.devices))
        return {{}, *part};
    return {domain.devices, {}};
}

namespace {

/// Where the plan runs an operator.
Domain planned(const GestureContext &context, const OperatorDecision &decision)
{
    const bool overAxes = !decision.partition.splits.empty()
        && std::any_of(decision.partition.splits.begin(), decision.partition.splits.end(),
            [](const Split &split) { return !split.axis.empty(); });
    auto devices = distinct(decision.devices);
    auto sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    if (const auto part = partOfMesh(context.mesh, overAxes ? sorted : devices))
        return domainOnMesh(context.mesh, *part);
    return domainOfList(std::move(devices));
}

} // namespace

std::vector<PlacementByRow> placementsOf(const GestureContext &context, const Subset &subset)
{
    std::vector<PlacementByRow> placements(subset.operators().size());
    std::vector<const OpAssignRule *> rules(placements.size(), nullptr);
    forEachRule<OpAssignRule>(context, [&](std::int32_t line, const Row &row, const OpAssignRule &rule) {
        for (const OperatorId op : subset.selected(row.selector)) {
            const auto at = static_cast<std::size_t>(subset.positionOf(op));
            placements[at].line = line;
            rules[at] = &rule;
        }
    });
    const OpAssignRule *lastRule = nullptr;
    Domain last;
    for (std::size_t i = 0; i < placements.size(); ++i) {
        const auto op = static_cast<std::size_t>(subset.operators()[i].index);
        PlacementByRow &placement = placements[i];
        if (rules[i]) {
            if (rules[i] != lastRule) {
                last = domainOf(context, *rules[i]).value_or(everywhere(context.mesh, context.deviceCount));
                lastRule = rules[i];
            }
            placement.domain = last;
        } else if (context.plan && op < context.plan->decisions.size()
            && !context.plan->decisions[op].devices.empty()) {
            placement.domain = planned(context, context.plan->decisions[op]);
        } else {
            placement.domain = everywhere(context.mesh, context.deviceCount);
            placement.known = false;
        }
    }
    return placements;
}

std::string wordsFor(const GestureContext &context, const OpAssignRule &rule)
{
    if (rule.devices.empty())
        return rule.coordinates.empty() ? std::string("the mesh") : print(Rule{rule});
    return deviceWord(context.cluster) + (rule.devices.size() > 1 ? "s " : " ") + rangesOf(rule.devices);
}

std::string placeOf(const Graph &graph, OperatorId op, const std::string &part)
{
    return "operator:" + graph.at(op).name + (part.empty() ? "" : "/" + part);
}

Error refusalOf(std::string sentence, std::string where, std::string advice)
{
    return {ErrorCode::InvalidInput, std::move(sentence), std::move(advice), std::move(where)};
}

Proposal withRefusal(Proposal proposal, std::optional<Error> why)
{
    proposal.refusal = std::move(why);
    return proposal;
}

std::string countWords(std::size_t count, const char *what)
{
    return counted(static_cast<std::int64_t>(count), what);
}

} // namespace planloom
