#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// A box to place. Lengths are in scene units (pixels at zoom 1).
struct LayeredNode {
    enum class Pin : std::uint8_t { None, First, Last }; ///< Rank it must stand in.
    double width = 0;
    double height = 0;
    Pin pin = Pin::None;
    friend bool operator==(const LayeredNode &, const LayeredNode &) = default;
};

/// Data flow from the bottom of one box to the top of another. Offsets shift the ends from the boxes'
/// middles.
struct LayeredEdge {
    std::int32_t from = 0;
    std::int32_t to = 0;
    double fromOffset = 0;
    double toOffset = 0;
    friend bool operator==(const LayeredEdge &, const LayeredEdge &) = default;
};

inline bool isLoop(const LayeredEdge &edge)
{
    return edge.from == edge.to;
}

/// A graph to lay out. Cycles, self loops, parallel edges and several components are all allowed.
struct LayeredGraph {
    std::vector<LayeredNode> nodes{};
    std::vector<LayeredEdge> edges{};
    double nodeGap = 22; ///< Between boxes of a rank.
    double rankGap = 28; ///< Between ranks.
    double bendGap = 10; ///< Between an edge that passes a rank and its neighbours.
    double wrapAspect = 1.6; ///< Width to height that `wrapped` aims at.
    double wrapHeight = 5000; ///< What is lower `wrapped` leaves as it is: a scroll is better than a break.
    std::int32_t longestSpan = 8; ///< Edges over more ranks are not routed: they become stubs.
    friend bool operator==(const LayeredGraph &, const LayeredGraph &) = default;
};

struct LayoutPoint {
    double x = 0;
    double y = 0;
    friend bool operator==(const LayoutPoint &, const LayoutPoint &) = default;
};

/// How an edge is drawn.
enum class EdgeRoute : std::uint8_t {
    Routed, ///< Along `points`.
    Stub, ///< Too long, or against the flow (a cycle): only its ends are marked.
    Loop, ///< From a node to itself: not drawn.
};

/// The path of a routed edge: p0 straight down to p1, a curve to p2, straight down to p3, a curve ... An even
/// number of points; even ones are where a rank is entered (p0: the source's bottom), odd ones where it is
/// left (the last: the target's top).
struct LayeredRoute {
    EdgeRoute kind = EdgeRoute::Routed;
    std::vector<LayoutPoint> points{};
    friend bool operator==(const LayeredRoute &, const LayeredRoute &) = default;
};

/// Where everything stands. The smallest rectangle around the boxes has its corner at (0, 0).
struct LayeredLayout {
    std::vector<LayoutPoint> centres{}; ///< By node.
    std::vector<std::int32_t> ranks{}; ///< By node, from 0.
    std::vector<LayeredRoute> routes{}; ///< By edge.
    double width = 0;
    double height = 0;
    friend bool operator==(const LayeredLayout &, const LayeredLayout &) = default;
};

/// Lays `graph` out in ranks from top to bottom (Sugiyama's scheme, after ux.md 5.4).
///
/// Cycles are broken by a depth-first search in node order. Ranks are longest paths, tightened once; edges
/// over 2..longestSpan ranks get a bend in each rank between; the order in ranks comes from barycentre sweeps
/// with a stable sort; x positions from sweeps that solve each rank exactly by pooling adjacent violators.
/// Boxes never overlap. Deterministic. O((nodes + edges) log) for fixed longestSpan. A stop leaves boxes
/// placed but less tidy.
LayeredLayout layeredLayout(const LayeredGraph &graph, std::stop_token stop = {});

/// Ranks, routes and bounds for boxes that another engine has placed (`centres`, any origin). Boxes whose
/// vertical extents overlap share a rank; an edge passes a rank in the gap nearest to its straight line.
LayeredLayout routedLayout(const LayeredGraph &graph, std::vector<LayoutPoint> centres);

/// Breaks a layout that is long and narrow (a deep chain) into columns side by side, read like a page; edges
/// from one column to another become stubs. Others are returned as they are.
LayeredLayout wrapped(const LayeredGraph &graph, LayeredLayout layout);

/// Number of pairs of routed edges that cross between neighbouring ranks. For tests and comparisons; O(e log
/// e).
std::int64_t crossingsOf(const LayeredGraph &graph, const LayeredLayout &layout);

} // namespace planloom
