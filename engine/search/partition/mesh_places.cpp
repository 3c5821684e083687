#include "engine/search/partition/mesh_places.h"

#include "engine/plan/complete.h"

#include <algorithm>
#include <tuple>

namespace planloom {

std::vector<DeviceId> MeshPlaces::shardsOver(
    std::int32_t replica, std::int32_t rank, ShardAxes axes, std::int32_t of) const
{
    const std::int32_t inner = shards / outerShards;
    const bool alongOuter = contains(axes, ShardAxes::Outer);
    const bool alongInner = contains(axes, ShardAxes::Inner);
    std::vector<DeviceId> devices;
    for (std::int32_t o = 0; o < (alongOuter ? outerShards : 1); ++o)
        for (std::int32_t i = 0; i < (alongInner ? inner : 1); ++i)
            devices.push_back(
                at(replica, rank, (alongOuter ? o : of / inner) * inner + (alongInner ? i : of % inner)));
    return devices;
}

std::vector<DeviceId> MeshPlaces::replicaGroup(std::int32_t rank, std::int32_t shard) const
{
    std::vector<DeviceId> devices;
    for (std::int32_t r = 0; r < replicas; ++r)
        devices.push_back(at(r, rank, shard));
    return devices;
}

std::vector<DeviceId> MeshPlaces::allOf(std::int32_t rank) const
{
    std::vector<DeviceId> devices;
    for (std::int32_t r = 0; r < replicas; ++r)
        for (std::int32_t s = 0; s < shards; ++s)
            devices.push_back(at(r, rank, s));
    return devices;
}

ClassSet MeshPlaces::allClasses() const
{
    ClassSet all = classes.empty() ? 1 : 0;
    for (const ClassSet each : classes)
        all |= each;
    return all;
}

bool MeshPlaces::isMixed() const
{
    const ClassSet all = allClasses();
    return (all & (all - 1)) != 0;
}

namespace {

bool spreadsFurther(const GroupShape &a, const GroupShape &b)
{
    return std::tie(a.outer, a.nodes) > std::tie(b.outer, b.nodes);
}

std::array<GroupShape, kShardAxisSets> weightGroupsOf(
    const MeshPlaces &places, std::int32_t rank, const Cluster &cluster)
{
    const std::int32_t inner = places.shards / places.outerShards;
    std::array<GroupShape, kShardAxisSets> groups;
    for (const ShardAxes axes : {ShardAxes::None, ShardAxes::Inner, ShardAxes::Outer, ShardAxes::Both}) {
        GroupShape &widest = groups[indexOf(axes)];
        for (std::int32_t o = 0; o < (contains(axes, ShardAxes::Outer) ? 1 : places.outerShards); ++o)
            for (std::int32_t i = 0; i < (contains(axes, ShardAxes::Inner) ? 1 : inner); ++i) {
                std::vector<DeviceId> members;
                for (std::int32_t r = 0; r < places.replicas; ++r)
                    for (const DeviceId device : places.shardsOver(r, rank, axes, o * inner + i))
                        members.push_back(device);
                const GroupShape own = groupShape(cluster, members);
                if ((o == 0 && i == 0) || spreadsFurther(own, widest))
                    widest = own;
            }
    }
    return groups;
}

} // namespace

MeshPlaces meshPlaces(const Configuration &configuration, const SearchSpace &space, const Cluster &cluster,
    std::int32_t deviceCount)
{
    MeshPlaces places{
        configuration.replicas, configuration.ranks, configuration.shards, configuration.outerShards};
    places.firstDevice = configuration.firstDevice;
    bool isOuter = false; // of the shards' axes that comes next
    const auto order = axisOrder(configuration, space);
    std::int32_t stride = 1;
    for (auto role = order.rbegin(); role != order.rend(); ++role) {
        switch (*role) {
        case AxisRole::Replicas:
            places.replicaStride = stride;
            stride *= places.replicas;
            break;
        case AxisRole::Ranks:
            places.rankStride = stride;
            stride *= places.ranks;
            break;
        case AxisRole::Shards:
            (isOuter ? places.outerStride : places.shardStride) = stride;
            stride *= isOuter ? configuration.outerShards : configuration.innerShards();
            isOuter = true;
            break;
        }
    }
    Cluster used = cluster;
    used.deviceCount = deviceCount;
    places.hasUnits = places.replicas > 1 && stride == deviceCount && deviceCount > kMostExplicitDevices
        && unitsAlike(used, {.count = places.replicas, .inner = places.replicaStride});
    if (!cluster.otherClasses.empty())
        for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
            ClassSet &own = places.classes.emplace_back(0);
            for (const DeviceId device : places.allOf(rank))
                own |= ClassSet{1} << cluster.classOf(device);
        }
    for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
        places.weightGroups.push_back(weightGroupsOf(places, rank, cluster));
        const auto &own = places.weightGroups.back();
        const auto &nearest = places.weightGroups[static_cast<std::size_t>(places.nearestRank)];
        if (std::lexicographical_compare(
                nearest.begin(), nearest.end(), own.begin(), own.end(), spreadsFurther))
            places.nearestRank = rank;
    }
    return places;
}

} // namespace planloom
