#pragma once

#include "engine/hardware/cluster.h"
#include "engine/hardware/cost_model.h"
#include "engine/search/partition/mesh_places.h"
#include "engine/search/search_space.h"
#include "engine/search/time/layer_traffic.h"
#include "engine/search/time/pipeline_time.h"
#include "engine/search/time/stage_figures.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// What several gradients take to be reduced at least, as a sum over them, by what is known of buckets:
enum class ReducedAs : std::uint8_t {
    InBuckets, ///< none is larger than a full one and the largest gradient;
    Apart, ///< a gradient that fills one by itself is the last in it: its launch is no smaller;
    /// likewise, and a bucket without such a one is less than two full ones, as is what else is in one with;
    Filled,
    AsOne, ///< all were one launch, but for what the first byte takes.
};
constexpr std::size_t kReducedAs = 4;

/// How a rank's step ends: reductions beside its last backward block, updates, gathering of what was updated.
struct Ending {
    double begin = std::numeric_limits<double>::infinity(); ///< Of reductions.
    double computed = 0; ///< The last block is over.
    double reduction = 0; ///< Seconds of all of them, one after the other.
    double reduced = 0; ///< When the last is over; 0 where there is none.
    /// Reductions of the gradients of this operator's weights, and of those that are complete later, wait for
    /// the backward pass up to it: of all such operators the one by which they end last. -1 where there is
    /// none.
    std::int32_t behind = -1;
    bool behindAll = false; ///< That is the last that the last block does.
    double leastReduced = 0; ///< When that is, whatever is reduced together,
    ReducedAs as{}; ///< as it is bounded;
    double leastReduction = 0; ///< Likewise all, one after the other,
    ReducedAs allAs{}; ///< as it is bounded.
    double shared = 0; ///< Seconds of those of weights that several stages read; when all are done.
    double update = 0;
    double updatedLast = 0; ///< When that is over which waits for the last reductions.
    double gather = 0; ///< All of it is one launch.
    double last = 1; ///< The share of the last bucket of gradients in the bytes of all.

    double seconds() const;
};

/// What replicas, and shards that sum gradients up, communicate for the weights of a configuration.
class Reductions
{
public:
    /// What it is made of must outlive it.
    /// @param problem  of the configuration
    /// @param rank  whose devices they are; none: of the one whose are nearest to one another, as bounds of
    /// all have it
    Reductions(const Configuration &configuration, const MeshPlaces &places, const CostModel &costs,
        const Cluster &cluster, const PartitionProblem &problem, std::int32_t rank = -1);

    const Configuration &configuration() const { return m_configuration; }
    const PartitionProblem &problem() const { return m_problem; }

    /// What communication for weights takes longer than, of a micro-batch's passes, all of each together.
    struct Longer {
        bool gathers = false; ///< Gathering, than the forward pass (ZeRO-3).
        bool reduces = false; ///< Reducing, with gathering again, than the backward pass (ZeRO-2 and 3).
    };
    /// What it takes of every micro-batch.
    Longer addTo(const StageFigures &stage, StageTime &time) const;
    /// Weights that are gathered as the step begins, in the order in which the first forward pass reads them.
    struct Ahead {
        double seconds = 0; ///< Until that pass is over, at least; 0 where nothing is gathered.
        std::int32_t reader = -1; ///< An operator that it waits for: what it and those behind it do follows.
    };
    Ahead aheadOf(const StageFigures &stage) const;
    /// How the step of `rank` ends.
    /// @param figures  of all stages
    Ending endingOf(
        std::size_t rank, const std::vector<StageFigures> &figures, const PipelineTime &played) const;

    /// Devices that share what is kept and done for the optimizer alone.
    std::int32_t updaters(ShardAxes sums) const;

