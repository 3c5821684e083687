#pragma once

#include "engine/hardware/cluster.h"
#include "engine/search/partition/mesh_places.h"
#include "engine/search/partition/partition_problem.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// What it takes to send tensors of a micro-batch between the devices of a rank, as a partition has them cut,
/// and groups of devices apart, as lowering does where devices are on both sides
/// (lowering/layout/materialize.h): piece by piece, of which a group cuts what it sends and joins what it
/// gets. Answers are remembered. For one thread.
class AsideLinks
{
public:
    /// What it is made of must outlive it. @param groups  the devices of each, ascending
    AsideLinks(const std::vector<std::vector<DeviceId>> &groups, const Cluster &cluster,
        const PartitionProblem &problem, const MeshPlaces &places);

    struct Sent {
        double link = 0; ///< Seconds of the group's links, one piece after the other.
        double copies = 0; ///< Of its own memory: joining what came, or cutting what goes;
        double firstCopy = 0; ///< of that, what the first piece waits for.
    };

    /// Whether the group's first device is one of the rank's.
    bool isIn(std::int32_t group, std::int32_t rank);
    /// To the group, from a rank whose devices hold a tensor, or its gradient, so. @param groupParts  into
    /// how many the group cuts it
    Sent toGroup(TensorId tensor, bool gradient, ShardLayout layout, std::int32_t rank, std::int32_t group,
        double groupParts);
    /// From the group to a rank whose devices want it so.
    Sent fromGroup(TensorId tensor, bool gradient, ShardLayout layout, std::int32_t rank, std::int32_t group,
        double groupParts);
    /// Between two groups.
    Sent between(TensorId tensor, bool gradient, std::int32_t from, std::int32_t to);

private:
    /// How pieces go between a rank's devices and the first of a group.
    struct Reach {
        std::int32_t pieces = 1; ///< That differ.
        std::int32_t local = 0; ///< Of the devices' pieces, those of the group's own.
        std::vector<std::pair<GroupShape, double>> received{}; ///< How many of these come over such links,
        std::vector<std::pair<GroupShape, double>> sent{}; ///< and go: one to each device.
        GroupShape everybody{}; ///< The rank's devices with one of the group.
    };
    const Reach &reachOf(std::int32_t rank, std::int32_t group, ShardLayout layout, bool cut);
    const std::vector<DeviceId> &devicesOf(std::int32_t group) const
    {
        return m_groups[static_cast<std::size_t>(group)];
    }
    /// Whether replicas have a part each.
    bool isCut(TensorId tensor) const;
    /// Of a micro-batch of all replicas.
    double bytesOf(const MovedTensor &moved, TensorId tensor) const;
    double copy(double bytes) const;
    double seconds(double bytes, GroupShape shape) const;

    const std::vector<std::vector<DeviceId>> &m_groups;
    const Cluster &m_cluster;
    const AxisSetting &m_setting;
    const CostModel &m_costs;
    const PartitionProblem &m_problem;
    const MeshPlaces &m_places;
    std::map<std::pair<std::int32_t, std::int32_t>, bool> m_isIn{};
    std::map<std::tuple<std::int32_t, std::int32_t, bool, bool, bool>, Reach> m_reach{};
};

/// Whose device it is; -1 of none.
std::int32_t rankOf(const MeshPlaces &places, DeviceId device);

} // namespace planloom
