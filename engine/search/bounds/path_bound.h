#pragma once

#include "engine/search/bounds/way_costs.h"
#include "engine/search/bounds/way_shares.h"

#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// A bound of all partitions of a pipeline's stages: no step is shorter than any one way through its blocks,
/// so none is shorter than what the mean of some ways takes under the partition that is cheapest for it.
///
/// Ways are added that are longest for one partition after the other: the cheapest for the best mean of the
/// ways so far, where who chooses the mean looks at the partitions so far alone (cutting planes: Kelley, The
/// Cutting-Plane Method for Solving Convex Programs, 1960).
class PathBound
{
public:
    /// @param least  of the same stages; @param waits  per operator, for other replicas, at least; may be
    /// empty. All must outlive it.
    PathBound(const Configuration &configuration, const PartitionProblem &problem, const StagePlan &plan,
        const Reductions &reductions, const LinkTimes &links, const std::vector<LeastStage> &least,
        const OperatorTimes &waits, bool trains);
    PathBound(const PathBound &) = delete;
    PathBound &operator=(const PathBound &) = delete;

    /// Bounds partitions that keep to limits alone, from now on: what they hold beyond is weighed against
    /// ways (the dual of both). @param limits  may be added to; must outlive it
    void keepTo(const HeldLimits &limits) { m_shares.keepTo(limits); }

    /// Adds the way that is longest for a partition.
    /// @param choice  of that partition; @param figures  of its stages; @param links  between them
    Result<void> add(const std::vector<std::int32_t> &choice, const std::vector<StageFigures> &figures,
        const std::vector<StageLink> &links);

    struct Answer {
        double bound = 0; ///< Seconds of a step; infinite where no partition keeps to the limits.
        /// The next to look at: that which is cheapest for the ways so far, or, where that was looked at, a
        /// mixture of those.
        std::vector<std::int32_t> choice{};
    };
    /// Of the ways so far, at least one. One elimination of all operators (cost_network.h).
    /// @return Cancelled if stopped
    Result<Answer> solve(const std::stop_token &stop);

private:
    /// What the mixture comes to where no operator can be partitioned in two ways: one of its partitions up
    /// to some layer, another from there on. Of those that were not looked at the one whose longest way so
    /// far is shortest.
    std::optional<std::vector<std::int32_t>> mixtureByLayers(const WayShares::Shares &shares) const;
    bool isKnown(const std::vector<std::int32_t> &choice) const;

    const BoundedStep m_step;
    const WayCosts m_costs;
    std::vector<StepWay> m_ways{};
    std::vector<MetPartition> m_partitions{}; ///< One for each way.
    WayShares m_shares{};
    int m_mixtures = 0; ///< That were looked for.
};

} // namespace planloom
