#include "engine/lowering/layout.h"

#include <algorithm>
#include <cassert>
#include <queue>
#include <set>

namespace planloom {

namespace {

using Digits = std::vector<std::int8_t>;

/// Weight of each digit in a position number: the product of the radices behind it.
std::vector<std::int32_t> weightsOf(const std::vector<std::int32_t> &radices)
{
    std::vector<std::int32_t> weights(radices.size(), 1);
    for (std::size_t i = radices.size(); i-- > 1;)
        weights[i - 1] = weights[i] * radices[i];
    return weights;
}

std::int32_t digitOf(std::int32_t position, std::size_t digit, const std::vector<std::int32_t> &radices,
    const std::vector<std::int32_t> &weights)
{
    return position / weights[digit] % radices[digit];
}

/// The number that `digits` (outermost first) spell at `position`.
std::int64_t numberOf(const Digits &digits, std::int32_t position, const std::vector<std::int32_t> &radices,
    const std::vector<std::int32_t> &weights)
{
    std::int64_t number = 0;
    for (const std::int8_t digit : digits) {
        const auto d = static_cast<std::size_t>(digit);
        number = number * radices[d] + digitOf(position, d, radices, weights);
    }
    return number;
}

std::int64_t partsOf(const Digits &digits, const std::vector<std::int32_t> &radices)
{
    std::int64_t parts = 1;
    for (const std::int8_t digit : digits)
        parts *= radices[static_cast<std::size_t>(digit)];
    return parts;
}

/// Finds the digits that spell `value[position]` in mixed radix, outermost first; nothing if none do.
std::optional<Digits> spellingOf(const std::vector<std::int64_t> &value,
    const std::vector<std::int32_t> &radices, const std::vector<std::int32_t> &weights)
{
    struct Candidate {
        std::int64_t stride;
        std::int8_t digit;
    };
    std::vector<Candidate> candidates;
    for (std::size_t d = 0; d < radices.size(); ++d) {
        const std::int64_t stride = value[static_cast<std::size_t>(weights[d])] - value[0];
        if (stride < 0)
            return std::nullopt;
        if (stride > 0)
            candidates.push_back({stride, static_cast<std::int8_t>(d)});
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
        return a.stride != b.stride ? a.stride > b.stride : a.digit < b.digit;
    });
    Digits digits;
    for (const Candidate &candidate : candidates)
        digits.push_back(candidate.digit);
    for (std::size_t position = 0; position < value.size(); ++position)
        if (value[position] != numberOf(digits, static_cast<std::int32_t>(position), radices, weights))
            return std::nullopt;
    return digits;
}

} // namespace

std::vector<std::int32_t> radicesOf(std::int32_t n)
{
    std::vector<std::int32_t> radices;
    for (std::int32_t p = 2; p * p <= n; ++p)
        for (; n % p == 0; n /= p)
            radices.push_back(p);
    if (n > 1)
        radices.push_back(n);
    std::reverse(radices.begin(), radices.end());
    return radices;
}

