#include "engine/layered/layered_layout.h"

#include "engine/base/ids.h"
#include "engine/layered/layered_crossings.h"
#include "engine/layered/layered_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

constexpr int kOrderSweeps = 8;
constexpr int kPositionSweeps = 8;
/// Below this size the order is also improved by exchanging neighbours, and the best of all sweeps is kept.
constexpr std::size_t kSmall = 1500;

/// A link between neighbouring ranks, with the ends' offsets.
struct Link {
    std::int32_t other;
    double ownOffset;
    double otherOffset;
    double weight;
};

/// The graph with a node for every bend; nodes [0, boxes) are the graph's own.
class Ranked
{
public:
    Ranked(const LayeredGraph &graph, std::vector<std::int32_t> ranks, const std::vector<bool> &back,
        std::stop_token stop)
        : m_graph(graph)
        , m_rank(std::move(ranks))
        , m_stop(std::move(stop))
    {
        const std::size_t n = graph.nodes.size();
        m_bends.resize(graph.edges.size());
        m_kinds.resize(graph.edges.size(), EdgeRoute::Routed);
        struct Short {
            std::int32_t from, to;
            double fromOffset, toOffset;
        };
        std::vector<Short> shorts;
        for (std::size_t e = 0; e < graph.edges.size(); ++e) {
            const auto &edge = graph.edges[e];
            const std::int32_t span = m_rank[at(edge.to)] - m_rank[at(edge.from)];
            if (isLoop(edge)) {
                m_kinds[e] = EdgeRoute::Loop;
            } else if (back[e] || span > graph.longestSpan || span < 1) {
                m_kinds[e] = EdgeRoute::Stub;
            } else {
                std::int32_t previous = edge.from;
                double offset = edge.fromOffset;
                for (std::int32_t r = m_rank[at(edge.from)] + 1; r < m_rank[at(edge.to)]; ++r) {
                    const auto bend = static_cast<std::int32_t>(m_rank.size());
                    m_rank.push_back(r);
                    m_bends[e].push_back(bend);
                    shorts.push_back({previous, bend, offset, 0});
                    previous = bend;
                    offset = 0;
                }
                shorts.push_back({previous, edge.to, offset, edge.toOffset});
            }
        }
        const std::size_t total = m_rank.size();
        m_upBegin.assign(total + 1, 0);
        m_downBegin.assign(total + 1, 0);
        for (const auto &link : shorts) {
            ++m_downBegin[at(link.from) + 1];
            ++m_upBegin[at(link.to) + 1];
        }
        std::partial_sum(m_upBegin.begin(), m_upBegin.end(), m_upBegin.begin());
        std::partial_sum(m_downBegin.begin(), m_downBegin.end(), m_downBegin.begin());
        m_up.resize(shorts.size());
        m_down.resize(shorts.size());
        auto nextUp = m_upBegin;
        auto nextDown = m_downBegin;
        for (const auto &link : shorts) {
            const int bends = (at(link.from) >= n ? 1 : 0) + (at(link.to) >= n ? 1 : 0);
            const double weight = bends == 2 ? 8
                : bends == 1                 ? 2
                                             : 1; // long edges straight before short ones
            m_down[at(nextDown[at(link.from)]++)] = {link.to, link.fromOffset, link.toOffset, weight};
            m_up[at(nextUp[at(link.to)]++)] = {link.from, link.toOffset, link.fromOffset, weight};
        }
        std::int32_t deepest = -1;
        for (const auto r : m_rank)
            deepest = std::max(deepest, r);
        m_layers.resize(at(deepest + 1));
        for (std::size_t v = 0; v < total; ++v)
            m_layers[at(m_rank[v])].push_back(static_cast<std::int32_t>(v));
        m_place.resize(total);
        m_x.assign(total, 0);
        numberPlaces();
    }

    void orderRanks()
    {
        const bool small = m_rank.size() <= kSmall;
        std::vector<std::vector<std::int32_t>> best;
        std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
        const int sweeps = small ? 3 * kOrderSweeps : kOrderSweeps;
        int idle = 0;
        for (int sweep = 0; sweep < sweeps && !m_stop.stop_requested(); ++sweep) {
            const bool down = sweep % 2 == 0;
            for (std::size_t i = 0; i < m_layers.size(); ++i)
                sortByBarycentre(down ? i : m_layers.size() - 1 - i, down);
            if (!small)
                continue;
            exchangeNeighbours();
            const std::int64_t now = crossings();
            if (now < fewest) {
                fewest = now;
                best = m_layers;
                idle = 0;
            } else if (++idle >= 6 || fewest == 0) {
                break;
            }
        }
        if (small && !best.empty()) {
            m_layers = std::move(best);
            numberPlaces();
        }
    }

