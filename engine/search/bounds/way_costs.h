#pragma once

#include "engine/search/bounds/way_sends.h"
#include "engine/search/bounds/way_weights.h"

#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// A mean of some ways.
struct WayMean {
    std::vector<StageCounts> stages;
    /// By operator: times its backward pass counts in a last block, or what it makes for weights.
    std::vector<double> lastPass;
    /// Likewise its forward pass in a first block, less where a block waits for what it reads later alone,
    std::vector<double> firstPass;
    std::vector<double> skipped; ///< and its backward pass, without what it makes for weights.
    WeightCounts weights;
    std::map<std::size_t, std::vector<SentOn>> sent{}; ///< By the operator that makes it.
    double constant = 0; ///< What does not depend on the partition.
};

/// A partition, and what it communicates: seconds by meeting, forward and backward.
struct MetPartition {
    std::vector<std::int32_t> choice{};
    std::vector<std::pair<double, double>> meetings{};
};

/// What partitions take along means of ways through a step.
class WayCosts
{
public:
    /// @param waits  per operator, for other replicas, at least; may be empty. Must outlive it.
    WayCosts(const BoundedStep &step, const OperatorTimes &waits);

    WayMean nothing() const;
    /// @param counts  how much of the mean the way is
    void add(const StepWay &way, double counts, WayMean &mean) const;
    WayMean alone(const StepWay &way) const;
    const WaySends &sends() const { return m_sends; }

    MetPartition met(const std::vector<std::int32_t> &choice) const;
    double seconds(const MetPartition &partition, const WayMean &mean) const;
    /// Seconds by choices, but for `constant`. @param more  than that, of an operator's choice
    CostNetwork network(
        const WayMean &mean, const std::function<double(std::size_t, const OperatorChoice &)> &more) const;
    /// What all partitions take.
    double constant(const WayMean &mean) const;

private:
    double ownSeconds(std::size_t op, const OperatorChoice &choice, const WayMean &mean) const;
    /// How often what a meeting communicates counts, forward and backward.
    std::pair<double, double> countsOf(const Meeting &meeting, const WayMean &mean) const;
    /// How often what an operator waits for in the backward pass counts.
    double countsBack(std::size_t op, const WayMean &mean) const;
    const StageCounts &stageOf(std::size_t op, const WayMean &mean) const
    {
        return mean.stages[at(m_step.stageOf(op))];
    }

    const BoundedStep &m_step;
    const OperatorTimes &m_waits;
    const WaySends m_sends;
    const WayWeights m_weights;
};

} // namespace planloom
