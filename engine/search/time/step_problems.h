#pragma once

#include "engine/search/memory/turn_planner.h"
#include "engine/search/partition/mesh_places.h"
#include "engine/search/partition/nested_meshes.h"
#include "engine/search/partition/partition_problem.h"
#include "engine/search/partition/placed_operators.h"
#include "engine/search/search_space.h"
#include "engine/search/stages/stage_rows.h"
#include "engine/search/time/aside_times.h"
#include "engine/search/time/link_times.h"
#include "engine/search/time/reductions.h"
#include "engine/search/time/stage_figures.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// What steps are estimated of.
struct StepSetting {
    Model model{};
    Cluster cluster{};
    std::int32_t deviceCount = 1;
    ConstraintTable rows{}; ///< Without errors.
    SearchSpace space{}; ///< Of the same rows.
    CostModel costs{};
    Plan plan{}; ///< Of one device: precisions and attentions.
    bool trains = false;
    std::map<RecomputeWord, StagePlan> recomputed{}; ///< What is computed again, without stages.

    /// How much a replica has of what is cut from ZeRO `from` on.
    double keptShare(const Configuration &configuration, std::int32_t from) const
    {
        return space.sharding.keptShare(configuration.zero, from, configuration.replicas);
    }
};

struct PartitionAnswer; // step_estimate.h

/// A partition problem, and what is known of it.
struct StepProblem {
    std::unique_ptr<PartitionProblem> network{};
    PlacedOperators placed{}; ///< What rows place.
    AsideTimes aside{};
    /// By how far replicas are apart.
    std::map<std::pair<std::int32_t, RecomputeWord>, double> likelyAside{};
    std::optional<Error> error{}; ///< Why there is none, or none that can be solved.
    std::map<PartitionPricing, std::shared_ptr<const PartitionAnswer>> answers{};
    std::optional<std::vector<std::shared_ptr<const PartitionAnswer>>> usual{};
    WeightBytes leastWeights{};
    std::map<RecomputeWord, double> leastKept{}; ///< Bytes of a micro-batch.
    std::map<RecomputeWord, double> leastAgain{}; ///< Seconds of what a micro-batch computes again.
    std::map<std::int32_t, double> leastWaits{}; ///< For other replicas; by how far they are apart.
    std::map<const TurnUnits *, std::unique_ptr<TurnPlanner>> planners{};
    double leastWay = 0; ///< Of a micro-batch without gradients of weights; where it is asked for.
};

/// The partition problems that configurations lead to: one for every number of shards and of pieces of the
/// batch, and for every class of devices. For one thread.
class StepProblems
{
public:
    explicit StepProblems(const StepSetting &setting); ///< Must outlive it.
    StepProblems(const StepProblems &) = delete;
    StepProblems &operator=(const StepProblems &) = delete;

    /// A search begins, which may spend as much as any on finding partitions.
    void beginSearch() { m_work = {}; }

    const MeshPlaces &placesOf(const Configuration &configuration) const;
    /// At the least that any class of its devices takes: what no partition is below. The same as of one class
    /// where all devices are of it.
    /// @return InvalidInput where rows leave no partition
    Result<StepProblem *> of(const Configuration &configuration);
    bool has(const Configuration &configuration) const { return m_problems.contains(keyOf(configuration)); }
    /// One that was made.
    const StepProblem &made(const Configuration &configuration) const
    {
        return m_problems.at(keyOf(configuration));
    }
    StepProblem &made(const Configuration &configuration) { return m_problems.at(keyOf(configuration)); }

    /// Of the class among these that is slowest.
    Result<const PartitionProblem *> slowestOf(const Configuration &configuration, ClassSet classes);
    /// What operators take on devices of these classes: of each the slowest.
    Result<OperatorTimes> slowestTimes(
        const Configuration &configuration, ClassSet classes, const std::vector<std::int32_t> &choice);
    Result<RankReductions> reductionsOf(const Configuration &configuration);
    /// @param configuration  must outlive it
    LinkTimes linksOf(const Configuration &configuration) const
    {
        return {configuration, placesOf(configuration), m_setting.costs, m_setting.cluster};
    }
    /// Seconds that a micro-batch's operators wait for other replicas (statistics of the whole batch); empty
    /// without any.
    /// @param shares  by tensor: how much of it a device has
    OperatorTimes replicaTimes(const Configuration &configuration, const std::vector<double> &shares);
    Result<StageRows> stageRowsFor(const Configuration &configuration) const;
    /// How many devices a second axis of `shards` may have so that it helps: `NestedMeshes::outerShards`.
    std::vector<std::int32_t> outerShardsFor(std::int32_t shards);

private:
    struct Bound { ///< Rows read with a mesh.
        std::unique_ptr<BoundTable> table{};
        std::optional<Error> error{};
    };
    /// By shards, replicas, micro-batches, ranks where rows are read with a mesh, shards of the outer axis,
    /// and classes of devices.
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, ClassSet>;
    /// By replicas, ranks, shards, those of the outer axis, whether ranks are outside, and its first device.
    using MeshKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, bool, std::int32_t>;
    static MeshKey meshKeyOf(const Configuration &configuration)
    {
        return {configuration.replicas, configuration.ranks, configuration.shards, configuration.outerShards,
            configuration.ranksOutside, configuration.firstDevice};
    }
    Key keyOf(const Configuration &configuration) const;
    Key keyOf(const Configuration &configuration, ClassSet classes) const;
    Result<StepProblem *> of(const Configuration &configuration, ClassSet classes);
    Result<void> make(const Configuration &configuration, ClassSet classes, StepProblem &problem);
    /// Rows read with the mesh of a configuration; null where none speaks of operators.
    Result<const BoundTable *> boundFor(const Configuration &configuration);
    AxisSetting axisSetting(ClassSet classes); ///< Without axes.
    const CostModel &costsOf(ClassSet classes);
    ShardGroups shardGroups(const Configuration &configuration, ClassSet classes) const;
    AxisParts partsLike(const MeshPlaces &places, const Configuration &configuration, const GroupShape &whole,
        const std::function<GroupShape(GroupShape, GroupShape)> &slower) const;

    const StepSetting &m_setting;
    const StorageTypes m_types; ///< Of the setting's plan.
    const std::shared_ptr<const std::vector<std::int32_t>> m_alike; ///< See `alikeOperators`.
    const std::shared_ptr<const std::vector<bool>> m_joins; ///< See `summandJoins`.
    const StageRows m_stageRows;
    NetworkWork m_work{}; ///< Of the search that it is used for.
    std::map<ClassSet, CostModel> m_leastCosts{}; ///< See `costsOf`; of several classes.
    mutable std::map<MeshKey, MeshPlaces> m_places{};
    std::map<MeshKey, Bound> m_bounds{};
    std::map<Key, StepProblem> m_problems{};
    /// Over the replicas' axis, by how far apart they are: of a problem where operators are placed apart.
    std::map<std::pair<Key, std::int32_t>, std::unique_ptr<PartitionProblem>> m_replicas{};
    std::optional<NestedMeshes> m_nested{}; ///< Where it was asked for.
};

} // namespace planloom