    void positionRanks()
    {
        for (auto &layer : m_layers) { // packed, to begin with
            double x = 0;
            for (std::size_t i = 0; i < layer.size(); ++i) {
                if (i > 0)
                    x += separation(layer[i - 1], layer[i]);
                m_x[at(layer[i])] = x;
            }
            const double middle = x / 2;
            for (const auto v : layer)
                m_x[at(v)] -= middle;
        }
        const int sweeps = m_rank.size() <= kSmall ? 3 * kPositionSweeps : kPositionSweeps;
        for (int sweep = 0; sweep < sweeps && !m_stop.stop_requested(); ++sweep) {
            const bool down = sweep % 2 == 0;
            const bool both = sweep >= sweeps - 4;
            for (std::size_t i = 0; i < m_layers.size(); ++i)
                solveRank(down ? i : m_layers.size() - 1 - i, down || both, !down || both);
        }
    }

    LayeredLayout result() const
    {
        const std::size_t n = m_graph.nodes.size();
        LayeredLayout layout;
        layout.ranks.assign(m_rank.begin(), m_rank.begin() + static_cast<std::ptrdiff_t>(n));
        layout.centres.resize(n);
        std::vector<double> top(m_layers.size(), 0);
        std::vector<double> bottom(m_layers.size(), 0);
        std::vector<double> height(m_layers.size(), 0);
        for (std::size_t v = 0; v < n; ++v)
            height[at(m_rank[v])] = std::max(height[at(m_rank[v])], m_graph.nodes[v].height);
        double y = 0;
        for (std::size_t r = 0; r < m_layers.size(); ++r) {
            top[r] = y;
            bottom[r] = y + height[r];
            y = bottom[r] + gapBelow(r, height);
        }
        double left = std::numeric_limits<double>::max();
        double right = std::numeric_limits<double>::lowest();
        for (std::size_t v = 0; v < m_rank.size(); ++v) {
            const double half = widthOf(static_cast<std::int32_t>(v)) / 2;
            left = std::min(left, m_x[v] - half);
            right = std::max(right, m_x[v] + half);
        }
        if (m_rank.empty())
            left = right = 0;
        for (std::size_t v = 0; v < n; ++v) {
            const std::size_t r = at(m_rank[v]);
            layout.centres[v] = {m_x[v] - left, (top[r] + bottom[r]) / 2};
        }
        layout.width = right - left;
        layout.height = m_layers.empty() ? 0 : bottom.back();
        layout.routes.resize(m_graph.edges.size());
        for (std::size_t e = 0; e < m_graph.edges.size(); ++e) {
            auto &route = layout.routes[e];
            route.kind = m_kinds[e];
            if (route.kind != EdgeRoute::Routed)
                continue;
            const auto &edge = m_graph.edges[e];
            const auto &from = layout.centres[at(edge.from)];
            const auto &to = layout.centres[at(edge.to)];
            const double startX = from.x + edge.fromOffset;
            const double endX = to.x + edge.toOffset;
            route.points.reserve(2 * m_bends[e].size() + 4);
            route.points.push_back({startX, from.y + m_graph.nodes[at(edge.from)].height / 2});
            route.points.push_back({startX, bottom[at(m_rank[at(edge.from)])]});
            for (const auto bend : m_bends[e]) {
                const double x = m_x[at(bend)] - left;
                route.points.push_back({x, top[at(m_rank[at(bend)])]});
                route.points.push_back({x, bottom[at(m_rank[at(bend)])]});
            }
            route.points.push_back({endX, top[at(m_rank[at(edge.to)])]});
            route.points.push_back({endX, to.y - m_graph.nodes[at(edge.to)].height / 2});
        }
        return layout;
    }

private:
    bool isBend(std::int32_t v) const { return at(v) >= m_graph.nodes.size(); }
    /// Bends, and ports, which have no height.
    bool isThin(std::int32_t v) const { return isBend(v) || m_graph.nodes[at(v)].height == 0; }
    double widthOf(std::int32_t v) const { return isBend(v) ? 0 : m_graph.nodes[at(v)].width; }
    /// A frame: two of them stand middle under middle, whatever their ports, or a chain of them would drift.
    bool isWide(std::int32_t v) const { return widthOf(v) > 260; }
    double separation(std::int32_t a, std::int32_t b) const
    {
        const double gap = isThin(a) || isThin(b) ? m_graph.bendGap : m_graph.nodeGap;
        return (widthOf(a) + widthOf(b)) / 2 + gap;
    }
    const Link *upFirst(std::int32_t v) const { return m_up.data() + m_upBegin[at(v)]; }
    const Link *upLast(std::int32_t v) const { return m_up.data() + m_upBegin[at(v) + 1]; }
    const Link *downFirst(std::int32_t v) const { return m_down.data() + m_downBegin[at(v)]; }
    const Link *downLast(std::int32_t v) const { return m_down.data() + m_downBegin[at(v) + 1]; }

