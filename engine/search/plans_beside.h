#pragma once

#include "engine/search/search_space.h"
#include "engine/search/time/step_estimate.h"

#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// Plans that lie beside the search's space, and are priced by simulation alone: those whose keys and values
/// go round the devices that a sequence is cut over (arXiv:2310.01889); those whose sequences are cut in
/// zigzags, so that causal masks leave all devices as much to do (arXiv:2407.21783, 3.3.2); and those whose
/// weights are cut over all devices that read them alike, the ones that share a sample among them. In the
/// space keys and values are gathered, devices have one part of a sequence, and replicas alone cut weights
/// among themselves. What it points to must outlive it.
class PlansBeside
{
public:
    PlansBeside(
        StepEstimator &estimator, const Model &model, const SearchSpace &space, const ConstraintTable &asked);

    /// Partitions that people use (usual_partitions.h), in meshes with shards, nothing sharded and nothing
    /// computed again: the fastest in the model first. Meshes with the fewest stages alone are looked at,
    /// which gather no weights for each of many micro-batches.
    std::vector<StepEstimate> partitions(const std::stop_token &stop) const;

    /// Whether a partition could cut queries, as those below do.
    bool mayCutQueries() const { return m_hasAttentions; }
    /// The axis over which the partition cuts queries of attentions, whose keys and values could go round: of
    /// two axes the outer one. Empty where there is none.
    std::string axisOfQueries(const StepEstimate &estimate) const;
    /// Whether later queries have more to do there, so that zigzags may be faster.
    bool hasCausalQueries() const { return m_hasCausalAttentions; }
    /// Rows leave the search the weights, and what is computed again.
    bool mayCutOverAll() const;
    /// Bytes of each of so many devices that weights and their states are cut over; 0 where it is not known.
    std::int64_t leastShare(std::int32_t devices) const;

    struct Choice {
        bool goesRound = false;
        bool isZigzag = false;
        bool cutsOverAll = false;
    };
    /// The rows that make it. @return InvalidInput
    Result<ConstraintTable> rowsOf(const StepEstimate &estimate, Choice choice) const;

private:
    StepEstimator &m_estimator;
    const Model &m_model;
    const SearchSpace &m_space;
    const ConstraintTable &m_asked;
    bool m_hasAttentions = false;
    bool m_hasCausalAttentions = false;
};

} // namespace planloom
