#pragma once

#include "engine/gesture/gesture.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// Operators of any one direction as a selector: "backward & layer:3" for backward ones.
Selector directedSelector(const SelectorIndex &index, const std::vector<OperatorId> &operators);

/// Looks for paths along data flow and order rows.
class OrderPaths
{
public:
    /// @param without  lines of order rows that do not count
    /// @param part  of blocks: other rows count where they order the same part, or all of every block
    explicit OrderPaths(const GestureContext &context, const std::vector<std::int32_t> &without = {},
        const BlockPart &part = {});

    /// A path from one of `from` to one of `to` on which micro-batches are at most `mostOffset` later; empty
    /// if there is none. O(operators + edges) between them; stops at the first. Free where no row leads to an
    /// earlier micro-batch and `mostOffset` is below 0.
    std::vector<OperatorId> find(
        const std::vector<OperatorId> &from, const std::vector<OperatorId> &to, std::int32_t mostOffset);

private:
    struct Edges {
        std::vector<OperatorId> first{};
        std::vector<OperatorId> second{};
        std::int32_t offset = 0;
    };
    struct Visit {
        std::int32_t offset = 0;
        OperatorId before{};
        std::int32_t times = 0; ///< Not reached yet if 0.
        bool isEnd = false;
    };
    Visit &visitOf(OperatorId op) { return m_visits[static_cast<std::size_t>(op.index)]; }

    const GestureContext &m_context;
    std::vector<Edges> m_rows{};
    std::unordered_map<std::int32_t, std::vector<std::pair<std::size_t, std::size_t>>>
        m_rowsAt{}; ///< Row, position.
    std::int32_t m_furthestRow = -1; ///< The last operator in the graph from which a row leads on.
    bool m_onlyLater = true; ///< No row leads to an earlier micro-batch: offsets only grow along a path.
    std::vector<Visit> m_visits{}; ///< By operator.
    std::vector<OperatorId> m_touched{}; ///< Those whose visit is not blank.
};

/// Writes an order row for the operators of a gesture, each side of one direction, if it closes no cycle. Of
/// different lanes or slices only the engine can tell: data flow leads from each to its own.
/// @param turnsAround  a row that orders just these the other way round gives way, instead of being a reason
/// to refuse
Proposal proposeOrderOf(
    const GestureContext &context, const OrderGesture &gesture, std::string words, bool turnsAround = false);

} // namespace planloom
