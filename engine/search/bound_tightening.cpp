#include "engine/search/bound_tightening.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// Partitions of a configuration that are looked at while its bound does not grow: at first, and after an
/// edit, which finds bounds of the rows before it and is waited for.
constexpr int kMostIdlePaths = 12;
constexpr int kMostIdlePathsOfAnEdit = 3;
/// A bound so near to the best price is not made tighter: at first, and after an edit.
constexpr double kCloseEnough = 0.005;
constexpr double kCloseEnoughAfterAnEdit = 0.05;
/// Configurations whose bound is so little above the best price, and how many partitions of them are looked
/// at, until a multiple of the time for simulations has passed.
constexpr double kHardlyAbove = 0.03;
constexpr std::size_t kMostLookedAtCloser = 6;
constexpr int kCloserPaths = 5;
constexpr double kCloserUntil = 2.5;
/// How much of the time for simulations tightening may take first, and after an edit.
constexpr double kTighteningShare = 0.8;
constexpr double kTighteningShareOfAnEdit = 0.2;
/// Or, first, how much of what pricing took: of a space of hundreds of thousands that is more.
constexpr double kTighteningShareOfPricing = 0.3;

} // namespace

BoundTightening::BoundTightening(SpacePricing &pricing)
    : m_pricing(pricing)
    , m_estimator(*pricing.setting().estimator)
    , m_book(pricing.book())
{
}

Result<void> BoundTightening::tighten()
{
    std::set<Configuration> staged;
    std::map<Configuration, int> idlePaths; // that were looked at since its bound grew
    const double start = m_pricing.setting().worked->seconds();
    std::set<std::pair<double, Configuration>> lowest;
    double best = m_book.bestPrice();
    double bounded = m_book.bestBounded();
    const auto found = [&](const StepEstimate &estimate) {
        if (!m_book.fits(estimate))
            return;
        best = std::min(best, estimate.seconds);
        bounded = std::min(bounded, estimate.seconds - estimate.aside);
    };
    for (const auto &[configuration, bound] : m_book.bounds())
        lowest.emplace(bound, configuration);
    const double closeEnough = m_pricing.tookOver() ? kCloseEnoughAfterAnEdit : kCloseEnough;
    const double mostSeconds = m_pricing.tookOver()
        ? kTighteningShareOfAnEdit * m_pricing.setting().mostSeconds
        : std::max(kTighteningShare * m_pricing.setting().mostSeconds, kTighteningShareOfPricing * start);
    while (!lowest.empty() && lowest.begin()->first < bounded * (1 - closeEnough)
        && m_pricing.setting().worked->seconds() - start < mostSeconds) {
        const Configuration configuration = lowest.begin()->second;
        m_pricing.setting().note(best, std::min(best, lowest.begin()->first));
        lowest.erase(lowest.begin());
        double &proven = m_book.bounds()[configuration];
        if (staged.insert(configuration).second) {
            const auto bound = m_estimator.stagedBoundOf(configuration, m_pricing.setting().stop);
            if (!bound && bound.error().code == ErrorCode::Cancelled)
                return bound.error();
            if (bound
                && bound->peakBytes > m_pricing.setting().space->memoryLimit) { // none of its partitions fits
                proven = std::numeric_limits<double>::infinity();
                m_book.known()[configuration].needed = bound->peakBytes;
            } else if (bound)
                proven = std::max(proven, bound->seconds);
            lowest.emplace(proven, configuration);
            continue;
        }
        const double before = proven;
        if (!m_pricing.wasFitted(configuration) && !m_book.fitsAtAnyPrice(configuration)) {
            // What fitting costs is not in any bound so far.
            const auto estimate =
                m_pricing.priceWithin(configuration, m_pricing.setting().space->memoryLimit);
            if (!estimate && estimate.error().code == ErrorCode::Cancelled)
                return estimate.error();
            if (estimate)
                found(*estimate);
            if (proven > before) {
                lowest.emplace(proven, configuration);
                continue;
            }
        }
        auto estimate = m_estimator.estimateAlongPaths(
            configuration, m_pricing.setting().space->memoryLimit, m_pricing.setting().stop);
        if (!estimate) {
            if (estimate.error().code == ErrorCode::Cancelled)
                return estimate.error();
            m_book.bounds().erase(configuration); // its stages cannot be as rows say
            continue;
        }
        found(*estimate);
        m_book.add(*std::move(estimate));
        int &idle = idlePaths[configuration];
        idle = proven > before * (1 + kCloseEnough) ? 0 : idle + 1;
        if (idle < (m_pricing.tookOver() ? kMostIdlePathsOfAnEdit : kMostIdlePaths)
            && !m_estimator.problemOf(configuration).isDecided())
            lowest.emplace(proven, configuration);
    }
    if (!lowest.empty())
        m_pricing.setting().note(best, std::min(best, lowest.begin()->first));
    return m_pricing.tookOver() ? Result<void>{} : lookCloser(best);
}

Result<void> BoundTightening::boundAlso(const Configuration &configuration)
{
    m_book.bounds()[configuration] = m_book.known()[configuration].proven;
    return raise(configuration, m_book.bestBounded() * (1 - kCloseEnough), kMostIdlePaths);
}

Result<void> BoundTightening::raise(const Configuration &configuration, double enough, int mostIdle)
{
    const auto limit = m_pricing.setting().space->memoryLimit;
    TRY(const auto staged, m_estimator.stagedBoundOf(configuration, m_pricing.setting().stop));
    double &proven = m_book.bounds()[configuration];
    proven = std::max(proven, staged.seconds);
    for (int idle = 0; proven < enough && idle < mostIdle
         && m_pricing.setting().worked->seconds() < m_pricing.setting().mostSeconds * kCloserUntil;) {
        const double before = proven;
        TRY(StepEstimate estimate,
            m_estimator.estimateAlongPaths(configuration, limit, m_pricing.setting().stop));
        m_book.add(std::move(estimate));
        idle = proven > before * (1 + kCloseEnough) ? 0 : idle + 1;
        if (m_estimator.problemOf(configuration).isDecided())
            break;
    }
    return {};
}

Result<void> BoundTightening::lookCloser(double best)
{
    std::map<Configuration, double> prices;
    for (const StepEstimate &each : m_book.priced()) {
        double &price = prices.try_emplace(each.configuration, each.seconds).first->second;
        price = std::min(price, each.seconds);
    }
    std::vector<std::pair<double, Configuration>> open;
    for (const auto &[configuration, price] : prices)
        if (const auto bound = m_book.bounds().find(configuration); bound != m_book.bounds().end()
            && bound->second < best * (1 + kHardlyAbove) && price > best * (1 + kHardlyAbove))
            open.emplace_back(bound->second, configuration);
    std::sort(open.begin(), open.end());
    open.resize(std::min(open.size(), kMostLookedAtCloser));
    for (const auto &[bound, configuration] : open)
        for (int path = 0; path < kCloserPaths
             && m_pricing.setting().worked->seconds() < m_pricing.setting().mostSeconds * kCloserUntil;
             ++path) {
            auto estimate = m_estimator.estimateAlongPaths(
                configuration, m_pricing.setting().space->memoryLimit, m_pricing.setting().stop);
            if (!estimate && estimate.error().code == ErrorCode::Cancelled)
                return estimate.error();
            if (!estimate)
                break;
            m_book.add(*std::move(estimate));
        }
    return {};
}

} // namespace planloom
