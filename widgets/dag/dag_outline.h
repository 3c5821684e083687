#pragma once

#include "engine/graph/graph.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// How the backward pass is shown.
enum class DagMode : std::uint8_t {
    ForwardOnly, ///< Backward and optimizer operators are left out.
    Folded, ///< Backward operators beside their forwards, optimizer operators with their weights' owners.
    Unrolled, ///< Three groups, Forward, Backward and Optimizer, every operator a node.
};

/// One box of the hierarchy that the DAG view can show.
struct OutlineItem {
    enum class Kind : std::uint8_t { Operator, Group, Stack };
    Kind kind = Kind::Group;
    std::int32_t parent = -1; ///< -1 for item 0, the model.
    std::vector<std::int32_t> children{}; ///< In the order of their first operators.
    std::string label{}; ///< "c_attn", "attn", "h".
    std::int32_t number = 1; ///< It is the n-th of its siblings with this label.
    ScopeId scope{}; ///< Of a group made from one; invalid for stacks and artificial groups.
    bool artificial = false; ///< Made only to bound the number of children.
    /// Its operators are units [begin, end). The copies of a stack have equally many, in corresponding order.
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::int32_t depth = 0;
};

/// What one box of kind Operator stands for.
struct OutlineUnit {
    OperatorId op{}; ///< The forward operator; a backward or optimizer one that has a box of its own.
    OperatorId backward{}; ///< Folded beside it.
    std::vector<OperatorId> optimizers{}; ///< Folded into it: the steps of its weights.
    std::int32_t item = -1;
};

/// Data flow between units, each pair once.
struct OutlineEdge {
    std::int32_t from = 0;
    std::int32_t to = 0;
    friend auto operator<=>(const OutlineEdge &, const OutlineEdge &) = default;
};

/// The hierarchy that can be shown of a graph. Immutable; the part that is open is a `DagState`.
///
/// Scopes are groups (a scope with a single child is left out, its name joins the child's). Siblings that
/// follow one another, are copies (`Scope::copyClass`) and differ in name only by a number are the copies of
/// a stack. No item has more than `kMostChildren` children: longer lists are cut into artificial groups of
/// consecutive children, so that no cut makes a cycle.
struct DagOutline {
    static constexpr std::size_t kMostChildren = 200;

    GraphSnapshot graph{};
    DagMode mode = DagMode::Folded;
    std::vector<OutlineItem> items{}; ///< Item 0 is the model; parents before children.
    std::vector<OutlineUnit> units{}; ///< Depth-first: each item's units are consecutive.
    std::vector<OutlineEdge> edges{}; ///< Ascending.
    std::vector<OutlineEdge> edgesByTarget{}; ///< The same, ascending by target, then source.
    std::int32_t groups = 0; ///< Items that can be opened: groups and stacks.
    std::int32_t stacks = 0;
    std::vector<std::int32_t> unitOfOperator{}; ///< By operator index, folded ones included; -1 if not shown.

    const OutlineItem &at(std::int32_t item) const { return items[static_cast<std::size_t>(item)]; }
    /// Operators of an item: of its units, and those folded into them, if `folded`.
    std::vector<OperatorId> operatorsOf(std::int32_t item, bool folded = true) const;
    /// Items from below the model down to `item`, for breadcrumbs; empty for the model.
    std::vector<std::int32_t> pathTo(std::int32_t item) const;
};

/// O(operators x depth). Deterministic.
DagOutline buildOutline(GraphSnapshot graph, DagMode mode);

} // namespace planloom
