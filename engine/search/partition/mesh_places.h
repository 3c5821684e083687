#pragma once

#include "engine/hardware/cluster.h"
#include "engine/hardware/nccl_model.h"
#include "engine/search/partition/shard_layout.h"
#include "engine/search/search_space.h"

#include <array>
#include <cstdint>
#include <vector>

namespace planloom {

/// Sets of device classes, as in `GroupShape::classes`.
using ClassSet = std::uint32_t;

/// Which devices a configuration's mesh is made of: those of the cluster from one on, in the order of its
/// axes.
struct MeshPlaces {
    std::int32_t replicas = 1;
    std::int32_t ranks = 1;
    std::int32_t shards = 1;
    std::int32_t outerShards = 1; ///< Of them, along the outer axis.
    /// From one device to the next along an axis.
    std::int32_t replicaStride = 1;
    std::int32_t rankStride = 1;
    std::int32_t shardStride = 1;
    std::int32_t outerStride = 1;
    std::int32_t firstDevice = 0;
    bool hasUnits = false; ///< Replicas are scale units of the plan (`UseUnits::WhereLarge`).
    /// By rank: of the devices that run it. Empty where the cluster has one class alone.
    std::vector<ClassSet> classes{};
    /// By rank, and by the axes whose devices are in it: a group of devices that hold the same part of its
    /// weights, each of another replica, or make summands of one; of several the one over most nodes.
    std::vector<std::array<GroupShape, kShardAxisSets>> weightGroups{};
    std::int32_t nearestRank = 0; ///< Whose groups lie over the fewest nodes.

    DeviceId at(std::int32_t replica, std::int32_t rank, std::int32_t shard) const
    {
        const std::int32_t inner = shards / outerShards;
        return {firstDevice + replica * replicaStride + rank * rankStride + shard % inner * shardStride
            + shard / inner * outerStride};
    }
    /// Those of a replica and a rank that differ from shard `of` along these of the shards' axes alone, with
    /// it.
    std::vector<DeviceId> shardsOver(
        std::int32_t replica, std::int32_t rank, ShardAxes axes, std::int32_t of = 0) const;
    /// Devices that hold the same part of a rank's weights.
    std::vector<DeviceId> replicaGroup(std::int32_t rank, std::int32_t shard) const;
    std::vector<DeviceId> allOf(std::int32_t rank) const;

    ClassSet classesOf(std::int32_t rank) const
    {
        return classes.empty() ? 1 : classes[static_cast<std::size_t>(rank)];
    }
    ClassSet allClasses() const;
    /// Not all ranks are of the same single class.
    bool isMixed() const;
};

/// O(devices of the mesh x its shards' axes).
MeshPlaces meshPlaces(const Configuration &configuration, const SearchSpace &space, const Cluster &cluster,
    std::int32_t deviceCount);

} // namespace planloom
