#include "engine/schedule/search/option_search.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int64_t kShortLook = 200; ///< Nodes of a search whose outcome is not needed.

bool isOpen(const OptionChoices &choices)
{
    return std::find(choices.begin(), choices.end(), kOptionOpen) != choices.end();
}

} // namespace

OptionSearch::OptionSearch(const Placement &placement)
    : m_placement(placement)
    , m_root(std::make_shared<const Node>(placement, openOptions(placement)))
{
}

OptionSearch::NodePointer OptionSearch::nodeOf(OptionChoices choices) const
{
    if (choices == m_root->choices)
        return m_root;
    return std::make_shared<const Node>(m_placement, std::move(choices));
}

bool OptionSearch::hasTime(const OptionChoices &choices, std::size_t block, std::int32_t option) const
{
    OptionChoices next = choices;
    next[block] = option;
    return busiestQueue(withOptions(m_placement, next)) <= m_question->busy;
}

void OptionSearch::keepWhatHasNoTime(OptionChoices &choices) const
{
    std::vector<bool> may(choices.size(), false);
    for (std::size_t o = 0; o < m_placement.options.size(); ++o) {
        const std::size_t block = at(m_placement.options[o].block);
        may[block] = may[block]
            || (choices[block] == kOptionOpen && hasTime(choices, block, static_cast<std::int32_t>(o)));
    }
    for (std::size_t b = 0; b < choices.size(); ++b)
        if (choices[b] == kOptionOpen && !may[b])
            choices[b] = kOptionKept;
}

/// What holds the most for the longest, in the starts that were found for the node, where there are any.
std::size_t OptionSearch::blockToDecide(const Node &node, bool found) const
{
    const PlacementRuns runs(node.placement, m_question->microBatches);
    const auto startOf = [&](std::int32_t block) { return m_starts[at(runs.number(block, 0))]; };
    double most = -1;
    std::size_t best = 0;
    for (const MemoryOption &option : m_placement.options) {
        if (node.choices[at(option.block)] != kOptionOpen)
            continue;
        const std::int64_t apart = found ? startOf(option.until) - startOf(option.block) : 0;
        const double held = static_cast<double>(option.memory) * static_cast<double>(apart + 1);
        if (held > most) {
            most = held;
            best = at(option.block);
        }
    }
    return best;
}

SearchOutcome OptionSearch::searchAt(const NodePointer &node, std::int64_t mostNodes)
{
    --m_nodesLeft;
    auto search = m_question->starts(node->problem);
    if (!search)
        return SearchOutcome::None;
    const SearchOutcome outcome = search->find(*m_limits, mostNodes);
    m_nodesLeft -= search->nodes();
    if (outcome == SearchOutcome::Found)
        m_starts = search->starts();
    return outcome;
}

SearchOutcome OptionSearch::visit(OptionChoices choices)
{
    keepWhatHasNoTime(choices);
    const NodePointer node = nodeOf(choices);
    const bool open = isOpen(choices);
    const bool whole = m_placement.options.empty();
    const SearchOutcome eased = searchAt(node, whole ? m_nodesLeft : std::max(m_nodesLeft / 4, kShortLook));
    if (eased == SearchOutcome::None)
        return eased;
    if (!open) {
        if (eased == SearchOutcome::Found)
            m_found = node;
        return eased;
    }
    const std::size_t block = blockToDecide(*node, eased == SearchOutcome::Found);
    // Perhaps no further option is needed.
    OptionChoices closed = choices;
    std::replace(closed.begin(), closed.end(), kOptionOpen, kOptionKept);
    const NodePointer without = nodeOf(std::move(closed));
    if (searchAt(without, kShortLook) == SearchOutcome::Found) {
        m_found = without;
        return SearchOutcome::Found;
    }
    SearchOutcome all = SearchOutcome::None;
    std::vector<std::int32_t> decisions;
    for (std::size_t o = 0; o < m_placement.options.size(); ++o)
        if (at(m_placement.options[o].block) == block
            && hasTime(choices, block, static_cast<std::int32_t>(o)))
            decisions.push_back(static_cast<std::int32_t>(o));
    decisions.push_back(kOptionKept);
    for (const std::int32_t decision : decisions) {
        if (m_nodesLeft <= 0 || m_limits->areOver())
            return SearchOutcome::Stopped;
        choices[block] = decision;
        const SearchOutcome outcome = visit(choices);
        if (outcome == SearchOutcome::Found)
            return outcome;
        if (outcome == SearchOutcome::Stopped)
            all = outcome;
    }
    return all;
}

SearchOutcome OptionSearch::find(
    const Question &question, const ScheduleLimits &limits, std::int64_t mostNodes)
{
    m_question = &question;
    m_limits = &limits;
    m_nodesLeft = mostNodes;
    return visit(openOptions(m_placement));
}

} // namespace planloom