    /// Ports hug their boxes; crowded gaps get room for their curves.
    double gapBelow(std::size_t r, const std::vector<double> &height) const
    {
        if (r + 1 >= m_layers.size())
            return 0;
        const bool ports = height[r] == 0 || height[r + 1] == 0;
        double widest = 0;
        for (const auto v : m_layers[r]) {
            for (const auto *link = downFirst(v); link != downLast(v); ++link)
                widest = std::max(widest, std::abs(m_x[at(v)] - m_x[at(link->other)]));
        }
        const double room = std::min(widest / 12, 1.2 * m_graph.rankGap);
        return (ports ? 0.5 * m_graph.rankGap : m_graph.rankGap) + room;
    }

    void numberPlaces()
    {
        for (const auto &layer : m_layers) {
            for (std::size_t i = 0; i < layer.size(); ++i)
                m_place[at(layer[i])] = static_cast<std::int32_t>(i);
        }
    }

    /// Where a link ends within its node: a little left or right of the node's place.
    static double placeOf(std::int32_t place, double offset, double width)
    {
        return width > 0 ? place + offset / width * 0.98 : place;
    }

    void sortByBarycentre(std::size_t rank, bool fromAbove)
    {
        auto &layer = m_layers[rank];
        m_keys.clear();
        for (std::size_t i = 0; i < layer.size(); ++i) {
            const std::int32_t v = layer[i];
            const Link *link = fromAbove ? upFirst(v) : downFirst(v);
            const Link *last = fromAbove ? upLast(v) : downLast(v);
            double sum = 0;
            const auto count = static_cast<double>(last - link);
            for (; link != last; ++link)
                sum += placeOf(m_place[at(link->other)], link->otherOffset, widthOf(link->other));
            // Without neighbours a node keeps its place among those that move.
            m_keys.emplace_back(count > 0 ? sum / count : -1.0, v);
        }
        m_moving.clear();
        for (const auto &key : m_keys) {
            if (key.first >= -0.5)
                m_moving.push_back(key);
        }
        std::stable_sort(
            m_moving.begin(), m_moving.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        std::size_t next = 0;
        for (std::size_t i = 0; i < layer.size(); ++i) {
            if (m_keys[i].first >= -0.5)
                layer[i] = m_moving[next++].second;
            m_place[at(layer[i])] = static_cast<std::int32_t>(i);
        }
    }

    /// Crossings among the links of two neighbours in a rank, if `a` stands left of `b`.
    std::int64_t pairCrossings(std::int32_t a, std::int32_t b, bool up) const
    {
        std::int64_t count = 0;
        for (const auto *p = up ? upFirst(a) : downFirst(a); p != (up ? upLast(a) : downLast(a)); ++p) {
            const double ofA = placeOf(m_place[at(p->other)], p->otherOffset, widthOf(p->other));
            for (const auto *q = up ? upFirst(b) : downFirst(b); q != (up ? upLast(b) : downLast(b)); ++q) {
                const double ofB = placeOf(m_place[at(q->other)], q->otherOffset, widthOf(q->other));
                count += ofA > ofB ? 1 : 0;
            }
        }
        return count;
    }

    void exchangeNeighbours()
    {
        for (int pass = 0; pass < 4; ++pass) {
            bool changed = false;
            for (auto &layer : m_layers) {
                for (std::size_t i = 0; i + 1 < layer.size(); ++i) {
                    const std::int32_t a = layer[i];
                    const std::int32_t b = layer[i + 1];
                    const std::int64_t degree = (upLast(a) - upFirst(a)) * (upLast(b) - upFirst(b))
                        + (downLast(a) - downFirst(a)) * (downLast(b) - downFirst(b));
                    if (degree == 0 || degree > 4096)
                        continue;
                    const std::int64_t now = pairCrossings(a, b, true) + pairCrossings(a, b, false);
                    if (now == 0 || now <= pairCrossings(b, a, true) + pairCrossings(b, a, false))
                        continue;
                    std::swap(layer[i], layer[i + 1]);
                    std::swap(m_place[at(a)], m_place[at(b)]);
                    changed = true;
                }
            }
            if (!changed)
                return;
        }
    }

    /// Between each pair of ranks.
    std::int64_t crossings()
    {
        std::int64_t total = 0;
        std::vector<std::pair<double, double>> ends;
        for (std::size_t r = 0; r + 1 < m_layers.size(); ++r) {
            ends.clear();
            for (const auto v : m_layers[r]) {
                for (const auto *link = downFirst(v); link != downLast(v); ++link)
                    ends.emplace_back(placeOf(m_place[at(v)], link->ownOffset, widthOf(v)),
                        placeOf(m_place[at(link->other)], link->otherOffset, widthOf(link->other)));
            }
            total += inversions(ends);
        }
        return total;
    }

    /// Moves the boxes of a rank to the weighted means of what they are linked to, as near as their order and
    /// separation allow: isotonic regression, least squares, exact.
    void solveRank(std::size_t rank, bool useUp, bool useDown)
    {
        const auto &layer = m_layers[rank];
        m_blocks.clear();
        double shift = 0; // cumulated separation: in shifted coordinates the order is all that is asked
        for (std::size_t i = 0; i < layer.size(); ++i) {
            const std::int32_t v = layer[i];
            if (i > 0)
                shift += separation(layer[i - 1], v);
            double sum = 0;
            double weight = 0;
            const auto gather = [&](const Link *link, const Link *last) {
                for (; link != last; ++link) {
                    sum += link->weight
                        * (m_x[at(link->other)]
                            + (isWide(v) && isWide(link->other) ? 0 : link->otherOffset - link->ownOffset));
                    weight += link->weight;
                }
            };
            if (useUp)
                gather(upFirst(v), upLast(v));
            if (useDown)
                gather(downFirst(v), downLast(v));
            if (weight == 0) { // unlinked on this side: stay, but give way
                weight = 0.01;
                sum = m_x[at(v)] * weight;
            }
            m_blocks.push_back({sum - shift * weight, weight, i});
            while (m_blocks.size() > 1) {
                auto &above = m_blocks[m_blocks.size() - 2];
                const auto &last = m_blocks.back();
                if (above.sum * last.weight <= last.sum * above.weight)
                    break;
                above.sum += last.sum;
                above.weight += last.weight;
                above.last = last.last;
                m_blocks.pop_back();
            }
        }
        shift = 0;
        std::size_t i = 0;
        for (const auto &block : m_blocks) {
            const double position = block.sum / block.weight;
            for (; i <= block.last; ++i) {
                if (i > 0)
                    shift += separation(layer[i - 1], layer[i]);
                m_x[at(layer[i])] = position + shift;
            }
        }
    }

    struct Block {
        double sum;
        double weight;
        std::size_t last;
    };

    const LayeredGraph &m_graph;
    std::vector<std::int32_t> m_rank;
    std::vector<std::vector<std::int32_t>> m_layers{};
    std::vector<std::int32_t> m_place{};
    std::vector<double> m_x{};
    std::vector<std::int32_t> m_upBegin{};
    std::vector<std::int32_t> m_downBegin{};
    std::vector<Link> m_up{};
    std::vector<Link> m_down{};
    std::vector<std::vector<std::int32_t>> m_bends{}; ///< By edge, top to bottom.
    std::vector<EdgeRoute> m_kinds{};
    std::vector<std::pair<double, std::int32_t>> m_keys{};
    std::vector<std::pair<double, std::int32_t>> m_moving{};
    std::vector<Block> m_blocks{};
    std::stop_token m_stop;
};

} // namespace

LayeredLayout layeredLayout(const LayeredGraph &graph, std::stop_token stop)
{
    const auto back = backEdges(graph);
    Ranked ranked(graph, ranksOf(graph, back), back, std::move(stop));
    ranked.orderRanks();
    ranked.positionRanks();
    return ranked.result();
}

} // namespace planloom
