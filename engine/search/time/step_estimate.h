#pragma once

#include "engine/search/bounds/path_bound.h"
#include "engine/search/partition/usual_partitions.h"
#include "engine/search/stages/stages_beside.h"
#include "engine/search/time/step_problems.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <tuple>
#include <vector>

namespace planloom {

/// How the operators of a model are partitioned over the shards' axes, the cheapest way at a price of memory.
struct PartitionAnswer {
    std::vector<std::int32_t> choice{}; ///< By forward operator.
    OperatorTimes times{}; ///< Without what replicas wait for one another, as the next.
    double seconds = 0; ///< Of a micro-batch, all operators, both passes.
    /// No partition costs less: seconds of a micro-batch with its part of what the weights take in a step, at
    /// the price of reductions that it was searched at.
    double bound = 0;
    bool exact = true;
    double squaredEntries = 0; ///< As `NetworkAnswer`.
};

/// A configuration with the best that was found for it.
struct StepEstimate {
    Configuration configuration{};
    double seconds = 0; ///< In the search's model.
    /// Of these, no less than what operators placed apart make the step longer: bounds leave them out.
    double aside = 0;
    double bound = 0; ///< No plan of this configuration takes less, in that model.
    std::int64_t peakBytes = 0; ///< Of the fullest device.
    std::vector<std::int64_t> rankPeaks{}; ///< Of each rank's devices.
    std::vector<std::int64_t> rankHeld{}; ///< Likewise without what passes.
    std::vector<StageHeld> heldBy{}; ///< By stage: what they hold then.
    std::shared_ptr<const PartitionAnswer> partition{};
    /// In place of that where stages have groups of devices of their own: by stage, of its configuration's
    /// problem.
    std::vector<std::shared_ptr<const PartitionAnswer>> byStage{};
    std::shared_ptr<const StagePlan> stages{};
};

/// Prices configurations. Partitions are found once for every number of shards and of pieces of the batch,
/// stages once for every number of them: where they balance the fastest partition.
class StepEstimator
{
public:
    /// @param rows  without errors; @param space  of the same rows
    /// @param usual  of the model, to be shared by the estimators of different rows; null: its own
    static Result<std::unique_ptr<StepEstimator>> make(const Model &model, const Cluster &cluster,
        std::int32_t deviceCount, const ConstraintTable &rows, const SearchSpace &space,
        const CostModel &costs, PrecisionPreset precision, std::shared_ptr<UsualPartitions> usual = {});

    /// A search begins, which may spend as much as any on finding partitions.
    void beginSearch() { m_problems.beginSearch(); }

    /// @param reductions  price of a second that reductions of gradients take, at which partitions are
    /// searched: 0 or 1
    /// @return InvalidInput where it cannot be planned so, with the reason
    Result<StepEstimate> estimate(
        const Configuration &configuration, double reductions, const std::stop_token &stop);
    /// The configuration with the fastest partition that is found to hold no more than `limit` bytes on any
    /// device; if there is none, with one that holds as little as may be. The bound is that of plans that
    /// hold no more than that: it is infinite where it is proven that there are none.
    Result<StepEstimate> estimateWithin(
        const Configuration &configuration, std::int64_t limit, const std::stop_token &stop);
    /// The configuration with the partitions that people use, where rows allow them: plans that the search
    /// would else find only by chance, since its model tells plans of nearly equal cost not apart.
    Result<std::vector<StepEstimate>> estimateUsual(
        const Configuration &configuration, const std::stop_token &stop);
    /// The configuration with the partition that `choice` makes (of `problemOf`, by forward operator),
    /// without a bound.
    Result<StepEstimate> estimateWith(const Configuration &configuration, std::vector<std::int32_t> choice);
    /// How many devices a second axis of `shards` may have so that it helps: `NestedMeshes::outerShards`.
    std::vector<std::int32_t> outerShardsFor(std::int32_t shards)
    {
        return m_problems.outerShardsFor(shards);
    }
    /// About how large all tables are in which the configuration's partition is found: of one with a second
    /// shard axis, from its like with one.
    Result<double> nestedEntriesOf(const Configuration &configuration, const std::stop_token &stop);
    /// Seconds that a rank computes at least, whatever is communicated; found without a partition.
    Result<double> kernelBoundOf(const Configuration &configuration);
    /// What no plan of the configuration is below; cheap.
    Result<double> boundOf(const Configuration &configuration, const std::stop_token &stop);