    /// What no weight's reduction takes less than, with gathering it again for every micro-batch.
    WeightTraffic leastReduction(ShardAxes sums) const;
    /// Likewise without the latter, bounded otherwise; nothing with ZeRO-2 and 3. With `AsOne`, but for
    /// `leastLaunch`.
    WeightTraffic leastReduction(ShardAxes sums, ReducedAs as) const;
    /// Of what gradients take, as it is bounded, the longest, and by what.
    std::pair<double, ReducedAs> longestOf(std::array<double, kReducedAs> reduced) const;
    /// Seconds of adding up what several stages make of one weight's gradient: all devices that have some at
    /// once; scale units first by themselves.
    double sharedSeconds(const std::vector<std::int32_t> &stages, double bytes, ShardAxes sums) const;
    /// What the first byte takes that is reduced at the end of a step, and that is gathered then.
    double leastLaunch() const;
    double leastGatheringLaunch() const;
    /// Likewise of reducing it in a pass (ZeRO-2 and 3), and of gathering it for one (ZeRO-3), in a layer
    /// that has so much.
    WeightTraffic leastReducing(ShardAxes sums, LayerBytes layer) const;
    WeightTraffic leastGatheringAgain(ShardAxes sums, LayerBytes layer) const;
    /// With ZeRO-2 and 3, seconds of a backward pass that reducing a weight takes of computation: adding up
    /// what a device keeps. @param share  and the next as `ModelWeights::secondsOf`
    double inPassSeconds(TensorId weight, ShardAxes sums, double share, double readers) const;
    /// Likewise of gathering it as the next step begins.
    WeightTraffic leastGatheringAhead(ShardAxes sums) const;
    /// Likewise of gathering it when it was updated, at the end of a step.
    WeightTraffic leastGathering(ShardAxes sums) const;

private:
    /// Of one of these, by number, worked out once.
    template<typename Make> WeightTraffic once(int which, ShardAxes sums, const Make &make) const;
    double perByte(CollectiveKind kind, GroupShape over) const;
    double firstByte(CollectiveKind kind, GroupShape over) const;
    /// Of a launch of so many bytes, what one takes; nothing takes less that goes along with it.
    double launchedByte(CollectiveKind kind, ShardAxes sums, double bytes) const;
    /// @param largest  bytes that are launched together at most
    void add(CollectiveKind kind, GroupShape over, double largest, WeightTraffic &traffic) const;
    double largestReduction(GroupShape buckets) const;
    void reduceApart(ShardAxes sums, double from, WeightTraffic &traffic) const;
    CollectiveKind reductionKind() const;
    /// What was updated is gathered as the step ends.
    bool gathersAtEnd() const { return !m_ahead && (m_configuration.zero == 1 || m_configuration.zero == 2); }
    GroupShape shape(ShardAxes sums) const { return m_groups[indexOf(sums)]; }
    std::vector<TrafficLayer> layersOf(const StageFigures &stage, double forward) const;
    double reduction(CollectiveKind kind, std::int64_t bytes, ShardAxes sums) const;
    double seconds(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const;
    std::int64_t bucketBytes(GroupShape group, std::int64_t all) const;
    class Buckets;
    bool isFull(GroupShape group, std::int64_t bytes) const;
    std::int64_t fullAt(ShardAxes sums) const; ///< Bytes from which on a bucket is full.
    /// Of a stage's weights that were updated, in one launch.
    struct Gathering {
        double seconds = 0;
        double perByte = 0;
    };
    Gathering gathering(const StageFigures &stage, ShardAxes sums) const;

    const Configuration &m_configuration;
    const MeshPlaces &m_places;
    const CostModel &m_costs;
    const Cluster &m_cluster;
    const PartitionProblem &m_problem;
    const double m_largest; ///< Bytes of the largest gradient of a weight.
    bool m_ahead = false; ///< What was updated is gathered as the next step begins.
    const std::vector<ShardAxes> m_sums; ///< That there are: none, those of one axis, or of two.
    BySums<GroupShape> m_groups{}; ///< Replicas, with those devices of these axes that make summands.
    BySums<GroupShape> m_inUnit{}; ///< Of one rank where there are no units.
    /// What was worked out.
    mutable std::map<std::tuple<CollectiveKind, ShardAxes, double>, double> m_launched{};
    mutable std::map<std::pair<int, ShardAxes>, WeightTraffic> m_traffic{};
    mutable BySums<std::int64_t> m_full{};
    mutable std::map<std::pair<std::vector<std::int32_t>, ShardAxes>, GroupShape> m_sharing{};
};

/// The reductions of all ranks of a configuration: the same object for ranks of the same device classes whose
/// groups lie alike.
class RankReductions
{
public:
    /// As `Reductions`. @param problemOf  of ranks of these classes
    template<typename ProblemOf>
    RankReductions(const Configuration &configuration, const MeshPlaces &places, const CostModel &costs,
        const Cluster &cluster, const ProblemOf &problemOf)
    {
        for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
            const ClassSet classes = places.classesOf(rank);
            const auto &groups = places.weightGroups[static_cast<std::size_t>(rank)];
            const auto known = std::find_if(m_different.begin(), m_different.end(),
                [&](const Different &each) { return each.classes == classes && *each.groups == groups; });
            if (known != m_different.end()) {
                m_ofRank.push_back(known->reductions.get());
                continue;
            }
            m_different.push_back({classes, &groups,
                std::make_unique<Reductions>(
                    configuration, places, costs, cluster, problemOf(classes), rank)});
            m_ofRank.push_back(m_different.back().reductions.get());
        }
    }

    const Reductions &of(std::size_t rank) const { return *m_ofRank[rank % m_ofRank.size()]; }

private:
    struct Different {
        ClassSet classes = 1;
        const std::array<GroupShape, kShardAxisSets> *groups = nullptr; ///< Of the places.
        std::unique_ptr<Reductions> reductions{};
    };
    std::vector<Different> m_different{};
    std::vector<const Reductions *> m_ofRank{};
};

} // namespace planloom