std::optional<Layout> recogniseLayout(
    const std::vector<Holding> &holdings, const IndexMask &whole, const std::vector<std::int32_t> &radices)
{
    const std::size_t n = holdings.size();
    const std::vector<std::int32_t> weights = weightsOf(radices);
    assert(n == static_cast<std::size_t>(radices.empty() ? 1 : weights[0] * radices[0]));
    Layout layout;
    layout.dimensionDigits.resize(whole.ranges.size());
    std::vector<std::int64_t> number(n);
    for (std::size_t dimension = 0; dimension < whole.ranges.size(); ++dimension) {
        const Range all = whole.ranges[dimension];
        const std::int64_t extent = holdings[0].box.ranges[dimension].size();
        if (extent <= 0 || all.size() % extent != 0)
            return std::nullopt;
        for (std::size_t i = 0; i < n; ++i) {
            const Range range = holdings[i].box.ranges[dimension];
            if (range.size() != extent || (range.begin - all.begin) % extent != 0)
                return std::nullopt;
            number[i] = (range.begin - all.begin) / extent;
        }
        auto digits = spellingOf(number, radices, weights);
        if (!digits || partsOf(*digits, radices) != all.size() / extent)
            return std::nullopt;
        layout.dimensionDigits[dimension] = std::move(*digits);
    }
    // Summands: any labels will do, as long as the digits that change the set tell the sets apart.
    for (std::size_t d = 0; d < radices.size(); ++d)
        if (holdings[static_cast<std::size_t>(weights[d])].summands != holdings[0].summands)
            layout.summandDigits.push_back(static_cast<std::int8_t>(d));
    std::vector<const SummandSet *> sets(
        static_cast<std::size_t>(partsOf(layout.summandDigits, radices)), nullptr);
    for (std::size_t i = 0; i < n; ++i) {
        auto &set = sets[static_cast<std::size_t>(
            numberOf(layout.summandDigits, static_cast<std::int32_t>(i), radices, weights))];
        if (!set)
            set = &holdings[i].summands;
        else if (*set != holdings[i].summands)
            return std::nullopt;
    }
    if (sets.size() > 1) {
        std::set<std::int32_t> seen;
        for (const auto *set : sets)
            for (const std::int32_t summand : *set)
                if (!seen.insert(summand).second)
                    return std::nullopt;
        if (std::any_of(sets.begin(), sets.end(), [](const auto *set) { return set->empty(); }))
            return std::nullopt;
    }
    // A digit that cuts a dimension and changes the set as well would leave boxes without some summands.
    for (const std::int8_t digit : layout.summandDigits)
        for (const Digits &digits : layout.dimensionDigits)
            if (std::find(digits.begin(), digits.end(), digit) != digits.end())
                return std::nullopt;
    return layout;
}

IndexMask boxUnder(const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices,
    std::int32_t position)
{
    const std::vector<std::int32_t> weights = weightsOf(radices);
    IndexMask box = whole;
    for (std::size_t dimension = 0; dimension < box.ranges.size(); ++dimension) {
        const Digits &digits = layout.dimensionDigits[dimension];
        const std::int64_t extent = box.ranges[dimension].size() / partsOf(digits, radices);
        box.ranges[dimension].begin += extent * numberOf(digits, position, radices, weights);
        box.ranges[dimension].end = box.ranges[dimension].begin + extent;
    }
    return box;
}

std::vector<std::vector<std::int32_t>> subgroupsOf(
    const Digits &digits, const std::vector<std::int32_t> &radices)
{
    const std::vector<std::int32_t> weights = weightsOf(radices);
    const std::int32_t n = radices.empty() ? 1 : weights[0] * radices[0];
    const auto members = static_cast<std::size_t>(partsOf(digits, radices));
    std::vector<std::vector<std::int32_t>> groups;
    std::vector<std::int32_t> groupOf(static_cast<std::size_t>(n), -1);
    for (std::int32_t position = 0; position < n; ++position) {
        std::int32_t base = position;
        for (const std::int8_t digit : digits) {
            const auto d = static_cast<std::size_t>(digit);
            base -= digitOf(position, d, radices, weights) * weights[d];
        }
        std::int32_t &group = groupOf[static_cast<std::size_t>(base)];
        if (group < 0) {
            group = static_cast<std::int32_t>(groups.size());
            groups.emplace_back(members, -1);
        }
        groups[static_cast<std::size_t>(group)]
              [static_cast<std::size_t>(numberOf(digits, position, radices, weights))] = position;
    }
    return groups;
}

namespace {

/// Dijkstra over layouts; `goal` stops it early.
class PathSearch
{
public:
    PathSearch(const IndexMask &whole, DataType dataType, const std::vector<DeviceId> &group,
        const Cluster &cluster, const CostModel &costs)
        : m_whole(whole)
        , m_elementBytes(sizeOf(dataType))
        , m_group(group)
        , m_cluster(cluster)
        , m_costs(costs)
        , m_radices(radicesOf(static_cast<std::int32_t>(group.size())))
    {
    }

