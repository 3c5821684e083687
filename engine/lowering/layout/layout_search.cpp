// Dijkstra over the layouts of a group of devices; A* where these are many.

#include "engine/lowering/layout/layout.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/layout/coarse_digits.h"
#include "engine/lowering/layout/layout_bound.h"
#include "engine/lowering/layout/layout_digits.h"
#include "engine/lowering/layout/path_costs.h"
#include "engine/lowering/layout/permutation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// Larger groups take digits that go together as one (coarse_digits.h).
constexpr std::size_t kMostExactDevices = 64;
constexpr std::size_t kFewDevices = 16; ///< So few that a first look at coarse digits does not pay.
constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// Groups of more digits than this permute them two at a time in the middle of a path.
constexpr std::size_t kMostPermutedDigits = 4;

/// The next order of `digits`, which starts ascending: every one in small groups, ascending and descending in
/// others.
bool nextOrder(Digits &digits, bool every)
{
    if (every)
        return std::next_permutation(digits.begin(), digits.end());
    std::reverse(digits.begin(), digits.end());
    return digits.front() > digits.back();
}

/// How every position gets the cell it wants from the one it holds, on its own: a part of its box, and of its
/// summand where several cells are wanted of one. Nothing if some position cannot, or a summand would be
/// lost.
std::optional<Hop> localHop(const std::vector<Cell> &held, const std::vector<Cell> &wanted)
{
    std::map<std::int32_t, std::int32_t> heldOf; // by wanted summand
    std::map<std::int32_t, std::int32_t> count; // by held summand: how many it becomes
    for (std::size_t p = 0; p < held.size(); ++p) {
        const auto [it, fresh] = heldOf.try_emplace(wanted[p].summand, held[p].summand);
        if (it->second != held[p].summand || !contains(held[p].box, wanted[p].box))
            return std::nullopt;
        count[held[p].summand] += fresh ? 1 : 0;
    }
    if (std::any_of(count.begin(), count.end(), [](const auto &each) { return each.second == 0; }))
        return std::nullopt;
    Hop hop{.kind = HopKind::Slice, .cells = wanted};
    if (heldOf.size() == count.size())
        return hop;
    hop.kind = HopKind::ValueSelect;
    std::map<std::int32_t, std::int32_t> seen; // by held summand
    std::map<std::int32_t, ValueMask> partOf; // by wanted summand
    for (const auto &[summand, from] : heldOf)
        partOf[summand] = {seen[from]++, count[from]};
    for (const Cell &cell : wanted)
        hop.valueParts.push_back(partOf[cell.summand]);
    return hop;
}

/// Dijkstra over layouts.
class PathSearch
{
public:
    PathSearch(const IndexMask &whole, DataType dataType, const std::vector<DeviceId> &group,
        const Cluster &cluster, const CostModel &costs, std::vector<std::int32_t> radices,
        Combination combination, Launch launch = Launch::Alone)
        : m_whole(whole)
        , m_radices(std::move(radices))
        , m_costs(whole, dataType, group, cluster, costs, m_radices, combination, launch)
    {
        for (const DeviceId device : group)
            m_nodesOfGroup.push_back(cluster.nodeOf(device));
    }

    /// Paths to every layout without summands within `bound`; no permutations.
    std::map<Layout, LayoutPath> toAll(const Layout &from, double bound)
    {
        m_bound = bound;
        std::map<Layout, LayoutPath> found;
        search(from, [&](const Node &node) {
            if (node.layout.summandDigits.empty() && !node.open)
                found.emplace(node.layout, pathTo(node));
            return true;
        });
        return found;
    }

