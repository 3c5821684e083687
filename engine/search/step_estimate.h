#pragma once

#include "engine/search/search_space.h"
#include "engine/search/stage_figures.h"
#include "engine/search/stage_rows.h"
#include "engine/search/usual_partitions.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

namespace planloom {

/// How the operators of a model are partitioned over the shards' axis, the cheapest way at a price of memory.
struct PartitionAnswer {
    std::vector<std::int32_t> choice{}; ///< By forward operator.
    OperatorTimes times{};
    double seconds = 0; ///< Of a micro-batch, all operators, both passes.
    double weightGradients = 0; ///< Of those, what makes gradients of weights, at most.
    /// No partition costs less: seconds of a micro-batch with its part of what the weights take in a step, at
    /// the prices of the search but for memory's; 0 where memory had one.
    double bound = 0;
    bool exact = true;
};

/// Multipliers of what a partition is not to take too much of (Lagrangian relaxation).
struct SearchPrices {
    double memory = 0; ///< Seconds that a device full of memory costs.
    double reductions = 0; ///< Of seconds that reductions of gradients take: how many count.
    friend auto operator<=>(const SearchPrices &, const SearchPrices &) = default;
};

/// A configuration with the best that was found for it.
struct StepEstimate {
    Configuration configuration{};
    double seconds = 0; ///< In the search's model.
    double bound = 0; ///< No plan of this configuration takes less, in that model.
    std::int64_t peakBytes = 0; ///< Of the fullest device.
    std::shared_ptr<const PartitionAnswer> partition{};
    std::shared_ptr<const StagePlan> stages{};
};

/// Prices configurations. Partitions are found once for every number of shards and of pieces of the batch,
/// stages once for every number of them.
class StepEstimator
{
public:
    /// @param rows  without errors; @param space  of the same rows
    static Result<std::unique_ptr<StepEstimator>> make(const Model &model, const Cluster &cluster,
        std::int32_t deviceCount, const ConstraintTable &rows, const SearchSpace &space,
        const CostModel &costs, PrecisionPreset precision);

    /// @param prices  what partitions are searched at
    /// @return InvalidInput where it cannot be planned so, with the reason
    Result<StepEstimate> estimate(
        const Configuration &configuration, SearchPrices prices, const std::stop_token &stop);
    /// The configuration with the partitions that people use, where rows allow them: plans that the search
    /// would else find only by chance, since its model tells plans of nearly equal cost not apart.
    Result<std::vector<StepEstimate>> estimateUsual(
        const Configuration &configuration, const std::stop_token &stop);
    /// The configuration with the partition that `choice` makes (of `problemOf`, by forward operator),
    /// without a bound.
    Result<StepEstimate> estimateWith(const Configuration &configuration, std::vector<std::int32_t> choice);
    /// What no plan of the configuration is below; cheap.
    Result<double> boundOf(const Configuration &configuration, const std::stop_token &stop);

    /// No less than `boundOf`: that of stages that take equally long, which few partitions get below.
    Result<double> likelyBoundOf(const Configuration &configuration, const std::stop_token &stop);
    /// Bytes that some device holds at least, whatever the partition and the stages: weights with their
    /// states, and what one micro-batch keeps, spread over all ranks. Cheap.
    Result<std::int64_t> leastPeakOf(const Configuration &configuration);

    const PartitionProblem &problemOf(const Configuration &configuration) const;

private:
    struct Bound { ///< Rows read with a mesh.
        std::unique_ptr<BoundTable> table{};
        std::optional<Error> error{};
    };
    struct Problem {
        Plan plan{}; ///< For its micro-batches.
        std::unique_ptr<PartitionProblem> network{};
        std::optional<Error> error{}; ///< Why there is none, or none that can be solved.
        std::map<PartitionPricing, std::shared_ptr<const PartitionAnswer>> answers{};
        std::optional<std::vector<std::shared_ptr<const PartitionAnswer>>> usual{};
        WeightBytes leastWeights{};
        std::map<RecomputeWord, double> leastKept{}; ///< Bytes of a micro-batch.
        std::map<RecomputeWord, double> leastAgain{}; ///< Seconds of what a micro-batch computes again.
        double leastWaits = 0; ///< Seconds that a micro-batch waits for other replicas.
    };
    using ProblemKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>; ///< See `keyOf`.

    StepEstimator() = default;
    ProblemKey keyOf(const Configuration &configuration) const;
    /// @return InvalidInput where rows leave no partition
    Result<Problem *> problem(const Configuration &configuration);
    Result<void> makeProblem(const Configuration &configuration, Problem &problem);
    std::shared_ptr<PartitionAnswer> answerOf(const Configuration &configuration,
        std::vector<std::int32_t> choice, const PartitionProblem &problem);
    /// Without a bound.
    Result<StepEstimate> assess(
        const Configuration &configuration, std::shared_ptr<const PartitionAnswer> partition);
    Result<std::shared_ptr<const PartitionAnswer>> partition(
        const Configuration &configuration, SearchPrices prices, const std::stop_token &stop);
    /// Seconds that a micro-batch's operators wait for other replicas (statistics of the whole batch); empty
    /// without any.
    /// @param shares  by tensor: how much of it a device has
    OperatorTimes replicaTimes(const Configuration &configuration, const std::vector<double> &shares);
    Result<std::shared_ptr<const StagePlan>> stages(
        const Configuration &configuration, const std::shared_ptr<const PartitionAnswer> &answer);
    /// @param answer  at a price of reductions, of nothing else; @param fastest  at none
    double boundOf(const Configuration &configuration, const PartitionAnswer &answer,
        const PartitionAnswer &fastest) const;
    PartitionPricing pricingOf(
        const Configuration &configuration, SearchPrices prices, const PartitionProblem &problem) const;
    GroupShape shardGroup(const Configuration &configuration) const;

    Model m_model{};
    Cluster m_cluster{};
    std::int32_t m_deviceCount = 1;
    ConstraintTable m_rows{};
    SearchSpace m_space{};
    CostModel m_costs{};
    Plan m_plan{}; ///< Of one device: precisions and attentions.
    std::unique_ptr<StorageTypes> m_types{};
    std::shared_ptr<const std::vector<std::int32_t>> m_alike{}; ///< See `alikeOperators`.
    bool m_trains = false;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Bound> m_bounds{};
    std::map<ProblemKey, Problem> m_problems{};
    std::map<std::int32_t, std::vector<UsualPartition>> m_usual{}; ///< By shards.
    std::map<std::pair<std::int32_t, std::int32_t>, std::unique_ptr<PartitionProblem>>
        m_replicas{}; ///< Over the replicas' axis, by replicas and micro-batches.
    using Answer = std::shared_ptr<const PartitionAnswer>;
    /// By stages and, where rows speak of devices, ranks.
    std::map<std::tuple<Answer, std::int32_t, std::int32_t, RecomputeWord>, std::shared_ptr<const StagePlan>>
        m_stages{};
    std::map<std::pair<Answer, std::shared_ptr<const StagePlan>>, std::vector<StageFigures>> m_figures{};
    std::map<RecomputeWord, StagePlan> m_recomputed{}; ///< Without stages.
    StageRows m_stageRows{};
};

} // namespace planloom
