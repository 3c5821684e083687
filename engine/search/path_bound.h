#pragma once

#include "engine/search/least_stages.h"
#include "engine/search/reductions.h"

#include <array>
#include <stop_token>
#include <vector>

namespace planloom {

/// A bound of all partitions of a pipeline's stages: no step is shorter than any one way through its blocks,
/// so none is shorter than what the mean of some ways takes under the partition that is cheapest for it.
///
/// Ways are added that are longest for one partition after the other (the cheapest for the ways so far), as
/// in fictitious play between who chooses the way and who chooses the partition (Brown, 1951).
class PathBound
{
public:
    /// @param least  of the same stages; @param waits  per operator, for other replicas, at least; may be
    /// empty. All must outlive it.
    PathBound(const Configuration &configuration, const PartitionProblem &problem, const StagePlan &plan,
        const Reductions &reductions, const std::vector<LeastStage> &least, const OperatorTimes &waits,
        bool trains);

    /// Adds the way that is longest for a partition.
    /// @param figures  of its stages; @param links  between them
    Result<void> add(const std::vector<StageFigures> &figures, const std::vector<StageLink> &links);

    struct Answer {
        double bound = 0; ///< Seconds of a step.
        std::vector<std::int32_t> choice{}; ///< That is cheapest for the ways so far.
    };
    /// Of the ways so far, at least one. One elimination of all operators (cost_network.h).
    /// @return Cancelled if stopped
    Result<Answer> solve(const std::stop_token &stop) const;

private:
    /// How often each of a stage's doings lies on the ways, in the mean.
    struct Weights : StageVisits {
        double gathering = 0; ///< In place of a forward pass that takes less (ZeRO-3).
        double reducing = 0; ///< In place of a backward pass that takes less (ZeRO-2 and 3).
        double reduction = 0; ///< At the end of a step, as the next two.
        double update = 0;
        double gather = 0;
    };
    double ownSeconds(std::size_t op, const OperatorChoice &choice, const Weights &weights) const;
    bool hasTraffic(std::size_t op) const;
    static const std::array<double Weights::*, 8> kParts;
    struct Way {
        std::vector<Weights> stages{};
        std::vector<SendVisits> sends{};
        double constant = 0; ///< Seconds that do not depend on the partition.
        /// The operator, if not -1, whose gradients of weights the last backward block (or pass for them) of
        /// its stage makes last on this way: reductions of those, and of what comes behind, follow.
        std::int32_t behind = -1;
        bool behindAll = false; ///< That is all that the block does.
        bool asOne = false; ///< They are reduced as if in one launch.
    };
    void addReductions(const Way &way, double counts);
    void addGathering(std::int32_t reader, double counts);
    Way longestWayOf(const std::vector<StageFigures> &figures, const PipelineTime &played,
        const std::vector<PlayedBlock> &blocks) const;

    const Configuration &m_configuration;
    const PartitionProblem &m_problem;
    const StagePlan &m_plan;
    const Reductions &m_reductions;
    const OperatorTimes &m_waits;
    const bool m_trains;
    const bool m_splits;
    std::vector<Weights> m_sum{}; ///< Of all ways, by stage.
    /// By operator, of all ways: times its backward pass counts in a last block, or what it makes for
    /// weights.
    std::vector<double> m_lastPass{};
    std::vector<double> m_firstPass{}; ///< Likewise its forward pass in a first block.
    std::vector<double> m_reduced{}; ///< By tensor, of all ways: reductions of weights behind the former,
    std::vector<double> m_reducedAsOne{}; ///< in one launch,
    std::vector<double> m_gathered{}; ///< and gathering of weights before the latter.
    struct Read {
        std::int32_t reader = -1; ///< The first forward operator of the stage that reads it.
        TensorId weight{};
        bool isLast = false; ///< Its gradient is complete in the stage's last block.
    };
    std::vector<std::vector<Read>> m_read{}; ///< By stage: weights.
    double m_constant = 0; ///< Of all ways: what does not depend on the partition.
    std::vector<StageSend> m_leastSends{};
    std::vector<double> m_leastBehind{}; ///< By rank: what is left of its reductions at least,
    std::vector<double> m_leastShared{}; ///< and when all ranks are done.
    double m_count = 0; ///< Of ways.
    double m_total = 0; ///< Of what they count for.
    std::vector<std::size_t> m_charged{}; ///< By meeting: the reader that waits for it.
    std::vector<std::int32_t> m_readers{}; ///< By tensor: slots of forward operators that read it.
    std::vector<bool> m_isShared{}; ///< By tensor: several stages do.
};

} // namespace planloom
