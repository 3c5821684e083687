#pragma once

#include "engine/layered/layered_layout.h"

#include <cstdint>

namespace planloom {

/// Graphs that layouts fail on, or take for ever (ux.md, section 5.5, point 8). Their boxes are 100 x 30.

inline LayeredGraph boxes(int count)
{
    LayeredGraph graph;
    graph.nodes.assign(static_cast<std::size_t>(count), LayeredNode{.width = 100, .height = 30});
    return graph;
}

inline LayeredGraph starOf(std::int32_t points)
{
    LayeredGraph star = boxes(points + 1);
    for (std::int32_t v = 1; v <= points; ++v)
        star.edges.push_back({0, v});
    return star;
}

inline LayeredGraph parallelChains(std::int32_t count, std::int32_t length)
{
    LayeredGraph chains = boxes(count * length);
    for (std::int32_t c = 0; c < count; ++c) {
        for (std::int32_t i = 0; i + 1 < length; ++i)
            chains.edges.push_back({c * length + i, c * length + i + 1});
    }
    return chains;
}

/// A chain, and one edge from its first to its last.
inline LayeredGraph edgeAcross(std::int32_t ranks)
{
    LayeredGraph longest = boxes(ranks);
    for (std::int32_t v = 0; v + 1 < ranks; ++v)
        longest.edges.push_back({v, v + 1});
    longest.edges.push_back({0, ranks - 1});
    return longest;
}

/// Forward, backward, and an activation from each operator to its gradient, in no folds.
inline LayeredGraph trainingChain(std::int32_t operators)
{
    LayeredGraph train = boxes(operators);
    for (std::int32_t v = 0; v + 1 < operators; ++v)
        train.edges.push_back({v, v + 1});
    for (std::int32_t v = 0; v < operators / 2 - 1; ++v)
        train.edges.push_back({v, operators - 1 - v});
    return train;
}

/// Every edge both ways, and loops.
inline LayeredGraph allToAll(std::int32_t count)
{
    LayeredGraph dense = boxes(count);
    for (std::int32_t a = 0; a < count; ++a) {
        for (std::int32_t b = 0; b < count; ++b)
            dense.edges.push_back({a, b});
    }
    return dense;
}

} // namespace planloom
