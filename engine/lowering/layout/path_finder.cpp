#include "engine/lowering/layout/path_finder.h"

#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace planloom {

namespace {

/// By number of the different values of `keyOf(i)`, in their order.
template<typename KeyOf> std::vector<std::size_t> ranksOf(std::size_t count, KeyOf keyOf)
{
    std::vector<std::decay_t<decltype(keyOf(0))>> keys;
    for (std::size_t i = 0; i < count; ++i)
        keys.push_back(keyOf(i));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<std::size_t> ranks;
    for (std::size_t i = 0; i < count; ++i)
        ranks.push_back(
            static_cast<std::size_t>(std::lower_bound(keys.begin(), keys.end(), keyOf(i)) - keys.begin()));
    return ranks;
}

} // namespace

PathMemory::Path PathMemory::find(const Key &key) const
{
    const std::lock_guard lock{m_mutex};
    const auto found = m_paths.find(key);
    return found == m_paths.end() ? nullptr : found->second;
}

void PathMemory::add(Key key, Path path)
{
    const std::lock_guard lock{m_mutex};
    if (m_paths.size() >= kMost)
        m_paths.clear();
    m_paths.insert_or_assign(std::move(key), std::move(path));
}

std::optional<PathFinder::Found> PathFinder::find(const std::vector<Holding> &held,
    const std::vector<Cell> &wanted, const IndexMask &whole, DataType dataType, Combination combination,
    Launch launch)
{
    const auto radices = radicesOf(static_cast<std::int32_t>(held.size()));
    const auto summand = ranksOf(held.size(), [&](std::size_t i) { return held[i].summands; });
    const auto box = ranksOf(held.size(), [&](std::size_t i) { return held[i].box; });
    const auto wantedBox = ranksOf(held.size(), [&](std::size_t i) { return wanted[i].box; });
    const std::size_t summands = *std::max_element(summand.begin(), summand.end()) + 1;
    const bool complete = std::all_of(wanted.begin(), wanted.end(),
        [&](const Cell &cell) { return cell.summand == wanted.front().summand; });
    using Sorting = std::array<std::size_t, 4>;
    const std::array<std::function<Sorting(std::size_t)>, 4> sortings{
        [](std::size_t i) { return Sorting{i}; },
        [&](std::size_t i) {
            return Sorting{summand[i], box[i], static_cast<std::size_t>(wanted[i].summand), wantedBox[i]};
        },
        [&](std::size_t i) {
            return Sorting{static_cast<std::size_t>(wanted[i].summand), wantedBox[i], summand[i], box[i]};
        },
        // Those that want one box hold all summands: as members of different groups, each in another place.
        [&](std::size_t i) {
            return Sorting{static_cast<std::size_t>(wanted[i].summand), wantedBox[i],
                (summand[i] + wantedBox[i]) % summands, box[i]};
        }};
    std::optional<Found> best;
    for (std::size_t attempt = 0; attempt < sortings.size(); ++attempt) {
        // Nobody placed anything in another order: then only the members of reduce-scatters are open.
        if (best && best->regular && (attempt < 3 || summands == 1 || best->path.hops.size() < 2))
            continue;
        const auto &sorting = sortings[attempt];
        std::vector<std::size_t> order(held.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return sorting(a) < sorting(b); });
        std::vector<Holding> from;
        std::vector<Holding> to;
        std::vector<Cell> cells;
        std::vector<DeviceId> devices;
        for (const std::size_t i : order) {
            from.push_back(held[i]);
            to.push_back({held[i].device, wanted[i].box, {wanted[i].summand}, -1});
            cells.push_back(wanted[i]);
            devices.push_back(held[i].device);
        }
        const auto source = recogniseLayout(from, whole, radices, complete);
        if (!source)
            continue;
        const bool regular = recogniseLayout(to, whole, radices).has_value();
        const PathMemory::Path known =
            pathOf(*source, std::move(cells), whole, dataType, combination, launch, devices);
        if (const auto &path = *known; path && (!best || path->seconds < best->path.seconds))
            best = Found{std::move(order), *path, regular};
    }
    return best;
}

PathMemory::Path PathFinder::pathOf(const Layout &from, std::vector<Cell> wanted, const IndexMask &whole,
    DataType dataType, Combination combination, Launch launch, const std::vector<DeviceId> &devices)
{
    auto where = topologyOf(m_cluster, devices, m_cluster.nodeOf(devices.front()));
    for (const std::int32_t number : {m_cluster.deviceCount, m_cluster.units.count, m_cluster.units.inner})
        where.push_back(number); // whose links devices share depends on the plan's units
    PathMemory::Key key{
        from, std::move(wanted), shapeOf(whole), dataType, combination, launch, std::move(where)};
    if (auto known = m_memory->find(key))
        return known;
    auto path = std::make_shared<const std::optional<LayoutPath>>(cheapestPath(
        from, std::get<1>(key), whole, dataType, devices, m_cluster, m_costs, combination, launch));
    m_memory->add(std::move(key), path);
    return path;
}

} // namespace planloom
