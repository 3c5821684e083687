// What is done to positions that are given: ranks and routes for another engine's, columns for long chains.

#include "engine/base/ids.h"
#include "engine/layered/layered_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace planloom {

LayeredLayout routedLayout(const LayeredGraph &graph, std::vector<LayoutPoint> centres)
{
    const std::size_t n = graph.nodes.size();
    LayeredLayout layout;
    layout.ranks.assign(n, 0);
    layout.routes.resize(graph.edges.size());
    if (n == 0)
        return layout;
    double left = std::numeric_limits<double>::max();
    double top = left;
    for (std::size_t v = 0; v < n; ++v) {
        left = std::min(left, centres[v].x - graph.nodes[v].width / 2);
        top = std::min(top, centres[v].y - graph.nodes[v].height / 2);
    }
    for (std::size_t v = 0; v < n; ++v) {
        centres[v].x -= left;
        centres[v].y -= top;
        layout.width = std::max(layout.width, centres[v].x + graph.nodes[v].width / 2);
        layout.height = std::max(layout.height, centres[v].y + graph.nodes[v].height / 2);
    }
    // Ranks: maximal sets of boxes whose vertical extents overlap.
    std::vector<std::size_t> byTop(n);
    std::iota(byTop.begin(), byTop.end(), std::size_t{0});
    const auto topOf = [&](std::size_t v) { return centres[v].y - graph.nodes[v].height / 2; };
    const auto bottomOf = [&](std::size_t v) { return centres[v].y + graph.nodes[v].height / 2; };
    std::stable_sort(byTop.begin(), byTop.end(), [&](auto a, auto b) { return topOf(a) < topOf(b); });
    std::vector<double> rankTop;
    std::vector<double> rankBottom;
    std::vector<std::vector<std::size_t>> ranks;
    for (const auto v : byTop) {
        if (ranks.empty() || topOf(v) > rankBottom.back() + 0.5) {
            ranks.emplace_back();
            rankTop.push_back(topOf(v));
            rankBottom.push_back(bottomOf(v));
        }
        ranks.back().push_back(v);
        rankBottom.back() = std::max(rankBottom.back(), bottomOf(v));
        layout.ranks[v] = static_cast<std::int32_t>(ranks.size()) - 1;
    }
    /// Free stretches of each rank, left to right.
    std::vector<std::vector<std::pair<double, double>>> gaps(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        auto &row = ranks[r];
        std::stable_sort(row.begin(), row.end(), [&](auto a, auto b) { return centres[a].x < centres[b].x; });
        double from = std::numeric_limits<double>::lowest();
        for (const auto v : row) {
            const double half = graph.nodes[v].width / 2 + graph.bendGap / 2;
            if (centres[v].x - half >= from)
                gaps[r].emplace_back(from, centres[v].x - half);
            from = std::max(from, centres[v].x + half);
        }
        gaps[r].emplace_back(from, std::numeric_limits<double>::max());
    }
    const auto nearestFree = [&](std::size_t rank, double x) {
        double best = x;
        double distance = std::numeric_limits<double>::max();
        for (const auto &[from, to] : gaps[rank]) {
            const double candidate = std::clamp(x, from, to);
            if (std::abs(candidate - x) < distance) {
                distance = std::abs(candidate - x);
                best = candidate;
            }
        }
        return best;
    };
    double shift = 0;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto &edge = graph.edges[e];
        auto &route = layout.routes[e];
        const std::int32_t fromRank = layout.ranks[at(edge.from)];
        const std::int32_t toRank = layout.ranks[at(edge.to)];
        if (isLoop(edge)) {
            route.kind = EdgeRoute::Loop;
            continue;
        }
        if (toRank <= fromRank || toRank - fromRank > graph.longestSpan) {
            route.kind = EdgeRoute::Stub;
            continue;
        }
        const LayoutPoint start{centres[at(edge.from)].x + edge.fromOffset, bottomOf(at(edge.from))};
        const LayoutPoint end{centres[at(edge.to)].x + edge.toOffset, topOf(at(edge.to))};
        route.points.push_back(start);
        route.points.push_back({start.x, rankBottom[at(fromRank)]});
        double x = start.x;
        for (std::int32_t r = fromRank + 1; r < toRank; ++r) {
            const double share = 1.0 / (toRank - r + 1);
            x = nearestFree(at(r), x + (end.x - x) * share);
            shift = std::max(shift, -x);
            layout.width = std::max(layout.width, x);
            route.points.push_back({x, rankTop[at(r)]});
            route.points.push_back({x, rankBottom[at(r)]});
        }
        route.points.push_back({end.x, rankTop[at(toRank)]});
        route.points.push_back(end);
    }
    if (shift > 0) { // a route that passes on the left of everything
        for (auto &centre : centres)
            centre.x += shift;
        for (auto &route : layout.routes) {
            for (auto &point : route.points)
                point.x += shift;
        }
        layout.width += shift;
    }
    layout.centres = std::move(centres);
    return layout;
}