    /// What no partition of a configuration goes below.
    struct StagedBound {
        double seconds = 0;
        std::int64_t peakBytes = 0; ///< Of the fullest device.
    };
    /// No less than `boundOf` and `stagedPeakOf`, of the stages that the configuration's partitions share:
    /// their least times played (least_stages.h). Worth its time where those are not enough.
    Result<StagedBound> stagedBoundOf(const Configuration &configuration, const std::stop_token &stop);

    /// Looks at one more partition of a configuration for the sake of its bound (path_bound.h): first at the
    /// fastest, then at the one that is cheapest for what was looked at. The estimate is that of the
    /// partition, its bound that of all that hold no more than `limit` bytes on any device.
    Result<StepEstimate> estimateAlongPaths(
        const Configuration &configuration, std::int64_t limit, const std::stop_token &stop);

    /// No less than `boundOf`: that of stages that take equally long, which few partitions get below.
    Result<double> likelyBoundOf(const Configuration &configuration, const std::stop_token &stop);
    /// Bytes that some device holds at least, whatever the partition and the stages: weights with their
    /// states, and what one micro-batch keeps, spread over all ranks. Cheap.
    Result<std::int64_t> leastPeakOf(const Configuration &configuration);
    /// Bytes of one copy of all weights with their states: what devices that share them hold together.
    Result<std::int64_t> weightBytesOfAll();

    /// Likewise of the stages that all its partitions share.
    Result<std::int64_t> stagedPeakOf(const Configuration &configuration, const std::stop_token &stop);

    /// Whether rows leave the configuration no other stages.
    bool stagesAreDecided(const Configuration &configuration) const;
    /// Stages, between layers and anywhere, that end early (`stagesEndingEarly`): of a plan whose ranks have
    /// a stage each, and so few micro-batches that when a stage ends is not how long it takes.
    std::vector<std::vector<std::int32_t>> stagesEndingEarly(const StepEstimate &estimate) const;

    /// Whether all ranks together have room for what every partition holds, though some have not.
    bool mayFitWithOtherStages(const Configuration &configuration, const std::stop_token &stop);

    /// Whether computing something again may be needed for its plans to fit: not where a device could hold
    /// all weights, unsharded, and all that its part of the batch keeps. Cheap.
    bool mayNeedRecompute(const Configuration &configuration, const std::stop_token &stop);

    /// Plans whose stages have groups of devices of their own, of different sizes (unequal_stages.h), that
    /// are faster than `best`, a plan without, and fit; without bounds. What is computed again and sharded is
    /// as in that plan, or sharded less. For the numbers of micro-batches that are most promising, where rows
    /// leave such groups.
    Result<std::vector<StepEstimate>> unequalPlans(const StepEstimate &best, const std::stop_token &stop);
    /// Whether layers of the configuration that are computed again could take turns, which is then for
    /// `Configuration::inTurns`: rows leave it what is computed again, its backward passes are not split, and
    /// all devices are alike.
    bool mayTakeTurns(const Configuration &configuration);

    const PartitionProblem &problemOf(const Configuration &configuration) const
    {
        return *m_problems.made(configuration).network;
    }
    /// What rows place, of the same.
    const PlacedOperators &placedIn(const Configuration &configuration) const
    {
        return m_problems.made(configuration).placed;
    }

private:
    struct Paths { ///< What a `PathBound` is of.
        Configuration configuration{};
        std::shared_ptr<const StagePlan> plan{};
        OperatorTimes waits{};
        std::unique_ptr<Reductions> reductions{};
        std::unique_ptr<PathBound> bound{};
        std::unique_ptr<HeldLimits> limits{}; ///< Not null where some partition held too much.
        std::shared_ptr<const PartitionAnswer> next{}; ///< The partition to look at.
    };

