#pragma once

#include "engine/lowering/layout.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace planloom {

/// Finds the cheapest ways from what the devices of a group hold to what they want, and remembers them.
///
/// Layouts are seen in a numbering of the devices only; parts may be placed in any order. So the devices are
/// numbered as they come, by what they hold, by what they want, and so that a reduce-scatter finds its
/// members: the cheapest path of the four is taken.
class PathFinder
{
public:
    /// Both must outlive it.
    PathFinder(const Cluster &cluster, const CostModel &costs)
        : m_cluster(cluster)
        , m_costs(costs)
    {
    }

    struct Found {
        std::vector<std::size_t> order{}; ///< By position: the index of its device in what was given.
        LayoutPath path{};
        bool regular = false; ///< Layouts on both sides, in this order.
    };

    /// @param held    one per device, in the order of devices
    /// @param wanted  by the same devices
    /// @return nothing if `held` is no layout in any of these numberings
    std::optional<Found> find(const std::vector<Holding> &held, const std::vector<Cell> &wanted,
        const IndexMask &whole, DataType dataType, Combination combination, Launch launch = Launch::Alone);

private:
    const std::optional<LayoutPath> &pathOf(const Layout &from, std::vector<Cell> wanted,
        const IndexMask &whole, DataType dataType, Combination combination, Launch launch,
        const std::vector<DeviceId> &devices);

    using Key = std::tuple<Layout, std::vector<Cell>, std::vector<std::int64_t>, DataType, Combination,
        Launch, std::vector<std::int32_t>>;

    const Cluster &m_cluster;
    const CostModel &m_costs;
    std::map<Key, std::optional<LayoutPath>> m_paths{};
};

} // namespace planloom
