#include "engine/lowering/layout/layout_bound.h"

#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr double kUnreached = std::numeric_limits<double>::infinity();

} // namespace

LayoutBound::LayoutBound(const Layout &from, const PathGoal &goal, const IndexMask &whole,
    const std::vector<std::int32_t> &radices, PathCosts &costs)
    : m_whole(whole)
    , m_radices(radices)
    , m_costs(costs)
{
    for (const std::int32_t radix : radices)
        m_positions *= radix;
    stateOf(partsOf(from));
    for (std::size_t state = 0; state < m_parts.size(); ++state) // grows on the way
        addHops(static_cast<std::int32_t>(state));
    m_seconds.assign(m_parts.size(), kUnreached);
    for (std::size_t state = 0; state < m_parts.size(); ++state) {
        const Parts &parts = m_parts[state];
        bool isGoal = goal.summands % parts.back() == 0;
        for (std::size_t d = 0; d < goal.extents.size(); ++d)
            isGoal = isGoal && whole.ranges[d].size() / parts[d] >= goal.extents[d];
        if (isGoal)
            m_seconds[state] = 0;
    }
    relax();
}

double LayoutBound::from(const Layout &layout) const
{
    const auto found = m_states.find(partsOf(layout));
    return found == m_states.end() ? 0 : m_seconds[static_cast<std::size_t>(found->second)];
}

LayoutBound::Parts LayoutBound::partsOf(const Layout &layout) const
{
    Parts parts;
    for (const Digits &digits : layout.dimensionDigits)
        parts.push_back(planloom::partsOf(digits, m_radices));
    parts.push_back(planloom::partsOf(layout.summandDigits, m_radices));
    return parts;
}

std::int32_t LayoutBound::stateOf(const Parts &parts)
{
    const auto [found, isNew] = m_states.try_emplace(parts, static_cast<std::int32_t>(m_parts.size()));
    if (isNew) {
        m_parts.push_back(parts);
        m_arrows.emplace_back();
    }
    return found->second;
}

/// All that lead away from `state`. Cutting is a copy, which is left out: at no cost, the bound still holds.
void LayoutBound::addHops(std::int32_t state)
{
    const Parts parts = m_parts[static_cast<std::size_t>(state)];
    const std::size_t rank = m_whole.ranges.size();
    std::int64_t local = 1;
    std::int64_t replicas = m_positions / parts.back();
    for (std::size_t d = 0; d < rank; ++d) {
        local *= m_whole.ranges[d].size() / parts[d];
        replicas /= parts[d];
    }
    const auto lead = [&](const Parts &to, double seconds) {
        if (seconds < kUnreached)
            m_arrows[static_cast<std::size_t>(stateOf(to))].push_back({state, seconds});
    };
    const auto cut = [&](Parts to, std::size_t dimension, std::int64_t by, double seconds) {
        to[dimension] *= by;
        if (m_whole.ranges[dimension].size() % to[dimension] == 0)
            lead(to, seconds);
    };
    for (const std::int32_t radix : std::set(m_radices.begin(), m_radices.end()))
        for (std::size_t d = 0; d < rank && replicas % radix == 0; ++d)
            cut(parts, d, radix, 0);
    for (const std::int64_t count : m_costs.partCounts()) {
        for (std::size_t i = 0; i < rank; ++i) {
            if (parts[i] % count != 0)
                continue;
            Parts gathered = parts;
            gathered[i] /= count;
            lead(gathered, m_costs.leastCollective(CollectiveKind::AllGather, local * count, count));
            const double exchange = m_costs.leastCollective(CollectiveKind::AllToAll, local, count);
            for (std::size_t j = 0; j < rank; ++j)
                if (j != i)
                    cut(gathered, j, count, exchange);
        }
        if (parts.back() % count != 0)
            continue;
        Parts added = parts;
        added.back() /= count;
        lead(added, m_costs.leastCollective(CollectiveKind::AllReduce, local, count));
        const double scattering = m_costs.leastCollective(CollectiveKind::ReduceScatter, local, count);
        for (std::size_t d = 0; d < rank; ++d)
            cut(added, d, count, scattering);
    }
}

/// Dijkstra from all goals, against the arrows.
void LayoutBound::relax()
{
    using Entry = std::pair<double, std::int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (std::size_t state = 0; state < m_seconds.size(); ++state)
        if (m_seconds[state] == 0)
            queue.push({0, static_cast<std::int32_t>(state)});
    while (!queue.empty()) {
        const auto [seconds, state] = queue.top();
        queue.pop();
        if (seconds > m_seconds[static_cast<std::size_t>(state)])
            continue;
        for (const Arrow &arrow : m_arrows[static_cast<std::size_t>(state)]) {
            double &known = m_seconds[static_cast<std::size_t>(arrow.from)];
            if (seconds + arrow.seconds < known) {
                known = seconds + arrow.seconds;
                queue.push({known, arrow.from});
            }
        }
    }
}

} // namespace planloom
