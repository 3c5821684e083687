#pragma once

#include "engine/schedule/search/placement.h"
#include "engine/schedule/search/start_search.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What of a placement does not depend on the period: worked out once for many searches.
class StartProblem
{
public:
    explicit StartProblem(const Placement &placement); ///< A valid one, which outlives this.

    const Placement &placement() const { return m_placement; }
    /// Blocks of one device take more than they give back: no schedule goes on for ever within its limit.
    bool fillsUp() const;

    /// Starts t of one micro-batch such that micro-batch n may start at t + n `period`. Of a placement
    /// without blocks that run once, or of its `steadyStateOf`; so for `squeezed` and `fillsUp`.
    StartSearch periodic(std::int64_t period) const;
    /// Starts of all blocks of `microBatches` micro-batches, each block's in ascending order, which end by
    /// `makespan`; they are numbered as `PlacementRuns` does. That the order of micro-batches
    /// is the same for all blocks loses nothing: numbering each block's runs anew in the order of their
    /// starts keeps every dependency.
    StartSearch unrolled(std::int32_t microBatches, std::int64_t makespan) const;

    /// The shortest period, at most `period`, with everything in the order that `starts` of a period have.
    /// `starts` become those of the result.
    std::int64_t squeezed(std::vector<std::int64_t> &starts, std::int64_t period, std::int64_t least) const;

private:
    /// Memory that `take` takes and `give` gives back, on one device; -1 where there is no such block.
    struct Lease {
        std::int32_t take = -1;
        std::int32_t give = -1;
        std::int64_t amount = 0;
    };
    /// An edge that alone joins what is behind it to the rest, or a part with no edge to the rest at all.
    struct Joint {
        PlacementEdge edge{}; ///< `before` is -1 for a part of its own, `after` its first block.
    };

    void reduceEdges();
    void findJoints();
    void findLeases();
    bool givesBack(const std::vector<bool> &part) const;
    /// Blocks of other queues of a device that hold a workspace there, which the block may run beside.
    std::vector<std::int32_t> besideOn(std::int32_t block, std::int32_t device) const;

    const Placement &m_placement;
    std::vector<PlacementEdge> m_edges{}; ///< None that follows from others.
    std::vector<std::vector<bool>> m_reaches{}; ///< Along edges of distance 0.
    std::vector<Joint> m_joints{};
    std::vector<std::vector<Lease>> m_leases{}; ///< By device; empty where memory cannot bind.
};

} // namespace planloom