LayeredLayout wrapped(const LayeredGraph &graph, LayeredLayout layout)
{
    if (layout.height < graph.wrapHeight || layout.height < 3 * layout.width)
        return layout;
    struct Extent {
        double low = std::numeric_limits<double>::max();
        double high = std::numeric_limits<double>::lowest();
        void add(double from, double to)
        {
            low = std::min(low, from);
            high = std::max(high, to);
        }
    };
    std::int32_t deepest = 0;
    for (const auto r : layout.ranks)
        deepest = std::max(deepest, r);
    std::vector<Extent> heights(at(deepest + 1));
    for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
        const double half = graph.nodes[v].height / 2;
        heights[at(layout.ranks[v])].add(layout.centres[v].y - half, layout.centres[v].y + half);
    }
    // A rank that is much of the whole would leave its column, or its neighbours', mostly empty.
    for (const auto &rank : heights) {
        if (rank.high - rank.low > 0.17 * layout.height)
            return layout;
    }
    const double columnGap = 3 * graph.nodeGap;
    const double columns =
        std::ceil(std::sqrt(graph.wrapAspect * layout.height / (layout.width + columnGap)));
    const double columnHeight = layout.height / columns;
    // Whole ranks, until a column is full.
    std::vector<std::int32_t> columnOf(at(deepest + 1), 0);
    std::vector<double> columnTop{0};
    for (std::int32_t r = 1; r <= deepest; ++r) {
        const double middle = (heights[at(r)].low + heights[at(r)].high) / 2;
        const bool lastPorts = r == deepest && heights[at(r)].low == heights[at(r)].high;
        if (middle > columnTop.back() + columnHeight && !lastPorts)
            columnTop.push_back(heights[at(r)].low);
        columnOf[at(r)] = static_cast<std::int32_t>(columnTop.size()) - 1;
    }
    std::vector<Extent> widths(columnTop.size());
    for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
        const double half = graph.nodes[v].width / 2;
        widths[at(columnOf[at(layout.ranks[v])])].add(layout.centres[v].x - half, layout.centres[v].x + half);
    }
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        auto &route = layout.routes[e];
        const auto from = columnOf[at(layout.ranks[at(graph.edges[e].from)])];
        const auto to = columnOf[at(layout.ranks[at(graph.edges[e].to)])];
        if (route.kind == EdgeRoute::Routed && from != to)
            route = {.kind = EdgeRoute::Stub, .points = {}};
        for (const auto &point : route.points)
            widths[at(from)].add(point.x, point.x);
    }
    std::vector<double> shift(columnTop.size());
    double x = 0;
    for (std::size_t c = 0; c < columnTop.size(); ++c) {
        shift[c] = x - widths[c].low;
        x += widths[c].high - widths[c].low + columnGap;
    }
    layout.width = x - columnGap;
    layout.height = 0;
    for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
        const auto c = at(columnOf[at(layout.ranks[v])]);
        layout.centres[v].x += shift[c];
        layout.centres[v].y -= columnTop[c];
        layout.height = std::max(layout.height, layout.centres[v].y + graph.nodes[v].height / 2);
    }
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto c = at(columnOf[at(layout.ranks[at(graph.edges[e].from)])]);
        for (auto &point : layout.routes[e].points) {
            point.x += shift[c];
            point.y -= columnTop[c];
        }
    }
    return layout;
}

} // namespace planloom