    std::map<Layout, LayoutPath> run(const Layout &from, const Layout *goal)
    {
        using Entry = std::pair<double, const Layout *>;
        const auto later = [](const Entry &a, const Entry &b) {
            return a.first != b.first ? a.first > b.first : *b.second < *a.second;
        };
        std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
        m_nodes.clear();
        auto &start = m_nodes[from];
        start.seconds = 0;
        queue.emplace(0.0, &m_nodes.find(from)->first);
        std::map<Layout, LayoutPath> found;
        while (!queue.empty()) {
            const auto [seconds, layout] = queue.top();
            queue.pop();
            Node &node = m_nodes[*layout];
            if (node.done)
                continue;
            node.done = true;
            const bool complete = layout->summandDigits.empty();
            if (goal ? *layout == *goal : complete)
                found.emplace(*layout, pathTo(*layout));
            if (goal && *layout == *goal)
                break;
            for (auto &[hop, cost] : hopsFrom(*layout)) {
                const double total = seconds + cost;
                auto [it, fresh] = m_nodes.try_emplace(hop.to);
                if (fresh || (!it->second.done && total < it->second.seconds)) {
                    it->second.seconds = total;
                    it->second.previous = layout;
                    it->second.hop = std::move(hop);
                    queue.emplace(total, &it->first);
                }
            }
        }
        return found;
    }

private:
    struct Node {
        double seconds = 0;
        const Layout *previous = nullptr;
        Hop hop{};
        bool done = false;
    };

