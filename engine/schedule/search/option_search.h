#pragma once

#include "engine/schedule/search/block_options.h"
#include "engine/schedule/search/start_problem.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// Searches what is decided on the options of a placement together with starts: depth first over the blocks
/// that have options, below a node only where the placement with all undecided options eased (see
/// `withOptions`) has starts. Options that no queue has time for are kept without a search. A placement
/// without options is one node.
class OptionSearch
{
public:
    explicit OptionSearch(const Placement &placement); ///< A valid one, which outlives this.

    const Placement &placement() const { return m_placement; }
    /// All options open: bounds of it are bounds of the placement.
    const Placement &eased() const { return m_root->placement; }
    const StartProblem &easedProblem() const { return m_root->problem; }

    /// What starts are asked for.
    struct Question {
        std::int64_t busy = 0; ///< Time that a queue has for the blocks of one micro-batch.
        std::int32_t microBatches = 1; ///< Whose runs, as `PlacementRuns` numbers them, have starts.
        /// Of a placement with some or all decisions; nothing where it is plain that there are none.
        std::function<std::optional<StartSearch>(const StartProblem &)> starts{};
    };
    /// @param mostNodes  of all searches of starts together, after which it stops
    SearchOutcome find(const Question &question, const ScheduleLimits &limits, std::int64_t mostNodes);

    /// Of the last `find` that found some: what is decided, what that makes of the placement, and its starts.
    const OptionChoices &choices() const { return m_found->choices; }
    const StartProblem &problem() const { return m_found->problem; }
    const std::vector<std::int64_t> &starts() const { return m_starts; }

private:
    struct Node {
        Node(const Placement &whole, OptionChoices decided)
            : choices(std::move(decided))
            , placement(withOptions(whole, choices))
            , problem(placement)
        {
        }
        OptionChoices choices{};
        Placement placement{};
        StartProblem problem; ///< Of `placement`: nodes stay where they are.
    };
    using NodePointer = std::shared_ptr<const Node>;

    NodePointer nodeOf(OptionChoices choices) const;
    bool hasTime(const OptionChoices &choices, std::size_t block, std::int32_t option) const;
    void keepWhatHasNoTime(OptionChoices &choices) const;
    std::size_t blockToDecide(const Node &node, bool found) const;
    SearchOutcome searchAt(const NodePointer &node, std::int64_t mostNodes);
    SearchOutcome visit(OptionChoices choices);

    const Placement &m_placement;
    NodePointer m_root{};
    NodePointer m_found{};
    std::vector<std::int64_t> m_starts{};
    const Question *m_question = nullptr; ///< Of the search that goes on, as what follows.
    const ScheduleLimits *m_limits = nullptr;
    std::int64_t m_nodesLeft = 0;
};

} // namespace planloom