    /// @param bound  seconds; nothing that takes longer is of interest
    std::optional<LayoutPath> to(const Layout &from, const std::vector<Cell> &wanted, double bound)
    {
        const PathGoal goal = goalOf(wanted);
        std::optional<LayoutPath> best;
        m_permutesFrom = &from;
        m_bound = std::min(bound, throughReplicas(from, goal));
        const auto visit = [&](const Node &node) {
            if (best && node.seconds + toGoal(node.layout) >= best->seconds)
                return false;
            if (node.open || node.layout.mixedSummands || !mayBeLast(node.layout, goal))
                return true;
            // The last hop leads to just what is wanted, which need not be a layout.
            const std::vector<Cell> held = cellsUnder(node.layout, m_whole, m_radices);
            const auto offer = [&](double seconds, std::optional<Hop> last) {
                const std::size_t hops = at(node.hops) + (last ? 1 : 0);
                if (best && std::pair(seconds, hops) >= std::pair(best->seconds, best->hops.size()))
                    return;
                best = pathTo(node);
                best->seconds = seconds;
                if (last)
                    best->hops.push_back(*std::move(last));
                m_bound = best->seconds;
            };
            if (held == wanted)
                offer(node.seconds, std::nullopt);
            else if (auto local = localHop(held, wanted))
                offer(node.seconds + m_costs.copying(goal.elements), std::move(local));
            else if (const auto sources = permutationBetween(held, wanted, m_nodesOfGroup)) {
                const auto messages = messagesOf(*sources);
                offer(node.seconds + m_costs.permuting(messages, localElements(node.layout)),
                    messages.empty()
                        ? std::nullopt
                        : std::optional(Hop{.kind = HopKind::Permute, .sources = *sources, .cells = wanted}));
            }
            return true;
        };
        if (search(from, visit, kMostWithoutBound))
            return best;
        const LayoutBound toTheGoal(from, goal, m_whole, m_radices, m_costs);
        m_toGoal = &toTheGoal;
        search(from, visit);
        m_toGoal = nullptr;
        return best;
    }

private:
    /// Nodes that Dijkstra's search looks at in less time than it takes to bound what is left of paths.
    static constexpr std::size_t kMostWithoutBound = 1000;

    struct Node {
        Layout layout{};
        /// Only on the way of a Slice that goes on: cutting several digits is one copy, which costs as much
        /// as what is left at its end.
        bool open = false;
        double seconds = 0;
        std::int32_t hops = 0;
        const Node *previous = nullptr;
        std::optional<Hop> hop{}; ///< None into a Slice that goes on.
        bool done = false;
    };

    /// A layout in few bytes: for each digit its role and its place among those of that role.
    std::string keyOf(const Layout &layout, bool open) const
    {
        std::string key(2 * m_radices.size() + 1, '\0');
        for (const std::int8_t digit : layout.summandDigits)
            key[2 * at(digit)] = 1;
        for (std::size_t dimension = 0; dimension < layout.dimensionDigits.size(); ++dimension) {
            const Digits &digits = layout.dimensionDigits[dimension];
            for (std::size_t place = 0; place < digits.size(); ++place) {
                key[2 * at(digits[place])] = static_cast<char>(2 + dimension);
                key[2 * at(digits[place]) + 1] = static_cast<char>(place);
            }
        }
        key.back() = static_cast<char>((layout.mixedSummands ? 1 : 0) + (open ? 2 : 0));
        return key;
    }

    /// What a path from `layout` to the goal takes at least.
    double toGoal(const Layout &layout) const
    {
        constexpr double kRounding = 1 - 1e-9; // of sums of the same terms in another order
        return m_toGoal ? kRounding * m_toGoal->from(layout) : 0;
    }

    /// Calls `visit(node)` for every node in the order of its distance, and of what is left to the goal where
    /// that is known, until it returns false.
    /// @return false where more than `most` nodes would have been visited
    template<typename Visit>
    bool search(const Layout &from, Visit visit, std::size_t most = std::numeric_limits<std::size_t>::max())
    {
        struct Entry {
            double seconds = 0;
            std::int32_t hops = 0;
            std::int64_t number = 0; ///< Of equals the one that was found first.
            Node *node = nullptr;
        };
        const auto later = [](const Entry &a, const Entry &b) {
            return std::tie(a.seconds, a.hops, a.number) > std::tie(b.seconds, b.hops, b.number);
        };
        std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
        std::int64_t number = 0;
        std::size_t visited = 0;
        m_nodes.clear();
        queue.push({0, 0, number, &m_nodes.emplace(keyOf(from, false), Node{.layout = from}).first->second});
        while (!queue.empty()) {
            Node &node = *queue.top().node;
            queue.pop();
            if (node.done)
                continue;
            node.done = true;
            if (++visited > most)
                return false;
            if (!visit(node))
                break;
            const auto reach = [&](const Layout &next, bool open, double cost, std::optional<Hop> hop) {
                const double total = node.seconds + cost;
                const double whole = total + toGoal(next);
                if (whole > m_bound)
                    return;
                const std::int32_t count = node.hops + (hop ? 1 : 0);
                const auto [it, fresh] = m_nodes.try_emplace(keyOf(next, open));
                Node &there = it->second;
                if (!fresh && (there.done || std::pair(total, count) >= std::pair(there.seconds, there.hops)))
                    return;
                there = {next, open, total, count, &node, std::move(hop), false};
                queue.push({whole, count, ++number, &there});
            };
            forEachCut(node.layout, [&](const Layout &next) { reach(next, true, 0, std::nullopt); });
            if (node.open) {
                reach(node.layout, false, m_costs.copying(localElements(node.layout)),
                    Hop{.kind = HopKind::Slice, .to = node.layout});
                continue;
            }
            for (auto &[hop, cost] : hopsFrom(node.layout)) {
                const Layout next = hop.to;
                reach(next, false, cost, std::move(hop));
            }
        }
        return true;
    }

