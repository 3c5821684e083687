#pragma once

#include "engine/base/processor_time.h"
#include "engine/search/priced_space.h"
#include "engine/search/search_memory.h"
#include "engine/search/search_space.h"
#include "engine/search/time/step_estimate.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

namespace planloom {

/// What the configurations of one search cost in the model, and what is proven of them. It looks at as few
/// of them as it can: those whose bound leaves them a chance. For one thread.
class SpacePricing
{
public:
    struct Setting { ///< What it points to must outlive it.
        StepEstimator *estimator = nullptr;
        const SearchSpace *space = nullptr;
        const Correction *correction = nullptr; ///< What simulations have shown so far.
        const WorkClock *worked = nullptr; ///< Since the search began.
        double mostSeconds = 0; ///< As `SearchOptions`.
        /// Told how far the search is: seconds of the fastest plan priced that fits (infinite before there is
        /// one), and of the bound of all (0: not all were bounded). Not empty.
        std::function<void(double best, double bound)> note{};
        std::stop_token stop{};
    };
    explicit SpacePricing(Setting setting);

    /// Those of two shard axes that may be looked at, beside the space's.
    const std::vector<Configuration> &nested() const { return m_nested; }

    /// Bounds that were found for some of the rows hold for all of them: an edit then looks at little more
    /// than what was nearly best before it. Before `price`.
    void takeOver(KnownBounds known);
    bool tookOver() const { return m_tookOver; } ///< Some are from searches before.

    /// All whose bound leaves them a chance, with partitions that hold less where the fastest do not fit.
    /// @return Cancelled
    Result<void> price();

    /// Plans whose stages have groups of devices of different sizes, beside the space's, where one may be
    /// faster than the best of those. Behind `price`.
    /// @return Cancelled
    Result<void> priceUnequal();

    /// Where what fits in the model did not in simulation: others that need less, however slow they are; of
    /// each mesh that which likely needs least.
    Result<void> priceThoseThatNeedLeast();

    /// A configuration with a partition that holds no more than `limit` bytes, or as little as may be.
    /// @return InvalidInput where it cannot be planned; Cancelled
    Result<StepEstimate> priceWithin(const Configuration &configuration, std::int64_t limit);

    /// Some partitions of a configuration that lead to those which are fastest of what hold no more than
    /// `limit` bytes.
    /// @return seconds of the fastest of them; InvalidInput where it cannot be planned; Cancelled
    Result<double> priceAlongPaths(const Configuration &configuration, std::int64_t limit);

    const Setting &setting() const { return m_setting; }
    PricedSpace &book() { return m_book; } ///< What is known so far.
    const PricedSpace &book() const { return m_book; }
    /// As `SearchResult::leastNeeded`.
    std::int64_t leastNeeded() const { return m_leastNeeded; }
    /// It was priced with partitions that hold less than the fastest.
    bool wasFitted(const Configuration &configuration) const { return m_isFitted.contains(configuration); }

private:
    /// Configurations that need more memory than there is, whatever else is decided. Where that is all of
    /// them, those that need least stay, to be shown.
    Result<void> leaveOutWhatCannotFit();
    Result<void> priceAllOpen();
    /// Those that would be faster than the best if they fitted, with partitions that hold less.
    Result<void> priceThoseThatNearlyFit();
    /// All of the above, and then with layers that take turns.
    Result<void> priceOpenOnes();
    /// Where nothing fits, those of which too much passes for a moment with layers in turns.
    Result<void> priceInTurns();
    /// Where all need more than there is: those that need least, to be shown.
    Result<void> priceWhereNothingCanFit();
    /// Where some rank has no room for what every partition holds, and others have some left.
    /// @return nothing where it was not looked at; Cancelled
    Result<std::optional<StepEstimate>> priceWithOtherStages(const Configuration &configuration);
    /// Those whose like with one axis is not far behind the best, the most promising ones.
    Result<void> priceNested();
    /// Prices every one of some configurations whose bound leaves it a chance.
    /// @param reductions  their price: `StepEstimator::estimate`
    Result<void> priceAll(const std::vector<const Configuration *> &open, double reductions);
    /// Seconds that what is known leaves a configuration little hope to be below.
    double likelyAfterEdit(const Configuration &configuration) const;
    /// What fitted before an edit most likely does after it, and then leaves most others no chance.
    void bringBestBeforeForward(std::vector<std::pair<double, const Configuration *>> &order) const;
    /// Configurations of two shard axes that may beat their like with one.
    void findNested();
    /// Takes down what is proven of a configuration.
    /// @return what no partition of it is likely to be below; infinite where it cannot be planned
    Result<double> boundsOf(const Configuration &configuration);

    const Setting m_setting;
    StepEstimator &m_estimator;
    const SearchSpace &m_space;
    const Correction &m_correction;
    PricedSpace m_book;
    bool m_tookOver = false;
    /// Before an edit: `KnownBound::fitted`, or `priced` where none fitted.
    std::map<Configuration, double> m_pricedBefore{};
    std::vector<Configuration> m_nested{};
    std::deque<Configuration> m_inTurns{}; ///< As the space's, that were looked at.
    std::vector<const Configuration *> m_open{}; ///< Of the space, that may fit.
    std::set<Configuration> m_isUsualPriced{}; ///< Also with the partitions that people use.
    /// Bytes that none of their partitions goes below, of those that cannot fit.
    std::map<Configuration, std::int64_t> m_tooFull{};
    std::set<Configuration> m_isFitted{}; ///< Priced with partitions that hold less.
    int m_triedOtherStages = 0;
    std::int64_t m_leastNeeded = 0;
};

} // namespace planloom
