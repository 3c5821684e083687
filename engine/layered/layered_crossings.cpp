#include "engine/layered/layered_crossings.h"

#include "engine/base/ids.h"
#include "engine/layered/layered_layout.h"

#include <algorithm>

namespace planloom {

/// Counts with a binary indexed tree.
std::int64_t inversions(std::vector<std::pair<double, double>> &ends)
{
    std::sort(ends.begin(), ends.end());
    std::vector<double> values;
    values.reserve(ends.size());
    for (const auto &end : ends)
        values.push_back(end.second);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<std::int64_t> tree(values.size() + 1, 0);
    std::int64_t count = 0;
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < ends.size();) {
        std::size_t j = i; // those with the same first coordinate do not cross one another
        for (; j < ends.size() && ends[j].first == ends[i].first; ++j) {
            auto place = static_cast<std::size_t>(
                std::lower_bound(values.begin(), values.end(), ends[j].second) - values.begin());
            std::int64_t notAbove = 0;
            for (std::size_t k = place + 1; k > 0; k -= k & (~k + 1))
                notAbove += tree[k];
            count += seen - notAbove;
        }
        for (; i < j; ++i) {
            auto place = static_cast<std::size_t>(
                std::lower_bound(values.begin(), values.end(), ends[i].second) - values.begin());
            for (std::size_t k = place + 1; k < tree.size(); k += k & (~k + 1))
                ++tree[k];
            ++seen;
        }
    }
    return count;
}

std::int64_t crossingsOf(const LayeredGraph &graph, const LayeredLayout &layout)
{
    std::int32_t deepest = -1;
    for (const auto r : layout.ranks)
        deepest = std::max(deepest, r);
    std::vector<std::vector<std::pair<double, double>>> between(at(deepest + 1));
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
        const auto &route = layout.routes[e];
        for (std::size_t i = 1; i + 1 < route.points.size(); i += 2)
            between[at(layout.ranks[at(graph.edges[e].from)]) + i / 2].emplace_back(
                route.points[i].x, route.points[i + 1].x);
    }
    std::int64_t total = 0;
    for (auto &ends : between)
        total += inversions(ends);
    return total;
}

} // namespace planloom
