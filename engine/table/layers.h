#pragma once

#include "engine/graph/graph.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The repeated layers of a model: what `layer:N` selects, and what pipelines are cut at.
struct Layers {
    std::vector<ScopeId>
        scopes{}; ///< In order of first appearance; encoder and decoder layers follow each other.
    std::vector<std::int32_t> ofScope{}; ///< Layer in which a scope lies, by scope index; -1 if in none.
};

/// Finds layers from module scopes.
///
/// Numbered siblings ("h.0", "h.1", ...) are layers if two of them are copies of one another, or have inner
/// modules that are (the first layer of a stack often differs a little); of nested ones the outermost count,
/// and several stacks (encoder and decoder, the levels of a Swin) are numbered on. Where there are none, the
/// copies of the most repeated outermost copy class. O(scopes log scopes).
Layers findLayers(const Graph &graph);

} // namespace planloom
