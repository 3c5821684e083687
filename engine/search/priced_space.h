#pragma once

#include "engine/search/search_memory.h"
#include "engine/search/search_space.h"
#include "engine/search/time/step_estimate.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// What is known of a search's configurations: plans that were priced, bounds that were found, before it or
/// by it. For one thread.
class PricedSpace
{
public:
    /// @param correction  what simulations have shown so far; all outlive it
    PricedSpace(StepEstimator &estimator, const SearchSpace &space, const Correction &correction);

    const std::vector<StepEstimate> &priced() const { return m_priced; }
    bool fits(const StepEstimate &estimate) const { return estimate.peakBytes <= m_space.memoryLimit; }
    bool anyFits() const;
    bool fitsAtAnyPrice(const Configuration &configuration) const; ///< As far as it was priced.
    /// Seconds of the fastest plan of the space that was priced and fits; infinite before there is one.
    double bestPrice() const;
    /// Likewise without what bounds leave out (`StepEstimate::aside`): what they can come near to.
    double bestBounded() const;
    /// By configuration, seconds of the fastest of its plans that were priced and fit.
    std::map<Configuration, double> pricesThatFit() const;

    /// A plan of a configuration, with its bound.
    void add(StepEstimate estimate);
    /// A plan without a bound.
    void addUnbounded(StepEstimate estimate) { m_priced.push_back(std::move(estimate)); }
    void notePrice(const StepEstimate &estimate); ///< For edits to come.

    KnownBounds &known() { return m_known; } ///< From searches before, and from this one.
    const KnownBounds &known() const { return m_known; }
    std::map<Configuration, double> &bounds() { return m_bounds; } ///< Of all that hold.
    const std::map<Configuration, double> &bounds() const { return m_bounds; }
    /// Why a configuration could not be priced: of the first.
    const std::optional<Error> &problem() const { return m_problem; }
    void noteProblem(Error problem)
    {
        if (!m_problem)
            m_problem = std::move(problem);
    }
    void clear(); ///< All but the problem.

    /// What no plan of a configuration is likely to be below when simulated: what is proven of it in the
    /// model, or nearly the price of the best that was found of it, by how much the model was wrong.
    struct Bound {
        Configuration configuration{};
        double seconds = 0;
    };
    /// The lowest of all.
    /// @param best  a plan, and what it takes when simulated
    Bound boundBeside(const Configuration &best, double simulatedSeconds) const;
    /// All, the lowest first. @param simulatedSeconds  of the best plan
    std::vector<Bound> boundsInOrder(double simulatedSeconds) const;
    /// What is proven in the model of the plans that are like this one, of its configuration and fitting or
    /// not; 0 where it is not known.
    double provenOf(const StepEstimate &estimate) const;
    /// Seconds that no plan is below in the model. @param best  a plan priced
    double modelBoundBeside(const Configuration &best, double seconds) const;

private:
    /// `StepEstimator::kernelBoundOf`; 0 where there is none.
    double kernelsOf(const Configuration &configuration) const;
    /// The least of `likelyOf` the best and all that are bounded, told what is proven of each.
    template<typename Likely>
    Bound leastBound(const Configuration &best, double seconds, const Likely &likelyOf) const;
    /// As `Bound`, of what is proven of a configuration and what was priced of it, if anything.
    double likelyOf(const Configuration &configuration, double proven,
        const std::map<Configuration, double> &prices, double simulatedSeconds) const;

    StepEstimator &m_estimator;
    const SearchSpace &m_space;
    const Correction &m_correction;
    KnownBounds m_known{};
    std::map<Configuration, double> m_bounds{};
    std::vector<StepEstimate> m_priced{};
    mutable std::map<Configuration, double> m_kernels{}; ///< That were asked for.
    std::optional<Error> m_problem{};
};

} // namespace planloom
