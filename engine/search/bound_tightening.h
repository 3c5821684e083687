#pragma once

#include "engine/search/space_pricing.h"

namespace planloom {

/// Makes the bounds of a space that was priced tighter, in the search's model. What is looked at is priced on
/// the way. For one thread.
class BoundTightening
{
public:
    explicit BoundTightening(SpacePricing &pricing); ///< It outlives this.

    /// Looks at the configuration of the lowest bound again, by the least times of its stages and then along
    /// its longest ways, until the bound of all is near the best price.
    /// @return Cancelled
    Result<void> tighten();

    /// What is claimed of a configuration that turned out to be the best though it is not among the bounds:
    /// of those with two shard axes only the fastest in the model is.
    Result<void> boundAlso(const Configuration &configuration);

    /// Makes the bound of a configuration tighter until it is `enough`, in the model's seconds, or does not
    /// grow in so many partitions that are looked at.
    Result<void> raise(const Configuration &configuration, double enough, int mostIdle);

private:
    /// The model is not so exact that a configuration whose bound is hardly above the best price could not be
    /// faster in simulation: it is to be seen at its best, too.
    Result<void> lookCloser(double best);

    SpacePricing &m_pricing;
    StepEstimator &m_estimator;
    PricedSpace &m_book;
};

} // namespace planloom
