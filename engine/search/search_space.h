#pragma once

#include "engine/base/result.h"
#include "engine/binding/bound_table.h"
#include "engine/hardware/cluster.h"
#include "engine/search/partition/shard_layout.h"
#include "engine/search/partition/sharding_choice.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What the backward pass computes again, where no row says.
enum class RecomputeWord : std::uint8_t { None, Selective, Full };
const char *nameOf(RecomputeWord word); ///< "none", "selective", "full": as `recomputeRow` takes it.

/// The devices of one stage, where stages differ in how many they have: they follow one another. Replicas are
/// the outer ones of them.
struct StageGroup {
    std::int32_t first = 0; ///< Device of the cluster.
    std::int32_t replicas = 1;
    std::int32_t shards = 1;
    friend auto operator<=>(const StageGroup &, const StageGroup &) = default;

    std::int32_t devices() const { return replicas * shards; }
};

/// What a plan decides apart from how single operators are partitioned.
struct Configuration {
    std::int32_t replicas = 1; ///< Parts of the batch on devices of their own (dp).
    std::int32_t ranks = 1; ///< Of the pipeline (pp).
    std::int32_t shards = 1; ///< Devices that share an operator's work (tp).
    std::int32_t stagesPerRank = 1;
    std::int32_t microBatches = 1;
    ScheduleKind schedule = ScheduleKind::Sequential;
    std::int32_t zero = 0; ///< As `OptimizerShardingRule::stage`; 0 is none.
    RecomputeWord recompute = RecomputeWord::None;
    /// The pipeline's axis is the outermost: the devices of a rank lie together, those of a replica do not.
    bool ranksOutside = false;
    /// Of a second axis of the devices that share an operator's work, outside of the first in the mesh;
    /// divides `shards`.
    std::int32_t outerShards = 1;
    std::int32_t firstDevice = 0; ///< Of the mesh, which the others of the cluster follow.
    /// By stage, where they differ in their devices (unequal_stages.h): then there is no mesh, `ranks` is
    /// their number, and there is one replica and one shard. Empty elsewhere.
    std::vector<StageGroup> groups{};
    /// Layers that are computed again may take turns part by part (coshard), those that would not fit else:
    /// found by the search beside the space's others.
    bool inTurns = false;
    friend auto operator<=>(const Configuration &, const Configuration &) = default;

    std::int32_t batchCuts() const { return replicas * microBatches; }
    /// From this `zero` on gradients are cut as they come; those of a single micro-batch as they are reduced.
    std::int32_t gradientsCutFrom() const { return microBatches == 1 ? 1 : 2; }
    std::int32_t stages() const { return ranks * stagesPerRank; }
    std::int32_t devices() const; ///< That it uses.
    bool isUnequal() const { return !groups.empty(); }
    /// Of an unequal one, what its stage `s` is by itself: the mesh of its devices, without other ranks.
    Configuration ofStage(std::size_t s) const;
    std::int32_t innerShards() const { return shards / outerShards; }
    /// The axes over which weights' gradients may be summed up: none, and those that there are.
    std::vector<ShardAxes> shardSums() const;
};
/// "dp 2, pp 2, tp 2, 8 micro-batches, 1f1b, zero1, recompute full"; "tp 2x4" over two axes, the outer one
/// first, whatever they are called; "stages on 4, 2 (tp 2) devices" where they differ.
std::string toString(const Configuration &configuration);

/// What it has of a degree; nothing for those of operators (see ChoiceFinder).
std::optional<std::int32_t> degreeOf(const Configuration &configuration, Degree degree);

/// What a table leaves to the search.
struct SearchSpace {
    /// Every combination that the batch, the devices and the rows allow, the simplest first; of very many
    /// those that are likely to be best.
    std::vector<Configuration> configurations{};
    /// Names of the mesh's axes by role; those of a mesh row where there is one.
    std::string replicaAxis = "dp";
    std::string rankAxis = "pp";
    std::string shardAxis = "tp";
    std::string outerShardAxis = "cp"; ///< As the gallery calls what lies outside of "tp".
    bool ownMesh = false; ///< A row gives the mesh.
    /// Of the row's axes, the outermost first; shards twice where they have two axes.
    std::vector<AxisRole> ownOrder{AxisRole::Replicas, AxisRole::Ranks, AxisRole::Shards};
    bool ownMicroBatches = false; ///< As the next two: a row says.
    /// Rows leave open which devices each stage has, and how operators are cut: stages may differ in both.
    bool leavesGroups = false;
    ShardingLeft sharding{}; ///< What rows leave of ZeRO.
    bool ownRecompute = false;
    std::vector<LimitRule> trafficLimits{}; ///< Of what devices or links carry in a step.
    std::int64_t memoryLimit = 0; ///< Bytes of each device: its own, or less where a row says.
};

/// The axes of a configuration's mesh, the outermost first; shards twice where they have two axes.
std::vector<AxisRole> axisOrder(const Configuration &configuration, const SearchSpace &space);
/// The row that makes that mesh; without axes where it is of one device.
MeshRule meshRule(const Configuration &configuration, const SearchSpace &space);

/// Numbers of shards that cut more of the model's work than any smaller number does: dimensions divide by
/// them. Work is counted in points of the operators' index spaces. O(operators x `most`).
std::vector<std::int32_t> usefulShards(const Model &model, std::int32_t most);

/// Whether every operator that has the batch can be cut into so many.
bool batchDivides(const Model &model, std::int64_t cuts);

/// Why the search has nothing to decide: rows ask for what it does not price, or the mesh has axes that it
/// does not know what to do with: over more than two that share operators' work, apart from those of one
/// device. Nothing if it has.
std::optional<std::string> nothingToSearch(const Model &model, const ConstraintTable &rows);

/// Reads what `rows` fix: mesh, micro-batches, schedule, sharding, recomputation, limits.
/// @return InvalidInput if they leave no combination at all
Result<SearchSpace> searchSpaceOf(
    const Model &model, const Cluster &cluster, std::int32_t deviceCount, const ConstraintTable &rows);

} // namespace planloom
