#pragma once

#include "engine/graph/dimensions/batch.h"
#include "engine/table/selector_index.h"

#include <memory>

namespace planloom {

/// A graph with all that rows and plans ask of it, worked out once: make one per graph and plan with it as
/// often as rows change. A value; copies share everything. Thread-safe: nothing changes after construction.
struct Model {
    GraphSnapshot graph{};
    std::shared_ptr<const SelectorIndex> index{}; ///< Of `graph`; null only without a graph.
    std::shared_ptr<const BatchInfo> batch{}; ///< `analyseBatch(*graph)`; null only without a graph.

    Model() = default;
    /// Implicit: whoever plans a graph only once need not know of this type. O(graph).
    Model(GraphSnapshot of);

    explicit operator bool() const { return graph != nullptr; }
};

} // namespace planloom
