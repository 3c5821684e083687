#pragma once

#include "engine/lowering/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// Cheapest paths of layouts that were found, of one cluster at the costs of one model: kept from one plan to
/// the next by who lowers many. Thread-safe.
class PathMemory
{
public:
    /// The arguments of `cheapestPath`: devices by where they lie to one another, and
    /// which of the cluster's they are with the plan's units.
    using Key = std::tuple<Layout, std::vector<Cell>, std::vector<std::int64_t>, DataType, Combination,
        Launch, std::vector<std::int32_t>>;
    using Path = std::shared_ptr<const std::optional<LayoutPath>>;

    Path find(const Key &key) const; ///< Null: nobody looked for it.
    void add(Key key, Path path);

private:
    static constexpr std::size_t kMost = 100'000; ///< Paths; beyond, it begins anew.
    mutable std::mutex m_mutex{};
    std::map<Key, Path> m_paths{};
};

/// Finds the cheapest ways from what the devices of a group hold to what they want, and remembers them.
///
/// Layouts are seen in a numbering of the devices only; parts may be placed in any order. So the devices are
/// numbered as they come, by what they hold, by what they want, and so that a reduce-scatter finds its
/// members: the cheapest path of the four is taken.
class PathFinder
{
public:
    /// Cluster and costs must outlive it.
    /// @param memory  null: one of its own
    PathFinder(const Cluster &cluster, const CostModel &costs, std::shared_ptr<PathMemory> memory = {})
        : m_cluster(cluster)
        , m_costs(costs)
        , m_memory(memory ? std::move(memory) : std::make_shared<PathMemory>())
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
    PathMemory::Path pathOf(const Layout &from, std::vector<Cell> wanted, const IndexMask &whole,
        DataType dataType, Combination combination, Launch launch, const std::vector<DeviceId> &devices);

    const Cluster &m_cluster;
    const CostModel &m_costs;
    std::shared_ptr<PathMemory> m_memory;
};

} // namespace planloom
