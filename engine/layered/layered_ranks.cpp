#include "engine/layered/layered_ranks.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

/// Neighbour lists of all nodes in two arrays.
struct Adjacency {
    std::vector<std::int32_t> begin{};
    std::vector<std::int32_t> items{};

    Adjacency(std::size_t nodes, const std::vector<std::pair<std::int32_t, std::int32_t>> &pairs)
        : begin(nodes + 1, 0)
        , items(pairs.size())
    {
        for (const auto &[from, to] : pairs)
            ++begin[static_cast<std::size_t>(from) + 1];
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        auto next = begin;
        for (const auto &[from, to] : pairs)
            items[static_cast<std::size_t>(next[static_cast<std::size_t>(from)]++)] = to;
    }
    const std::int32_t *first(std::int32_t node) const
    {
        return items.data() + begin[static_cast<std::size_t>(node)];
    }
    const std::int32_t *last(std::int32_t node) const
    {
        return items.data() + begin[static_cast<std::size_t>(node) + 1];
    }
    std::int32_t degree(std::int32_t node) const
    {
        return static_cast<std::int32_t>(last(node) - first(node));
    }
};

} // namespace

std::vector<bool> backEdges(const LayeredGraph &graph)
{
    using Pin = LayeredNode::Pin;
    const std::size_t n = graph.nodes.size();
    std::vector<bool> back(graph.edges.size(), false);
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto &edge = graph.edges[e];
        if (isLoop(edge))
            continue;
        const bool wrongWay =
            graph.nodes[at(edge.to)].pin == Pin::First || graph.nodes[at(edge.from)].pin == Pin::Last;
        if (wrongWay)
            back[e] = true;
        else
            pairs.emplace_back(edge.from, static_cast<std::int32_t>(e));
    }
    const Adjacency out(n, pairs);
    std::vector<std::uint8_t> state(n, 0); // 0 new, 1 on the path, 2 done
    std::vector<std::pair<std::int32_t, const std::int32_t *>> path;
    for (std::int32_t root = 0; root < static_cast<std::int32_t>(n); ++root) {
        if (state[at(root)] != 0)
            continue;
        state[at(root)] = 1;
        path.emplace_back(root, out.first(root));
        while (!path.empty()) {
            auto &[node, next] = path.back();
            if (next == out.last(node)) {
                state[at(node)] = 2;
                path.pop_back();
                continue;
            }
            const std::int32_t edge = *next++;
            const std::int32_t target = graph.edges[at(edge)].to;
            if (state[at(target)] == 1) {
                back[at(edge)] = true;
            } else if (state[at(target)] == 0) {
                state[at(target)] = 1;
                path.emplace_back(target, out.first(target));
            }
        }
    }
    return back;
}

std::vector<std::int32_t> ranksOf(const LayeredGraph &graph, const std::vector<bool> &back)
{
    using Pin = LayeredNode::Pin;
    const std::size_t n = graph.nodes.size();
    std::vector<std::pair<std::int32_t, std::int32_t>> forward;
    std::vector<std::pair<std::int32_t, std::int32_t>> backward;
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto &edge = graph.edges[e];
        if (isLoop(edge) || back[e])
            continue;
        forward.emplace_back(edge.from, edge.to);
        backward.emplace_back(edge.to, edge.from);
    }
    const Adjacency out(n, forward);
    const Adjacency in(n, backward);
    const bool anyFirst = std::any_of(
        graph.nodes.begin(), graph.nodes.end(), [](const auto &node) { return node.pin == Pin::First; });
    std::vector<std::int32_t> rank(n, 0);
    for (std::size_t v = 0; v < n; ++v)
        rank[v] = anyFirst && graph.nodes[v].pin != Pin::First ? 1 : 0;
    std::vector<std::int32_t> waiting(n);
    std::vector<std::int32_t> order;
    order.reserve(n);
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(n); ++v) {
        waiting[at(v)] = in.degree(v);
        if (waiting[at(v)] == 0)
            order.push_back(v);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::int32_t v = order[i];
        for (const auto *w = out.first(v); w != out.last(v); ++w) {
            rank[at(*w)] = std::max(rank[at(*w)], rank[at(v)] + 1);
            if (--waiting[at(*w)] == 0)
                order.push_back(*w);
        }
    }
    for (auto i = order.size(); i-- > 0;) {
        const std::int32_t v = order[i];
        if (graph.nodes[at(v)].pin != Pin::None || out.degree(v) <= in.degree(v))
            continue;
        std::int32_t lowest = std::numeric_limits<std::int32_t>::max();
        for (const auto *w = out.first(v); w != out.last(v); ++w)
            lowest = std::min(lowest, rank[at(*w)] - 1);
        rank[at(v)] = std::max(rank[at(v)], lowest);
    }
    std::int32_t deepest = 0;
    for (std::size_t v = 0; v < n; ++v) {
        if (graph.nodes[v].pin != Pin::Last)
            deepest = std::max(deepest, rank[v]);
    }
    for (std::size_t v = 0; v < n; ++v) {
        if (graph.nodes[v].pin == Pin::Last)
            rank[v] = deepest + 1;
    }
    // Tightening may leave ranks empty; number those in use.
    std::vector<std::int32_t> used(rank.begin(), rank.end());
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (auto &r : rank)
        r = static_cast<std::int32_t>(std::lower_bound(used.begin(), used.end(), r) - used.begin());
    return rank;
}

} // namespace planloom