    static LayoutPath pathTo(const Node &end)
    {
        LayoutPath path{.seconds = end.seconds};
        for (const Node *node = &end; node; node = node->previous)
            if (node->hop)
                path.hops.push_back(*node->hop);
        std::reverse(path.hops.begin(), path.hops.end());
        return path;
    }

    /// Of what is wanted: the largest extents, and the number of summands.
    PathGoal goalOf(const std::vector<Cell> &wanted) const
    {
        PathGoal goal;
        goal.extents.resize(m_whole.ranges.size(), 0);
        std::set<std::int32_t> summands;
        for (const Cell &cell : wanted) {
            goal.elements = std::max(goal.elements, volumeOf(cell.box));
            for (std::size_t d = 0; d < goal.extents.size(); ++d)
                goal.extents[d] = std::max(goal.extents[d], cell.box.ranges[d].size());
            summands.insert(cell.summand);
        }
        goal.summands = static_cast<std::int64_t>(summands.size());
        return goal;
    }

    /// What it takes to make everything complete everywhere and keep what is wanted: a bound, for it always
    /// can be done.
    double throughReplicas(Layout from, const PathGoal &goal)
    {
        double seconds = m_costs.copying(goal.elements);
        if (!from.summandDigits.empty())
            seconds += m_costs.collective(CollectiveKind::AllReduce, localElements(from), from.summandDigits);
        for (Digits &cut : from.dimensionDigits) {
            const Digits moved = std::exchange(cut, {});
            if (!moved.empty())
                seconds += m_costs.collective(CollectiveKind::AllGather, localElements(from), moved);
        }
        return seconds * (1 + 1e-9); // sums of the same terms in another order
    }

    /// Everybody holds as much as anybody wants, and no more summands: most layouts are told apart by this.
    bool mayBeLast(const Layout &layout, const PathGoal &goal) const
    {
        if (goal.summands % partsOf(layout.summandDigits, m_radices) != 0)
            return false;
        for (std::size_t d = 0; d < goal.extents.size(); ++d)
            if (m_whole.ranges[d].size() / partsOf(layout.dimensionDigits[d], m_radices) < goal.extents[d])
                return false;
        return true;
    }

    std::int64_t localElements(const Layout &layout) const
    {
        std::int64_t elements = 1;
        for (std::size_t d = 0; d < m_whole.ranges.size(); ++d)
            elements *= m_whole.ranges[d].size() / partsOf(layout.dimensionDigits[d], m_radices);
        return elements;
    }

    bool divides(const Layout &layout, std::size_t dimension) const
    {
        return m_whole.ranges[dimension].size() % partsOf(layout.dimensionDigits[dimension], m_radices) == 0;
    }

    /// Every replica digit cutting every dimension further.
    template<typename Visit> void forEachCut(const Layout &layout, Visit visit) const
    {
        for (std::size_t d = 0; d < m_radices.size(); ++d) {
            const auto digit = static_cast<std::int8_t>(d);
            const Digits &summands = layout.summandDigits;
            if (cuts(layout, digit) || std::find(summands.begin(), summands.end(), digit) != summands.end())
                continue;
            for (std::size_t i = 0; i < m_whole.ranges.size(); ++i) {
                Layout next = layout;
                next.dimensionDigits[i].push_back(digit);
                if (divides(next, i))
                    visit(std::move(next));
            }
        }
    }