    StepEstimator(StepSetting setting, std::shared_ptr<UsualPartitions> usual);
    static Result<std::map<RecomputeWord, StagePlan>> recomputedIn(const StepSetting &setting);
    Result<const std::vector<LeastStage> *> least(
        const Configuration &configuration, const std::stop_token &stop);
    /// @param plan  of a configuration of that problem
    const std::vector<LeastStage> &leastHeldOf(
        const PartitionProblem &problem, const std::shared_ptr<const StagePlan> &plan);
    /// Bytes that are held for a moment beside what operators pass on. @param stage  figures, or what is
    /// least
    template<typename Stage> auto passingBeside(const Configuration &configuration, const Stage &stage) const
    {
        return (m_setting.trains ? stage.madeBytes : 0)
            + (configuration.zero >= configuration.gradientsCutFrom() ? stage.castBytes : 0)
            + (configuration.zero >= 3 ? stage.gatheredBytes : 0);
    }
    /// By rank: bytes that its devices hold at least, without what passes.
    Result<std::vector<double>> leastOfRanks(
        const Configuration &configuration, const std::shared_ptr<const StagePlan> &plan);
    Result<Paths *> pathsOf(
        const Configuration &configuration, std::int64_t limit, const std::stop_token &stop);
    /// Has what is bounded along ways keep to what a partition does not.
    Result<void> keepToLimit(Paths &paths, const StepEstimate &estimate, std::int64_t limit);
    /// How much of a gradient that is added up, or cut as it comes, a replica holds.
    double keptOfGradients(const Configuration &configuration) const
    {
        return m_setting.keptShare(configuration, configuration.gradientsCutFrom());
    }
    /// What operators hold, without stages.
    HeldPricing heldPricing(
        const Configuration &configuration, const std::shared_ptr<const StagePlan> &plan) const;
    /// What is left of a limit, by rank: beside what passes for a moment in every partition, for what is
    /// held, and for what passes beside what every partition holds.
    struct HeldRoom {
        std::vector<double> held{};
        std::vector<double> passing{};
        bool isRoom = true; ///< There may be a partition within the limit.
    };
    Result<HeldRoom> heldRoom(
        const Configuration &configuration, const std::shared_ptr<const StagePlan> &plan, std::int64_t limit);
    Result<void> findLeastWay(const Configuration &configuration, const std::stop_token &stop);
    /// Of a device: weights and their states, as one replica has them, sharded as the configuration says,
    double weightBytes(const Configuration &configuration, double model, double state) const;
    /// and their gradients. In a single micro-batch they are cut as they are reduced.
    double gradientBytes(const Configuration &configuration, double whole) const;
    OperatorTimes leastWaits(const Configuration &configuration);
    /// That a micro-batch waits for other replicas at least. Its problem must have been made.
    double secondsOfWaits(const Configuration &configuration);
    const MeshPlaces &placesOf(const Configuration &configuration) const
    {
        return m_problems.placesOf(configuration);
    }
    /// Seconds that operators placed apart likely make a micro-batch longer: beside the fastest partition, as
    /// if all stages were the first.
    Result<double> asideOf(const Configuration &configuration, const PartitionAnswer &fastest);
    /// How many of the fastest ranks do what all of them do.
    Result<double> capacityOf(const Configuration &configuration);
    struct Figures {
        std::vector<StageFigures> stages{};
        std::vector<StageLink> links{};
        double aside = 0; ///< Seconds of a micro-batch: as `StepEstimate::aside`.
    };
    /// @param aside  with operators placed apart, and what is sent to them and back
    Result<Figures> figuresOf(const Configuration &configuration, const PartitionAnswer &partition,
        const StagePlan &stages, bool aside);
    Result<StageMeasure> measureOf(
        const Configuration &configuration, const PartitionAnswer &answer, const StagePlan &plan);
    static std::shared_ptr<PartitionAnswer> answerOf(
        std::vector<std::int32_t> choice, const PartitionProblem &problem);
    /// Without a bound; with as many turns as memory needs, whatever `stages` has, where the configuration
    /// may take some. @param stages  null: those that all partitions of the configuration share
    Result<StepEstimate> assess(const Configuration &configuration,
        std::shared_ptr<const PartitionAnswer> partition, std::shared_ptr<const StagePlan> stages = {});
    /// With the turns that `stages` has.
    Result<StepEstimate> assessAsPlanned(const Configuration &configuration,
        std::shared_ptr<const PartitionAnswer> partition, std::shared_ptr<const StagePlan> stages);
    /// Units that can take turns; null without.
    const std::shared_ptr<const TurnUnits> &turnUnitsOf(RecomputeWord word);
    TurnPlanner &plannerOf(const Configuration &configuration, const TurnUnits &units);
    /// The same stages, all at once. @param stages  not null
    std::shared_ptr<const StagePlan> withoutTurns(const std::shared_ptr<const StagePlan> &stages);
    Result<std::shared_ptr<const PartitionAnswer>> partition(
        const Configuration &configuration, double reductions, const std::stop_token &stop);
    Result<std::shared_ptr<PartitionAnswer>> cheapest(
        const StepProblem &own, const PartitionPricing &pricing, const std::stop_token &stop);
    /// Balanced by what the partition that is fastest at no price takes: the same for all partitions.
    Result<std::shared_ptr<const StagePlan>> stages(
        const Configuration &configuration, const std::stop_token &stop);
    struct LeastWork { ///< Of all operators for a micro-batch.
        double seconds = 0;
        bool hidesRest = false; ///< What reductions may be hidden behind was taken off: at a price of them.
    };
    /// @param fastest  at no price
    double boundOf(const Configuration &configuration, const LeastWork &work, const PartitionAnswer &fastest);
    PartitionPricing pricingOf(
        const Configuration &configuration, double reductions, const PartitionProblem &problem) const;
    class Within;
    class Unequal;
    const StepSetting m_setting;
    StepProblems m_problems;
    const StagesBeside m_beside;
    std::shared_ptr<UsualPartitions> m_usual{};
    using Answer = std::shared_ptr<const PartitionAnswer>;
    using Stages = std::shared_ptr<const StagePlan>;
    /// By stages, where rows speak of devices by ranks, and where device classes differ by those of the
    /// ranks.
    std::map<std::tuple<Answer, std::int32_t, std::int32_t, RecomputeWord, std::vector<ClassSet>, bool>,
        Stages>
        m_stages{}; ///< And by whether they may take turns.
    std::map<Stages, Stages> m_atOnce{}; ///< Of stages that take turns those that do not.
    std::map<std::tuple<Answer, Stages, std::vector<std::int32_t>>, Stages> m_inTurns{}; ///< The other way.
    std::map<RecomputeWord, std::shared_ptr<const TurnUnits>> m_units{}; ///< Where they were asked for.
    std::map<std::tuple<Answer, Stages, std::int32_t>, Figures>
        m_figures{}; ///< And how far replicas are apart.
    std::map<std::tuple<Stages, bool, bool>, std::vector<LeastStage>>
        m_least{}; ///< By whether the backward pass is split, and whether gradients add up.
    std::map<Stages, std::vector<LeastStage>> m_leastHeld{};
    std::map<std::pair<Configuration, std::int64_t>, Paths> m_paths{}; ///< And limit of memory.
    struct Whole { ///< Bytes of the step on one device.
        double kept = 0; ///< Of the whole batch.
        double rest = 0; ///< Weights, gradients, states, and what passes.
    };
    std::optional<Whole> m_whole{};
};

} // namespace planloom
