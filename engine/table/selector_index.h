#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/graph/graph.h"
#include "engine/table/layers.h"
#include "engine/table/selector.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace planloom {

/// What selectors ask of a graph, looked up once: make it per graph and use it for many selectors. Holds the
/// graph. Thread-safe: never changes after construction, but for what
/// `dimensions` and `select` keep.
class SelectorIndex
{
public:
    /// O(operators + scopes x depth).
    explicit SelectorIndex(GraphSnapshot graph);

    const Graph &graph() const { return *m_graph; }
    const GraphSnapshot &snapshot() const { return m_graph; }
    const Layers &layers() const { return m_layers; }
    const Uses &uses() const { return m_uses; }
    /// The model's dimensions; found when first asked for (milliseconds for a thousand operators), then kept.
    const DimensionClasses &dimensions() const;
    /// Layer of an operator of any direction; -1 if in none.
    std::int32_t layerOf(OperatorId op) const { return m_layerOf[static_cast<std::size_t>(op.index)]; }
    /// Forward operators stand first: this many.
    std::size_t forwardCount() const { return m_forwardCount; }
    /// Forward operators of a layer.
    std::int32_t forwardInLayer(std::int32_t layer) const
    {
        return m_forwardInLayer[static_cast<std::size_t>(layer)];
    }
    /// Forward operators in a module and those below it.
    std::int32_t forwardBelow(ScopeId scope) const
    {
        return m_forwardBelow[static_cast<std::size_t>(scope.index)];
    }
    const std::string &pathOf(ScopeId scope) const { return m_paths[static_cast<std::size_t>(scope.index)]; }
    /// The operator with this name; an invalid id if there is none.
    OperatorId findOperator(std::string_view name) const;

    /// The selected operators, of all directions, ascending. Kept: rows are bound again after every edit, and
    /// most have not changed. O(operators x size of the selector), later O(selected)
    std::vector<OperatorId> select(const Selector &selector) const;

    /// What in `selector` this graph does not have (a name, kind, module, layer or weight that is not a
    /// pattern).
    /// @return NotFound naming the first one
    Result<void> check(const Selector &selector) const;

private:
    struct Dimensions;
    struct Selected;

    std::vector<OperatorId> evaluate(const Selector &selector) const;

    GraphSnapshot m_graph{};
    std::shared_ptr<Dimensions> m_dimensions{}; ///< Not null.
    std::shared_ptr<Selected> m_selected{}; ///< Not null.
    Uses m_uses{};
    Layers m_layers{};
    std::vector<std::int32_t> m_layerOf{}; ///< By operator.
    std::size_t m_forwardCount = 0;
    std::vector<std::int32_t> m_forwardInLayer{};
    std::vector<std::int32_t> m_forwardBelow{}; ///< By scope.
    std::vector<std::string> m_paths{};
    std::unordered_map<std::string_view, OperatorId> m_byName{}; ///< Views into the graph's names.
};

/// `SelectorIndex(graph).select(selector)`, for a single use.
std::vector<OperatorId> select(const GraphSnapshot &graph, const Selector &selector);

} // namespace planloom