    /// Layouts that the same cells make on other positions: digits change places.
    std::vector<std::pair<Hop, double>> permutationsOf(const Layout &layout) const
    {
        std::vector<std::pair<Hop, double>> hops;
        std::set<Layout> seen{layout};
        const std::vector<Cell> held = cellsUnder(layout, m_whole, m_radices);
        const auto consider = [&](const Digits &places) {
            const auto renamed = [&](Digits digits) {
                for (std::int8_t &digit : digits)
                    digit = places[at(digit)];
                return digits;
            };
            Layout next;
            next.summandDigits = renamed(layout.summandDigits);
            std::sort(next.summandDigits.begin(), next.summandDigits.end());
            for (const Digits &digits : layout.dimensionDigits)
                next.dimensionDigits.push_back(renamed(digits));
            if (!seen.insert(next).second)
                return;
            for (std::size_t i = 0; i < next.dimensionDigits.size(); ++i)
                if (partsOf(next.dimensionDigits[i], m_radices)
                    != partsOf(layout.dimensionDigits[i], m_radices))
                    return; // digits of different radices would change places
            auto sources = permutationBetween(held, cellsUnder(next, m_whole, m_radices), m_nodesOfGroup);
            if (!sources)
                return;
            const double seconds = m_costs.permuting(messagesOf(*sources), localElements(layout));
            hops.emplace_back(
                Hop{.kind = HopKind::Permute, .sources = *std::move(sources), .to = std::move(next)},
                seconds);
        };
        Digits places(m_radices.size());
        std::iota(places.begin(), places.end(), std::int8_t{0});
        if (places.size() <= kMostPermutedDigits) {
            while (std::next_permutation(places.begin(), places.end()))
                consider(places);
            return hops;
        }
        for (std::size_t a = 0; a < places.size(); ++a)
            for (std::size_t b = a + 1; b < places.size(); ++b) {
                std::swap(places[a], places[b]);
                consider(places);
                std::swap(places[a], places[b]);
            }
        return hops;
    }

    std::vector<std::pair<Hop, double>> hopsFrom(const Layout &layout)
    {
        std::vector<std::pair<Hop, double>> hops;
        const std::int64_t local = localElements(layout);
        const std::size_t rank = m_whole.ranges.size();
        // All-gather and all-to-all of the innermost digits of a dimension.
        for (std::size_t i = 0; i < rank && !layout.mixedSummands; ++i) {
            const Digits &cut = layout.dimensionDigits[i];
            for (std::size_t count = 1; count <= cut.size(); ++count) {
                const Digits moved(cut.end() - static_cast<std::ptrdiff_t>(count), cut.end());
                Layout next = layout;
                next.dimensionDigits[i].resize(cut.size() - count);
                Hop gather{.kind = HopKind::AllGather,
                    .digits = moved,
                    .dimension = static_cast<std::int8_t>(i),
                    .to = next};
                const double seconds =
                    m_costs.collective(CollectiveKind::AllGather, local * partsOf(moved, m_radices), moved);
                hops.emplace_back(std::move(gather), seconds);
                for (std::size_t j = 0; j < rank; ++j) {
                    if (j == i)
                        continue;
                    Layout exchanged = next;
                    exchanged.dimensionDigits[j].insert(
                        exchanged.dimensionDigits[j].end(), moved.begin(), moved.end());
                    if (!divides(exchanged, j))
                        continue;
                    Hop exchange{.kind = HopKind::AllToAll,
                        .digits = moved,
                        .dimension = static_cast<std::int8_t>(j),
                        .gatherDimension = static_cast<std::int8_t>(i),
                        .to = std::move(exchanged)};
                    hops.emplace_back(
                        std::move(exchange), m_costs.collective(CollectiveKind::AllToAll, local, moved));
                }
            }
        }
        // Summands: every subset of their digits is reduced, or reduced and scattered along one dimension.
        const Digits &summands = layout.summandDigits;
        const std::uint32_t allOfThem = (1u << summands.size()) - 1;
        for (std::uint32_t subset = layout.mixedSummands ? allOfThem : 1; subset <= allOfThem; ++subset) {
            if (subset == 0)
                break;
            Digits moved;
            Layout next = layout;
            next.mixedSummands = false;
            next.summandDigits.clear();
            for (std::size_t s = 0; s < summands.size(); ++s)
                (subset >> s & 1u ? moved : next.summandDigits).push_back(summands[s]);
            hops.emplace_back(Hop{.kind = HopKind::AllReduce, .digits = moved, .to = next},
                m_costs.collective(CollectiveKind::AllReduce, local, moved));
            for (std::size_t i = 0; i < rank; ++i) {
                // The order of the digits decides who gets which chunk.
                Digits order = moved;
                do {
                    Layout scattered = next;
                    scattered.dimensionDigits[i].insert(
                        scattered.dimensionDigits[i].end(), order.begin(), order.end());
                    if (!divides(scattered, i))
                        break;
                    hops.emplace_back(Hop{.kind = HopKind::ReduceScatter,
                                          .digits = order,
                                          .dimension = static_cast<std::int8_t>(i),
                                          .to = std::move(scattered)},
                        m_costs.collective(CollectiveKind::ReduceScatter, local, order));
                } while (nextOrder(order, m_radices.size() <= kMostPermutedDigits));
            }
        }
        if (m_permutesFrom && layout == *m_permutesFrom && !layout.mixedSummands)
            for (auto &permutation : permutationsOf(layout))
                hops.push_back(std::move(permutation));
        return hops;
    }

