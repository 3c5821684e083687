#include "engine/search/priced_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

/// What the partitions that were found of a configuration cost is nearly the least, where no more than this
/// share of it is proven.
constexpr double kNearPrice = 0.9;
/// Of the seconds that kernels take in the model: in simulation some are launched with others.
constexpr double kKernelsAtLeast = 0.98;

} // namespace

PricedSpace::PricedSpace(StepEstimator &estimator, const SearchSpace &space, const Correction &correction)
    : m_estimator(estimator)
    , m_space(space)
    , m_correction(correction)
{
}

void PricedSpace::clear()
{
    m_known.clear();
    m_bounds.clear();
    m_priced.clear();
}

double PricedSpace::kernelsOf(const Configuration &configuration) const
{
    const auto [known, isNew] = m_kernels.try_emplace(configuration, 0);
    if (isNew)
        if (const auto seconds = m_estimator.kernelBoundOf(configuration))
            known->second = *seconds;
    return known->second;
}

std::map<Configuration, double> PricedSpace::pricesThatFit() const
{
    std::map<Configuration, double> prices;
    for (const StepEstimate &each : m_priced)
        if (fits(each)) {
            double &price = prices.try_emplace(each.configuration, each.seconds).first->second;
            price = std::min(price, each.seconds);
        }
    return prices;
}

double PricedSpace::likelyOf(const Configuration &configuration, double proven,
    const std::map<Configuration, double> &prices, double simulatedSeconds) const
{
    const auto price = prices.find(configuration);
    const double likely = std::max(proven, price == prices.end() ? 0 : kNearPrice * price->second)
        * m_correction.leastOf(configuration);
    // However wrong the model is about the rest of a step, kernels take what they take.
    return likely >= simulatedSeconds ? likely : std::max(likely, kKernelsAtLeast * kernelsOf(configuration));
}

PricedSpace::Bound PricedSpace::boundBeside(const Configuration &best, double simulatedSeconds) const
{
    const auto prices = pricesThatFit();
    return leastBound(best, simulatedSeconds, [&](const Configuration &each, double proven) {
        return likelyOf(each, proven, prices, simulatedSeconds);
    });
}

std::vector<PricedSpace::Bound> PricedSpace::boundsInOrder(double simulatedSeconds) const
{
    const auto prices = pricesThatFit();
    std::vector<Bound> bounds;
    for (const auto &[configuration, proven] : m_bounds)
        if (std::isfinite(proven))
            bounds.push_back({configuration, likelyOf(configuration, proven, prices, simulatedSeconds)});
    std::stable_sort(
        bounds.begin(), bounds.end(), [](const Bound &a, const Bound &b) { return a.seconds < b.seconds; });
    return bounds;
}

double PricedSpace::provenOf(const StepEstimate &estimate) const
{
    const auto proven = m_bounds.find(estimate.configuration);
    return proven != m_bounds.end() && fits(estimate) ? proven->second : 0;
}

double PricedSpace::modelBoundBeside(const Configuration &best, double seconds) const
{
    return leastBound(best, seconds, [](const Configuration &, double proven) { return proven; }).seconds;
}

template<typename Likely>
PricedSpace::Bound PricedSpace::leastBound(
    const Configuration &best, double seconds, const Likely &likelyOf) const
{
    Bound bound{best, seconds};
    const auto take = [&](const Configuration &configuration, double proven) {
        if (const double least = likelyOf(configuration, proven); least < bound.seconds)
            bound = {configuration, least};
    };
    if (const auto known = m_known.find(best); known != m_known.end() && !m_bounds.contains(best))
        take(best, known->second.proven);
    for (const auto &[configuration, proven] : m_bounds)
        take(configuration, proven);
    return bound;
}

bool PricedSpace::anyFits() const
{
    return std::any_of(
        m_priced.begin(), m_priced.end(), [this](const StepEstimate &each) { return fits(each); });
}

bool PricedSpace::fitsAtAnyPrice(const Configuration &configuration) const
{
    return std::any_of(m_priced.begin(), m_priced.end(),
        [&](const StepEstimate &each) { return each.configuration == configuration && fits(each); });
}

double PricedSpace::bestPrice() const
{
    double best = std::numeric_limits<double>::infinity();
    for (const StepEstimate &each : m_priced)
        if (fits(each) && !each.configuration.isUnequal())
            best = std::min(best, each.seconds);
    return best;
}

double PricedSpace::bestBounded() const
{
    double best = std::numeric_limits<double>::infinity();
    for (const StepEstimate &each : m_priced)
        if (fits(each) && !each.configuration.isUnequal())
            best = std::min(best, each.seconds - each.aside);
    return best;
}

void PricedSpace::add(StepEstimate estimate)
{
    double &bound = m_bounds[estimate.configuration];
    bound = std::max(bound, estimate.bound);
    notePrice(estimate);
    if (!fits(estimate) && m_estimator.problemOf(estimate.configuration).isDecided()
        && !estimate.configuration.inTurns && !m_space.sharding.isMixed())
        bound = std::numeric_limits<double>::infinity(); // there is no other partition
    m_priced.push_back(std::move(estimate));
}

void PricedSpace::notePrice(const StepEstimate &estimate)
{
    KnownBound &known = m_known[estimate.configuration];
    const auto take = [&](double &least) {
        least = least == 0 ? estimate.seconds : std::min(least, estimate.seconds);
    };
    take(known.priced);
    if (fits(estimate))
        take(known.fitted);
}

} // namespace planloom
