#pragma once

#include "engine/hardware/cluster.h"
#include "engine/hardware/cost_model.h"
#include "engine/search/least_stages.h"
#include "engine/search/search_space.h"
#include "engine/search/stage_figures.h"

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// Devices 0, stride, 2 stride, ...
std::vector<DeviceId> devicesApart(std::int32_t count, std::int32_t stride);

/// How a rank's step ends: reductions beside its last backward block, updates, gathering of what was updated.
struct Ending {
    double begin = std::numeric_limits<double>::infinity(); ///< Of reductions.
    double computed = 0; ///< The last block is over.
    double reduction = 0; ///< Seconds of all of them, one after the other.
    double update = 0;
    double gather = 0;
    double buckets = 1;

    double seconds() const;
};

/// What replicas, and shards that sum gradients up, communicate for the weights of a configuration.
class Reductions
{
public:
    /// What it is made of must outlive it.
    /// @param widest  the most bytes of a weight, as the model reads it, for a byte of its gradient as it is
    /// sent
    Reductions(
        const Configuration &configuration, const CostModel &costs, const Cluster &cluster, double widest);

    /// What it takes of every micro-batch.
    void addTo(const StageFigures &stage, StageTime &time) const;
    /// What it takes at the end of a step.
    /// @param lastBackward  when the stage's last backward block begins; @param end  when its last block is
    /// over
    void addTo(const StageFigures &stage, double lastBackward, double end, Ending &ending) const;

    /// Devices that share what is kept and done for the optimizer alone.
    std::int32_t updaters(bool overShards) const;

    /// What a stage's weights take at least, whatever the partition: of every micro-batch with ZeRO-2 and 3,
    /// else once.
    struct Least {
        double reduction = 0; ///< With gathering again.
        double update = 0;
        double gather = 0; ///< Of what was updated.
        double reducedBytes = 0;
        bool maySum = false; ///< Over the shards, too.
    };
    Least leastOf(const PartitionProblem &problem, const LeastStage &stage) const;
    /// What is left of the reductions of a rank at least when it has computed its last gradient: a bucket.
    /// @param bytes  of its gradients as they are sent, at least
    double leastLastBucket(double bytes, bool maySum) const;

    /// What no weight's reduction takes less than, with gathering it again for every micro-batch.
    WeightTraffic leastReduction(bool overShards) const;
    /// Likewise of gathering it again for a pass (ZeRO-3).
    WeightTraffic leastGatheringAgain() const;
    /// Likewise of the reduction that computation waits for at the end of a layer (ZeRO-2 and 3).
    WeightTraffic leastShardSum(bool overShards) const;
    /// Likewise of gathering it when it was updated.
    WeightTraffic leastGathering(bool overShards) const;

private:
    /// Of one of the four, by number, worked out once.
    template<typename Make> WeightTraffic once(int which, bool overShards, const Make &make) const;
    /// @param buckets  the group by which their size is chosen
    void add(CollectiveKind kind, GroupShape over, GroupShape buckets, WeightTraffic &traffic) const;
    GroupShape shape(bool overShards) const { return overShards ? m_all : m_replicas; }
    double reduction(CollectiveKind kind, std::int64_t bytes, bool overShards) const;
    double seconds(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const;
    std::int64_t bucketBytes(GroupShape group, std::int64_t all) const;
    double inBuckets(const StageFigures &stage, CollectiveKind kind, bool overShards, Ending &ending) const;

    const Configuration &m_configuration;
    const CostModel &m_costs;
    const double m_widest;
    GroupShape m_replicas{};
    GroupShape m_all{};
    GroupShape m_inUnit{}; ///< Of one rank where there are no units.
    mutable std::map<std::pair<int, bool>, WeightTraffic> m_traffic{}; ///< What was worked out.
};

} // namespace planloom