    const IndexMask &m_whole;
    std::vector<std::int32_t> m_radices;
    PathCosts m_costs;
    std::vector<std::int32_t> m_nodesOfGroup{}; ///< By position.
    const Layout *m_permutesFrom = nullptr; ///< Where a path may begin with a Permute.
    double m_bound = kNoBound; ///< Nothing dearer is of interest.
    const LayoutBound *m_toGoal = nullptr; ///< Null while nothing is known of what is left of a path.
    std::unordered_map<std::string, Node> m_nodes{};
};

} // namespace

std::optional<LayoutPath> cheapestPath(const Layout &from, const std::vector<Cell> &to,
    const IndexMask &whole, DataType dataType, const std::vector<DeviceId> &group, const Cluster &cluster,
    const CostModel &costs, Combination combination, Launch launch)
{
    const auto radices = radicesOf(static_cast<std::int32_t>(group.size()));
    PathSearch exact(whole, dataType, group, cluster, costs, radices, combination, launch);
    if (group.size() <= kFewDevices)
        return exact.to(from, to, kNoBound);
    std::vector<Holding> wanted;
    for (std::size_t p = 0; p < to.size(); ++p)
        wanted.push_back({group[p], to[p].box, {to[p].summand}});
    const auto target = recogniseLayout(wanted, whole, radices);
    std::vector<const Layout *> ends{&from};
    if (target)
        ends.push_back(&*target);
    const CoarseDigits digits(ends, radices, topologyOf(cluster, group, 0));
    auto path = PathSearch(whole, dataType, group, cluster, costs, digits.radices(), combination, launch)
                    .to(digits.coarse(from), to, kNoBound);
    if (path)
        for (Hop &hop : path->hops)
            hop = digits.fine(std::move(hop));
    if (group.size() > kMostExactDevices || digits.radices().size() == radices.size())
        return path;
    auto better = exact.to(from, to, path ? path->seconds : kNoBound);
    return better ? better : path;
}

std::optional<LayoutPath> cheapestPath(const Layout &from, const Layout &to, const IndexMask &whole,
    DataType dataType, const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs,
    Combination combination)
{
    const auto radices = radicesOf(static_cast<std::int32_t>(group.size()));
    return cheapestPath(
        from, cellsUnder(to, whole, radices), whole, dataType, group, cluster, costs, combination);
}

std::map<Layout, LayoutPath> cheapestPaths(const Layout &from, const IndexMask &whole, DataType dataType,
    const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs, double bound,
    Combination combination)
{
    const auto radices = radicesOf(static_cast<std::int32_t>(group.size()));
    if (group.size() <= kMostExactDevices)
        return PathSearch(whole, dataType, group, cluster, costs, radices, combination).toAll(from, bound);
    const CoarseDigits digits({&from}, radices, topologyOf(cluster, group, 0));
    std::map<Layout, LayoutPath> found;
    for (auto &[layout, path] :
        PathSearch(whole, dataType, group, cluster, costs, digits.radices(), combination)
            .toAll(digits.coarse(from), bound)) {
        for (Hop &hop : path.hops)
            hop = digits.fine(std::move(hop));
        found.emplace(digits.fine(layout), std::move(path));
    }
    return found;
}

} // namespace planloom
