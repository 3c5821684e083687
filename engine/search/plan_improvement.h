#pragma once

#include "engine/base/processor_time.h"
#include "engine/search/plans_beside.h"
#include "engine/search/simulated_plans.h"
#include "engine/search/space_pricing.h"

namespace planloom {

/// How a search goes on from the best plan of its space, by simulation alone. What it finds and learns goes
/// to the simulated plans. For one thread.
class PlanImprovement
{
public:
    struct Setting { ///< What it refers to outlives it.
        const SearchRequest &request;
        const SearchSpace &space;
        StepEstimator &estimator;
        SpacePricing &pricing;
        SimulatedPlans &plans;
        const WorkClock &worked; ///< Since the search began.
    };
    explicit PlanImprovement(const Setting &setting);

    /// Plans that were found before rows were added or taken away, as far as they are of the space: an edit
    /// that they hold with leaves nothing worse than them.
    void tryRelatives(SearchMemory::Kept &memory);

    /// Plans beside the space: sequences in zigzags under causal masks, and keys and values that go round
    /// where that may be faster; and where memory is dear, weights that are cut over all devices.
    /// @param worked  seconds of the search's work at which it ends, or `SearchOptions::mostSeconds` if that
    /// is more; where memory is dear, the sum of both
    void lookBeside(double worked);

    /// Raises the bounds that are lowest, and simulates plans of those configurations where that is not
    /// enough: what is known of them is nearer than what may be wrong of the model where nothing was
    /// simulated. Where simulating takes next to no time, so are the others.
    void tightenBounds(double until);

    /// The best plans with stages that begin a layer earlier or later, as long as that makes them faster:
    /// stages that take equally long in the model are not all that makes a step short.
    void moveStages(double until);

private:
    /// All that there is to try of one partition beside the space, while there is time.
    struct Beside;
    /// The fastest plans of the space with their sequences in zigzags.
    void tryZigzags(const Beside &beside);
    bool tryBeside(const Beside &beside, const StepEstimate &partition, bool goesRound);
    /// @return by forward operator, the stages with which it is fastest
    std::vector<std::int32_t> moveStagesOf(SimulatedPlans::Fitting plan, double until);
    /// @param other  `plan` with other stages
    /// @return whether it fits and is faster
    bool tryStages(const SimulatedPlans::Fitting &plan, const StepEstimate &other);
    /// The cheapest plan of a configuration that fits, as priced; one is priced if there is none.
    Result<StepEstimate> cheapestOf(const Configuration &configuration);
    bool isOver(double until) const
    {
        return m_setting.worked.seconds() >= until || m_setting.request.stop.stop_requested();
    }

    const Setting m_setting;
    SimulatedPlans &m_plans;
    int m_triedBeside = 0;
};

} // namespace planloom