    LayoutPath pathTo(const Layout &layout) const
    {
        LayoutPath path;
        const Node *node = &m_nodes.at(layout);
        path.seconds = node->seconds;
        for (; node->previous; node = &m_nodes.at(*node->previous))
            path.hops.push_back(node->hop);
        std::reverse(path.hops.begin(), path.hops.end());
        return path;
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

    double collective(CollectiveKind kind, std::int64_t elements, const Digits &digits)
    {
        const auto key = std::make_tuple(kind, elements, digits);
        if (const auto it = m_seconds.find(key); it != m_seconds.end())
            return it->second;
        double worst = 0;
        std::vector<std::vector<std::int32_t>> distinct; // groups that look alike to the links cost the same
        for (const auto &positions : subgroupsOf(digits, m_radices)) {
            std::vector<DeviceId> members;
            std::vector<std::int32_t> nodes;
            for (const std::int32_t position : positions) {
                members.push_back(m_group[static_cast<std::size_t>(position)]);
                nodes.push_back(m_cluster.nodeOf(members.back()) - m_cluster.nodeOf(members.front()));
            }
            std::sort(nodes.begin(), nodes.end());
            if (std::find(distinct.begin(), distinct.end(), nodes) != distinct.end())
                continue;
            distinct.push_back(nodes);
            worst = std::max(worst,
                m_costs.collective(kind, Bytes{elements * m_elementBytes}, groupShape(m_cluster, members)));
        }
        m_seconds.emplace(key, worst);
        return worst;
    }

    std::vector<std::pair<Hop, double>> hopsFrom(const Layout &layout)
    {
        std::vector<std::pair<Hop, double>> hops;
        const std::int64_t local = localElements(layout);
        const std::size_t rank = m_whole.ranges.size();
        // All-gather and all-to-all of the innermost digits of a dimension.
        for (std::size_t i = 0; i < rank; ++i) {
            const Digits &cut = layout.dimensionDigits[i];
            for (std::size_t count = 1; count <= cut.size(); ++count) {
                const Digits moved(cut.end() - static_cast<std::ptrdiff_t>(count), cut.end());
                Layout next = layout;
                next.dimensionDigits[i].resize(cut.size() - count);
                Hop gather{HopKind::AllGather, moved, static_cast<std::int8_t>(i), -1, next};
                const double seconds =
                    collective(CollectiveKind::AllGather, local * partsOf(moved, m_radices), moved);
                hops.emplace_back(std::move(gather), seconds);
                for (std::size_t j = 0; j < rank; ++j) {
                    if (j == i)
                        continue;
                    Layout exchanged = next;
                    exchanged.dimensionDigits[j].insert(
                        exchanged.dimensionDigits[j].end(), moved.begin(), moved.end());
                    if (!divides(exchanged, j))
                        continue;
                    Hop exchange{HopKind::AllToAll, moved, static_cast<std::int8_t>(j),
                        static_cast<std::int8_t>(i), std::move(exchanged)};
                    hops.emplace_back(
                        std::move(exchange), collective(CollectiveKind::AllToAll, local, moved));
                }
            }
        }
        // Summands: every subset of their digits is reduced, or reduced and scattered along one dimension.
        const Digits &summands = layout.summandDigits;
        for (std::uint32_t subset = 1; subset < (1u << summands.size()); ++subset) {
            Digits moved;
            Layout next = layout;
            next.summandDigits.clear();
            for (std::size_t s = 0; s < summands.size(); ++s)
                (subset >> s & 1u ? moved : next.summandDigits).push_back(summands[s]);
            hops.emplace_back(Hop{HopKind::AllReduce, moved, -1, -1, next},
                collective(CollectiveKind::AllReduce, local, moved));
            for (std::size_t i = 0; i < rank; ++i) {
                // The order of the digits decides who gets which chunk: ascending, and its reverse.
                for (const bool reversed : {false, true}) {
                    if (reversed && moved.size() < 2)
                        break;
                    Digits order = moved;
                    if (reversed)
                        std::reverse(order.begin(), order.end());
                    Layout scattered = next;
                    scattered.dimensionDigits[i].insert(
                        scattered.dimensionDigits[i].end(), order.begin(), order.end());
                    if (!divides(scattered, i))
                        continue;
                    hops.emplace_back(Hop{HopKind::ReduceScatter, order, static_cast<std::int8_t>(i), -1,
                                          std::move(scattered)},
                        collective(CollectiveKind::ReduceScatter, local, order));
                }
            }
        }
        // Replicas keep a slice: a local copy.
        for (std::size_t d = 0; d < m_radices.size(); ++d) {
            const auto digit = static_cast<std::int8_t>(d);
            const auto has = [digit](const Digits &digits) {
                return std::find(digits.begin(), digits.end(), digit) != digits.end();
            };
            if (has(summands)
                || std::any_of(layout.dimensionDigits.begin(), layout.dimensionDigits.end(), has))
                continue;
            for (std::size_t i = 0; i < rank; ++i) {
                Layout next = layout;
                next.dimensionDigits[i].push_back(digit);
                if (!divides(next, i))
                    continue;
                const double seconds = m_costs.copy(Bytes{local / m_radices[d] * m_elementBytes});
                hops.emplace_back(
                    Hop{HopKind::Slice, {digit}, static_cast<std::int8_t>(i), -1, std::move(next)}, seconds);
            }
        }
        return hops;
    }

    const IndexMask &m_whole;
    std::int64_t m_elementBytes;
    const std::vector<DeviceId> &m_group;
    const Cluster &m_cluster;
    const CostModel &m_costs;
    std::vector<std::int32_t> m_radices;
    std::map<Layout, Node> m_nodes;
    std::map<std::tuple<CollectiveKind, std::int64_t, Digits>, double> m_seconds;
};

} // namespace

std::optional<LayoutPath> cheapestPath(const Layout &from, const Layout &to, const IndexMask &whole,
    DataType dataType, const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs)
{
    auto found = PathSearch(whole, dataType, group, cluster, costs).run(from, &to);
    const auto it = found.find(to);
    if (it == found.end())
        return std::nullopt;
    return std::move(it->second);
}

std::map<Layout, LayoutPath> cheapestPaths(const Layout &from, const IndexMask &whole, DataType dataType,
    const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs)
{
    return PathSearch(whole, dataType, group, cluster, costs).run(from, nullptr);
}

} // namespace planloom
