#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/plan/layers.h"
#include "engine/plan/selector.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace planloom {

/// What selectors ask of a graph, looked up once: make it per graph and use it for many selectors. Holds the
/// graph. Thread-safe: never changes after construction.
class SelectorIndex
{
public:
    /// O(operators + scopes x depth).
    explicit SelectorIndex(GraphSnapshot graph);

    const Graph &graph() const { return *m_graph; }
    const GraphSnapshot &snapshot() const { return m_graph; }
    const Layers &layers() const { return m_layers; }
    const Uses &uses() const { return m_uses; }
    /// Layer of an operator of any direction; -1 if in none.
    std::int32_t layerOf(OperatorId op) const;
    const std::string &pathOf(ScopeId scope) const { return m_paths[static_cast<std::size_t>(scope.index)]; }
    /// The operator with this name; an invalid id if there is none.
    OperatorId findOperator(std::string_view name) const;

    /// The selected operators, of all directions, ascending. O(operators x size of the selector).
    std::vector<OperatorId> select(const Selector &selector) const;

    /// What in `selector` this graph does not have (a name, kind, module, layer or weight that is not a
    /// pattern).
    /// @return NotFound naming the first one
    Result<void> check(const Selector &selector) const;

private:
    using Marks = std::vector<char>; ///< By operator index.
    Marks evaluate(const Selector &selector) const;
    void markNames(const Selector &selector, Marks &marks) const;

    GraphSnapshot m_graph {};
    Uses m_uses {};
    Layers m_layers {};
    std::vector<std::string> m_paths {};
    std::unordered_map<std::string_view, OperatorId> m_byName {}; ///< Views into the graph's names.
};

/// `SelectorIndex(graph).select(selector)`, for a single use.
std::vector<OperatorId> select(const GraphSnapshot &graph, const Selector &selector);

} // namespace planloom
