#include "engine/search/solver.h"

#include "engine/base/processor_time.h"
#include "engine/hardware/remembered_costs.h"
#include "engine/search/plan_trials.h"
#include "engine/search/search_memory.h"
#include "engine/search/search_rows.h"
#include "engine/search/step_estimate.h"
#include "engine/simulate/link_traffic.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// How much of a step a device full of memory costs, from plan to plan tried where nothing fits.
constexpr std::array kMemoryPrices{0.0, 0.3, 1.0, 4.0};
/// The model may be wrong by so much, before anything was simulated.
constexpr double kTrust = 0.1;
/// Partitions of one configuration whose prices are as near differ in what does not matter.
constexpr double kSame = 2e-4;

/// What partitions that people use may be faster by than that which the search finds.
constexpr double kUsualGain = 0.03;

/// Plans that are simulated however long it takes: of the first alone it is not known how far the model is
/// off.
constexpr std::int32_t kLeastSimulated = 4;
/// Of models so large that a multiple of the time for simulations has passed.
constexpr std::int32_t kLeastSimulatedLate = 2;
constexpr double kLate = 2;
/// How much longer plans are simulated where none of the first had fitted.
constexpr double kUntilOneFits = 4;

/// Configurations that are looked at where none can fit: those that need least.
constexpr std::size_t kTriedWithoutHope = 12;

/// And where those that fit in the model did not in simulation.
constexpr std::size_t kTriedWhereNoneFitted = 24;
constexpr double kNearPeak = 0.01;

/// A bound so near to the best price is not made tighter: at first, and after an edit.
constexpr double kCloseEnough = 0.005;
constexpr double kCloseEnoughAfterAnEdit = 0.03;
/// Partitions of a configuration that are looked at while its bound does not grow: at first, and after an
/// edit, which finds bounds of the rows before it and is waited for.
constexpr int kMostIdlePaths = 12;
constexpr int kMostIdlePathsOfAnEdit = 3;
/// A second shard axis is tried where without it a plan takes at most so much more than the best, of so many.
constexpr double kFarBehind = 0.2;
constexpr std::size_t kMostNested = 12;
constexpr std::size_t kMostNestedOfAnEdit = 2;
/// Entries of tables that may be worked out for those, at first and after an edit. They are counted, not
/// timed, so that what is found does not depend on how busy the machine is.
constexpr double kMostNestedEntries = 3 << 23;
constexpr double kMostNestedEntriesOfAnEdit = 1 << 22;
/// Configurations whose bound is so little above the best price, and how many partitions of them are looked
/// at, until a multiple of the time for simulations has passed.
constexpr double kHardlyAbove = 0.03;
constexpr std::size_t kMostLookedAtCloser = 6;
constexpr int kCloserPaths = 5;
constexpr double kCloserUntil = 2.5;
/// How much of the time for simulations tightening may take first.
constexpr double kTighteningShare = 0.8;

} // namespace

/// One search.
class PlanSearch
{
public:
    PlanSearch(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
        const ConstraintTable &rows, const CostModel &costs, const SearchOptions &options,
        const std::stop_token &stop)
        : m_model(model)
        , m_cluster(cluster)
        , m_deviceCount(deviceCount)
        , m_rows(rows)
        , m_costs(costs)
        , m_options(options)
        , m_stop(stop)
    {
    }

    Result<SearchResult> run()
    {
        TRY(m_space, searchSpaceOf(m_model, m_cluster, m_deviceCount, m_rows));
        m_result.configurations = static_cast<std::int64_t>(m_space.configurations.size());
        m_result.memoryLimit = m_space.memoryLimit;
        TRY_VOID(findEstimator());
        findNested();
        if (const SearchResult *known = m_memory ? m_memory->resultOf(m_rows) : nullptr) {
            m_result = *known;
            m_result.searchSeconds = now();
            if (m_options.onBetter)
                m_options.onBetter(m_result);
            return std::move(m_result);
        }
        takeOverBounds();
        m_tookOver = !m_known.empty();
        TRY_VOID(leaveOutWhatCannotFit());
        TRY_VOID(priceUntilOneFits());
        if (m_tookOver && !anyFits()) { // whether none can is to be proven: from the beginning
            m_tookOver = false;
            m_known.clear();
            m_open.clear();
            m_priced.clear();
            m_isUsualPriced.clear();
            m_bounds.clear();
            TRY_VOID(leaveOutWhatCannotFit());
            TRY_VOID(priceUntilOneFits());
        }
        TRY_VOID(priceNested());
        // After an edit the plan is what is waited for: it is shown with the bounds that there are.
        if (m_tookOver)
            simulateBest();
        TRY_VOID(tighten());
        if (m_memory)
            m_memory->remember(m_rows, m_known, m_bounds);
        if (m_priced.empty())
            return m_problem
                ? *std::move(m_problem)
                : Error{ErrorCode::InvalidInput, "no configuration holds with the rows", {}, "search"};
        simulateBest();
        if (m_found && !m_result.fits && !m_result.cannotFit()) {
            TRY_VOID(priceThoseThatNeedLeast());
            simulateBest();
        }
        if (m_memory)
            m_memory->correctionFor(m_rows) = m_correction;
        if (!m_found)
            return m_problem && !m_stop.stop_requested() ? *std::move(m_problem) : cancelled();
        finish();
        if (m_memory && !m_stop.stop_requested())
            m_memory->remember(m_rows, m_result);
        return std::move(m_result);
    }

private:
    /// That of the same rows about operators, if one is remembered; else a new one, to be remembered.
    Result<void> findEstimator()
    {
        if (SearchMemory *memory = m_options.memory.get()) {
            m_lock = std::unique_lock(memory->m_kept->inUse, std::try_to_lock);
            if (m_lock)
                m_memory = memory->m_kept.get();
        }
        std::string key = std::to_string(m_space.memoryLimit) + (m_space.ownRecompute ? "r" : "")
            + (m_space.ownMesh ? "m" : "") + m_space.sharding.key() + m_space.replicaAxis + "/"
            + m_space.rankAxis + "/" + m_space.outerShardAxis + "/" + m_space.shardAxis;
        for (const Row &row : m_rows.rows)
            if (row.enabled
                && (hasSelector(row.rule) || std::holds_alternative<MeshRule>(row.rule)
                    || std::holds_alternative<DegreeRule>(row.rule))
                && !std::holds_alternative<OptimizerShardingRule>(row.rule))
                key += "\n" + print(row);
        if (m_memory) {
            m_memory->use(m_model.graph, m_cluster, m_deviceCount, m_options.precision, m_costs);
            m_costs = m_memory->costs();
            m_estimator = m_memory->estimatorOf(key);
            if (m_estimator)
                return {};
        }
        if (!m_memory)
            m_costs = withRememberedCollectives(std::move(m_costs));
        TRY(auto made,
            StepEstimator::make(m_model, m_cluster, m_deviceCount, m_rows, m_space, m_costs,
                m_options.precision, m_memory ? m_memory->usual() : nullptr));
        m_estimator = made.get();
        if (m_memory)
            m_memory->remember(std::move(key), std::move(made));
        else
            m_own = std::move(made);
        return {};
    }

    /// At higher and higher prices of memory.
    Result<void> priceUntilOneFits()
    {
        for (const double price : kMemoryPrices) {
            TRY_VOID(priceAll(m_open, {price, 0}));
            if (price == 0) { // of two prices the second alone matters, once there is one
                TRY_VOID(priceAll(m_open, {0, 1}));
            }
            if (anyFits())
                break;
        }
        return {};
    }

    bool anyFits() const
    {
        return std::any_of(
            m_priced.begin(), m_priced.end(), [this](const StepEstimate &each) { return fits(each); });
    }

    bool fits(const StepEstimate &estimate) const { return estimate.peakBytes <= m_space.memoryLimit; }

    /// Takes down how far the search is. @param bound  0: not all were bounded
    void note(double best, double bound)
    {
        SearchMoment moment{now(), std::isfinite(best) ? best : 0, std::isfinite(bound) ? bound : 0};
        if (m_result.course.empty() || m_result.course.back().best != moment.best
            || m_result.course.back().bound != moment.bound)
            m_result.course.push_back(moment);
    }

    double now() const
    {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_start).count();
    }

    /// Bounds that were found for some of the rows hold for all of them: an edit then looks at little more
    /// than what was nearly best before it.
    void takeOverBounds()
    {
        if (!m_memory)
            return;
        m_known = m_memory->boundsFor(m_rows, m_space.configurations);
        m_known.merge(m_memory->boundsFor(m_rows, m_nested));
        m_correction = m_memory->correctionFor(m_rows);
    }

    /// Configurations that need more memory than there is, whatever else is decided. Where that is all of
    /// them, those that need least stay, to be shown.
    Result<void> leaveOutWhatCannotFit()
    {
        std::vector<std::pair<std::int64_t, const Configuration *>> tooLarge;
        std::size_t hopeless = 0;
        for (const Configuration &each : m_space.configurations) {
            if (m_stop.stop_requested())
                return cancelled();
            if (const auto known = m_known.find(each); known != m_known.end()) {
                if (known->second.fits && !known->second.isNeedless)
                    m_open.push_back(&each);
                else if (!known->second.fits)
                    ++hopeless;
                continue;
            }
            // It takes time: of two plans that fit the one without is faster.
            if (each.recompute != RecomputeWord::None && !m_estimator->mayNeedRecompute(each, m_stop)) {
                m_known[each].isNeedless = true;
                continue;
            }
            const auto least = m_estimator->leastPeakOf(each);
            if (!least) {
                if (!m_problem)
                    m_problem = least.error();
                continue;
            }
            m_result.leastNeeded =
                m_result.leastNeeded == 0 ? *least : std::min(m_result.leastNeeded, *least);
            if (*least > m_space.memoryLimit)
                tooLarge.emplace_back(*least, &each);
            else
                m_open.push_back(&each);
        }
        if (!m_open.empty()) {
            for (const auto &[least, each] : tooLarge)
                m_known[*each].fits = false;
            if (m_tookOver && m_result.leastNeeded > m_space.memoryLimit)
                m_result.leastNeeded = 0; // of those that may fit it was not asked again
            return {};
        }
        if (hopeless > 0) { // all need to be looked at after all: those that need least are shown
            m_known.clear();
            tooLarge.clear();
            return leaveOutWhatCannotFit();
        }
        std::stable_sort(
            tooLarge.begin(), tooLarge.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        tooLarge.resize(std::min(tooLarge.size(), kTriedWithoutHope));
        for (const auto &[least, configuration] : tooLarge)
            m_open.push_back(configuration);
        return {};
    }

    /// Where what fits in the model did not in simulation: others that need less, however slow they are; of
    /// each mesh that which likely needs least.
    Result<void> priceThoseThatNeedLeast()
    {
        m_pricedLeast = true;
        std::map<std::array<std::int32_t, 3>, std::pair<double, const Configuration *>> ofMeshes;
        for (const Configuration *each : m_open)
            if (const auto least = m_estimator->leastPeakOf(*each)) {
                const double likely = static_cast<double>(*least) * m_correction.peakOf(*each);
                auto &own = ofMeshes[{each->replicas, each->ranks, each->shards}];
                // Small micro-batches take little on their way, which `leastPeakOf` does not count.
                const bool isNear = own.second && std::abs(likely - own.first) <= kNearPeak * own.first;
                if (!own.second
                    || (isNear ? each->microBatches > own.second->microBatches : likely < own.first))
                    own = {likely, each};
            }
        std::vector<std::pair<double, const Configuration *>> order;
        for (const auto &[mesh, least] : ofMeshes)
            order.push_back(least);
        std::stable_sort(
            order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        order.resize(std::min(order.size(), kTriedWhereNoneFitted));
        for (const auto &[least, each] : order)
            for (const double price : {kMemoryPrices.front(), kMemoryPrices.back()}) {
                auto estimate = m_estimator->estimate(*each, {price, 0}, m_stop);
                if (!estimate && estimate.error().code == ErrorCode::Cancelled)
                    return estimate.error();
                if (estimate)
                    keep(*std::move(estimate));
            }
        return {};
    }

    /// Seconds of the fastest plan priced that fits; infinite before there is one.
    double bestPrice() const
    {
        double best = std::numeric_limits<double>::infinity();
        for (const StepEstimate &each : m_priced)
            if (fits(each))
                best = std::min(best, each.seconds);
        return best;
    }

    /// Configurations of two shard axes that may beat their like with one.
    void findNested()
    {
        if (m_space.ownMesh)
            return;
        std::map<std::int32_t, std::vector<std::int32_t>> outer; // by shards
        for (const Configuration &each : m_space.configurations) {
            const auto [known, fresh] = outer.try_emplace(each.shards);
            if (fresh && each.shards > 3)
                known->second = m_estimator->outerShardsFor(each.shards);
            for (const std::int32_t parts : known->second) {
                m_nested.push_back(each);
                m_nested.back().outerShards = parts;
            }
        }
    }

    /// Those whose like with one axis is not far behind the best, the most promising ones.
    Result<void> priceNested()
    {
        const double best = bestPrice();
        std::map<Configuration, double> prices; // the least of each that fits
        for (const StepEstimate &each : m_priced)
            if (fits(each) && !m_nested.empty()) {
                double &price = prices.try_emplace(each.configuration, each.seconds).first->second;
                price = std::min(price, each.seconds);
            }
        std::vector<std::pair<double, const Configuration *>> order;
        for (const Configuration &each : m_nested) {
            Configuration like = each;
            like.outerShards = 1;
            const auto price = prices.find(like);
            const auto known = m_known.find(like);
            if (known == m_known.end() || known->second.likely == 0 || !known->second.fits)
                continue;
            // Of those that were not priced, no less than that is likely.
            const double seconds =
                price != prices.end() ? price->second : std::max(known->second.likely, best * (1 + kTrust));
            if (seconds <= best * (1 + kFarBehind))
                order.emplace_back(seconds, &each);
        }
        std::stable_sort(
            order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        std::vector<const Configuration *> open;
        double entriesLeft = m_tookOver ? kMostNestedEntriesOfAnEdit : kMostNestedEntries;
        std::set<std::array<std::int32_t, 4>> networks;
        for (const auto &[price, each] : order) {
            const auto known = m_known.find(*each);
            if (open.size() == (m_tookOver ? kMostNestedOfAnEdit : kMostNested))
                break;
            if (known != m_known.end() && !known->second.fits)
                continue;
            const std::array network{each->shards, each->outerShards, each->replicas, each->microBatches};
            if (!networks.contains(network)) {
                const auto entries = m_estimator->nestedEntriesOf(*each, m_stop);
                if (!entries || *entries > entriesLeft)
                    continue;
                entriesLeft -= *entries;
                networks.insert(network);
            }
            const auto kernels = m_estimator->kernelBoundOf(*each);
            const auto least = m_estimator->leastPeakOf(*each);
            if (kernels && *kernels <= best * (1 + kTrust) && least && *least <= m_space.memoryLimit)
                open.push_back(each);
        }
        for (const Configuration *each : open)
            for (const double reductions : {0.0, 1.0})
                TRY_VOID(priceAll({each}, {0, reductions}));
        // Of those that are not the best nothing is claimed.
        const double found = bestPrice();
        for (const Configuration *each : open)
            if (std::none_of(m_priced.begin(), m_priced.end(), [&](const StepEstimate &priced) {
                    return priced.configuration == *each && priced.seconds <= found;
                }))
                m_bounds.erase(*each);
        return {};
    }

    /// Prices every one of some configurations whose bound leaves it a chance.
    Result<void> priceAll(const std::vector<const Configuration *> &open, SearchPrices prices)
    {
        double best = std::numeric_limits<double>::infinity();
        double fastest = best; // in the model, as it is noted
        // Both as they would be simulated.
        const auto hasNoChance = [&](const Configuration &configuration, double bound) {
            return bound * m_correction.of(configuration, kTrust).least > best;
        };
        const auto corrected = [&](const StepEstimate &each) {
            return each.seconds * m_correction.of(each.configuration, kTrust).likely;
        };
        const auto consider = [&](const StepEstimate &each) {
            if (!fits(each))
                return;
            best = std::min(best, corrected(each));
            fastest = std::min(fastest, each.seconds);
        };
        for (const StepEstimate &each : m_priced)
            consider(each);
        std::vector<std::pair<double, const Configuration *>> looked; // at for the first time
        std::vector<std::pair<double, const Configuration *>> order;
        for (const Configuration *each : open)
            order.emplace_back(m_known.contains(*each) ? m_known[*each].likely : 0, each);
        const auto sort = [&] {
            std::stable_sort(
                order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        };
        // Those of which nothing is known are bounded first, so that the most promising one is priced first.
        for (auto &[likely, each] : order)
            if (likely == 0) {
                TRY(likely, boundsOf(*each));
            }
        sort();
        for (const auto &[known, configuration] : order) {
            if (hasNoChance(*configuration, known)) {
                if (const auto found = m_known.find(*configuration); found != m_known.end())
                    m_bounds.try_emplace(*configuration, found->second.proven);
                continue;
            }
            TRY(const double bound, boundsOf(*configuration));
            if (hasNoChance(*configuration, bound))
                continue;
            auto estimate = m_estimator->estimate(*configuration, prices, m_stop);
            if (!estimate) {
                if (estimate.error().code == ErrorCode::Cancelled)
                    return estimate.error();
                m_bounds.erase(*configuration); // its stages cannot be as rows say
                if (!m_problem)
                    m_problem = std::move(estimate).error();
                continue;
            }
            consider(*estimate);
            note(fastest, 0);
            if (m_isUsualPriced.insert(*configuration).second)
                looked.emplace_back(estimate->seconds, configuration);
            keep(*std::move(estimate));
        }
        for (const auto &[seconds, configuration] : looked) {
            if (hasNoChance(*configuration, seconds * (1 - kUsualGain)))
                continue;
            TRY(auto usual, m_estimator->estimateUsual(*configuration, m_stop));
            for (StepEstimate &each : usual) {
                consider(each);
                m_priced.push_back(std::move(each));
            }
        }
        return {};
    }

    /// Takes down what is proven of a configuration.
    /// @return what no partition of it is likely to be below; infinite where it cannot be planned
    Result<double> boundsOf(const Configuration &configuration)
    {
        auto likely = m_estimator->likelyBoundOf(configuration, m_stop);
        const auto proven = m_estimator->boundOf(configuration, m_stop);
        if (!likely || !proven) {
            if (!likely && likely.error().code == ErrorCode::Cancelled)
                return likely;
            if (!likely && !m_problem)
                m_problem = std::move(likely).error();
            return std::numeric_limits<double>::infinity();
        }
        KnownBound &known = m_known[configuration];
        known.likely = std::max(known.likely, *likely);
        known.proven = std::max(known.proven, *proven);
        m_bounds.try_emplace(configuration, known.proven);
        return known.likely;
    }

    void keep(StepEstimate estimate)
    {
        double &bound = m_bounds[estimate.configuration];
        bound = std::max(bound, estimate.bound);
        if (!fits(estimate) && m_estimator->problemOf(estimate.configuration).isDecided()
            && !m_space.sharding.isMixed())
            bound = std::numeric_limits<double>::infinity(); // there is no other partition
        m_priced.push_back(std::move(estimate));
    }

    /// Looks at the configuration of the lowest bound again, by the least times of its stages and then along
    /// its longest ways, until the bound of all is near the best price. What is looked at is priced on the
    /// way.
    Result<void> tighten()
    {
        std::set<Configuration> staged;
        std::map<Configuration, int> idlePaths; // that were looked at since its bound grew
        const double start = m_worked.seconds();
        std::set<std::pair<double, Configuration>> lowest;
        double best = bestPrice();
        for (const auto &[configuration, bound] : m_bounds)
            lowest.emplace(bound, configuration);
        const double closeEnough = m_tookOver ? kCloseEnoughAfterAnEdit : kCloseEnough;
        while (!lowest.empty() && lowest.begin()->first < best * (1 - closeEnough)
            && m_worked.seconds() - start < m_options.mostSeconds * kTighteningShare) {
            const Configuration configuration = lowest.begin()->second;
            note(best, std::min(best, lowest.begin()->first));
            lowest.erase(lowest.begin());
            double &proven = m_bounds[configuration];
            if (staged.insert(configuration).second) {
                const auto bound = m_estimator->stagedBoundOf(configuration, m_stop);
                if (!bound && bound.error().code == ErrorCode::Cancelled)
                    return bound.error();
                if (bound && bound->peakBytes > m_space.memoryLimit)
                    proven = std::numeric_limits<double>::infinity(); // none of its partitions fits
                else if (bound)
                    proven = std::max(proven, bound->seconds);
                lowest.emplace(proven, configuration);
                continue;
            }
            const double before = proven;
            auto estimate = m_estimator->estimateAlongPaths(configuration, m_stop);
            if (!estimate) {
                if (estimate.error().code == ErrorCode::Cancelled)
                    return estimate.error();
                m_bounds.erase(configuration); // its stages cannot be as rows say
                continue;
            }
            if (fits(*estimate))
                best = std::min(best, estimate->seconds);
            keep(*std::move(estimate));
            int &idle = idlePaths[configuration];
            idle = proven > before * (1 + kCloseEnough) ? 0 : idle + 1;
            if (idle < (m_tookOver ? kMostIdlePathsOfAnEdit : kMostIdlePaths)
                && !m_estimator->problemOf(configuration).isDecided())
                lowest.emplace(proven, configuration);
        }
        if (!lowest.empty())
            note(best, std::min(best, lowest.begin()->first));
        return m_tookOver ? Result<void>{} : lookCloser(best);
    }

    /// The model is not so exact that a configuration whose bound is hardly above the best price could not be
    /// faster in simulation: it is to be seen at its best, too.
    Result<void> lookCloser(double best)
    {
        std::map<Configuration, double> prices;
        for (const StepEstimate &each : m_priced) {
            double &price = prices.try_emplace(each.configuration, each.seconds).first->second;
            price = std::min(price, each.seconds);
        }
        std::vector<std::pair<double, Configuration>> open;
        for (const auto &[configuration, price] : prices)
            if (const auto bound = m_bounds.find(configuration); bound != m_bounds.end()
                && bound->second < best * (1 + kHardlyAbove) && price > best * (1 + kHardlyAbove))
                open.emplace_back(bound->second, configuration);
        std::sort(open.begin(), open.end());
        open.resize(std::min(open.size(), kMostLookedAtCloser));
        for (const auto &[bound, configuration] : open)
            for (int path = 0;
                 path < kCloserPaths && m_worked.seconds() < m_options.mostSeconds * kCloserUntil; ++path) {
                auto estimate = m_estimator->estimateAlongPaths(configuration, m_stop);
                if (!estimate && estimate.error().code == ErrorCode::Cancelled)
                    return estimate.error();
                if (!estimate)
                    break;
                keep(*std::move(estimate));
            }
        return {};
    }

    /// Those that may be fastest, the most promising first, while one of them may still be faster than the
    /// best; those that do not fit, by what they lack, where none fits.
    void simulateBest()
    {
        if (m_priced.empty())
            return;
        std::vector<const StepEstimate *> open;
        for (const StepEstimate &each : m_priced)
            open.push_back(&each);
        m_result.leastPeak = open.front()->peakBytes;
        for (const StepEstimate *each : open)
            m_result.leastPeak = std::min(m_result.leastPeak, each->peakBytes);
        auto &[simulated, failed, trust, done, tried] = m_tries;
        const auto close = [&open](const StepEstimate &each) {
            std::erase_if(open, [&](const StepEstimate *other) {
                return other->configuration == each.configuration
                    && std::abs(other->seconds - each.seconds) <= kSame * each.seconds
                    && other->peakBytes >= each.peakBytes;
            });
        };
        for (const StepEstimate &each : tried)
            close(each);
        const auto likelyPeak = [&](const StepEstimate *each) {
            return static_cast<double>(each->peakBytes) * m_correction.peakOf(each->configuration);
        };
        const auto mayFit = [&](const StepEstimate *each) {
            return likelyPeak(each) <= static_cast<double>(m_space.memoryLimit);
        };
        const auto likely = [&](const StepEstimate *each) {
            return mayFit(each) ? each->seconds * m_correction.of(each->configuration, trust).likely
                                : likelyPeak(each);
        };
        // Another partition of what was simulated tells little where it is not likely to be faster.
        const auto isAgain = [&](const StepEstimate *each) {
            return m_result.fits && likely(each) >= m_result.best.simulatedSeconds
                && std::any_of(tried.begin(), tried.end(),
                    [&](const StepEstimate &other) { return other.configuration == each->configuration; });
        };
        const auto rank = [&](const StepEstimate *each) {
            if (m_pricedLeast && !m_result.fits) // whatever fits
                return std::tuple{false, false, likelyPeak(each)};
            return std::tuple{!mayFit(each), isAgain(each), likely(each)};
        };
        const auto mayBeBest = [&](const StepEstimate *each) {
            return !m_result.fits
                || ((fits(*each) || mayFit(each))
                    && each->seconds * m_correction.of(each->configuration, trust).least
                        < m_result.best.simulatedSeconds);
        };
        while (!m_stop.stop_requested() && failed < 2 * m_options.mostSimulated
            && simulated < mostSimulatedNow()) {
            std::erase_if(open, [&](const StepEstimate *each) { return !mayBeBest(each); });
            if (open.empty())
                break;
            const auto best = [&] {
                return *std::min_element(open.begin(), open.end(),
                    [&](const StepEstimate *a, const StepEstimate *b) { return rank(a) < rank(b); });
            };
            const StepEstimate *each = best();
            close(*each);
            tried.push_back(*each);
            auto rows = rowsFor(*each);
            if (!rows || !done.insert(print(*rows)).second)
                continue;
            if (m_options.threads > 1 && !m_trials.isBegun())
                beginNext(open, best, likely(each), trust, done);
            const auto outcome = simulateOne(*each, *std::move(rows));
            ++(outcome ? simulated : failed);
            if (outcome && outcome->simulatedSeconds > 0) {
                trust = std::max(trust, std::min(0.5, 1 - outcome->simulatedSeconds / outcome->seconds));
                m_correction.learn(each->configuration, outcome->seconds, outcome->simulatedSeconds);
                m_correction.learnPeak(each->configuration, static_cast<double>(outcome->peakBytes),
                    static_cast<double>(outcome->simulatedPeak));
            }
        }
        m_trials.drop();
    }

    std::int32_t mostSimulatedNow() const
    {
        const double worked = m_worked.seconds();
        if (m_tries.simulated >= kLeastSimulated && !m_result.fits && !m_pricedLeast)
            return 0; // others need less
        if (worked < m_options.mostSeconds * (m_pricedLeast ? kUntilOneFits : 1))
            return m_options.mostSimulated;
        return std::min(m_options.mostSimulated,
            worked < kLate * m_options.mostSeconds ? kLeastSimulated : kLeastSimulatedLate);
    }

    /// On another thread the plan that will most likely be simulated next, if it will.
    /// @param expected  seconds of the one that is simulated meanwhile
    template<typename Best>
    void beginNext(const std::vector<const StepEstimate *> &open, const Best &best, double expected,
        double trust, const std::set<std::string> &done)
    {
        if (open.empty())
            return;
        const StepEstimate *next = best();
        if (m_result.fits || fits(*next)) {
            if (m_result.fits)
                expected = std::min(expected, m_result.best.simulatedSeconds);
            if (next->seconds * m_correction.of(next->configuration, trust).least >= expected)
                return;
        }
        const auto rows = rowsFor(*next);
        if (rows && !done.contains(print(*rows)) && !(m_memory && m_memory->outcomeOf(keyOf(*rows))))
            m_trials.begin(*rows);
    }

    Result<ConstraintTable> rowsFor(const StepEstimate &estimate) const
    {
        return rowsOf(estimate, m_estimator->problemOf(estimate.configuration),
            m_estimator->placedIn(estimate.configuration), m_model, m_space, m_rows);
    }

    std::optional<SearchedPlan> simulateOne(const StepEstimate &estimate, ConstraintTable rows)
    {
        SearchedPlan tried{estimate.configuration, estimate.seconds, estimate.peakBytes, 0, 0, now()};
        tried.rows = std::make_shared<const ConstraintTable>(rows);
        auto outcome = this->tried(rows);
        if (!outcome) {
            if (!m_problem)
                m_problem = std::move(outcome).error();
            return std::nullopt;
        }
        tried.simulatedSeconds = outcome->step.seconds;
        tried.simulatedPeak = outcome->step.peak;
        tried.at = now();
        m_simulated.push_back(tried);
        const bool fits = tried.simulatedPeak <= m_space.memoryLimit && keepsTraffic(outcome->step);
        const bool better = !m_found || (fits && !m_result.fits)
            || (fits == m_result.fits
                && (fits ? tried.simulatedSeconds < m_result.best.simulatedSeconds
                         : tried.simulatedPeak < m_result.best.simulatedPeak));
        if (better) {
            m_found = true;
            m_result.rows = std::move(rows);
            m_result.plan = std::move(outcome->plan);
            m_result.materialized = std::move(outcome->materialized);
            m_result.figures = std::move(outcome->figures);
            m_result.best = tried;
            m_result.fits = fits;
            if (m_options.onBetter) {
                finish();
                m_options.onBetter(m_result);
            }
        }
        return tried;
    }

    /// Links that the cluster does not have are the plan's to complain of.
    bool keepsTraffic(const TimedStep &step) const
    {
        return std::all_of(
            m_space.trafficLimits.begin(), m_space.trafficLimits.end(), [&](const LimitRule &limit) {
                return mostCarried(Bytes{step.sent}, step.links, limit.links).value_or(Bytes{}).count
                    <= limit.value;
            });
    }

    /// Of a plan's outcome in what is remembered: its rows.
    std::string keyOf(const ConstraintTable &rows) const
    {
        std::string key;
        for (const Row &row : m_rows.rows)
            if (row.enabled)
                key += print(row) + "\n";
        return key + print(rows);
    }

    /// The plan that rows make, as tried; without it where only its step is remembered.
    Result<TriedPlan> tried(const ConstraintTable &rows)
    {
        if (!m_memory)
            return m_trials.of(rows);
        std::string key = keyOf(rows);
        if (const TimedStep *known = m_memory->outcomeOf(key))
            return TriedPlan{.step = *known};
        TRY(TriedPlan outcome, m_trials.of(rows));
        m_memory->remember(std::move(key), outcome.step);
        return outcome;
    }

    void finish()
    {
        m_result.bound = m_result.best.seconds;
        if (const auto best = m_known.find(m_result.best.configuration);
            best != m_known.end() && !m_bounds.contains(best->first))
            m_result.bound = std::min(m_result.bound, best->second.proven);
        for (const auto &[configuration, bound] : m_bounds)
            m_result.bound = std::min(m_result.bound, bound);
        // Several prices lead to one partition, and partitions of one price are told apart by simulation
        // alone.
        const auto same = [](const SearchedPlan &a, const SearchedPlan &b) {
            return a.seconds == b.seconds && a.peakBytes == b.peakBytes && a.configuration == b.configuration;
        };
        m_result.seen = m_simulated;
        for (const StepEstimate &each : m_priced) {
            const SearchedPlan priced{each.configuration, each.seconds, each.peakBytes};
            if (std::none_of(m_result.seen.begin(), m_result.seen.end(),
                    [&](const SearchedPlan &seen) { return same(seen, priced); }))
                m_result.seen.push_back(priced);
        }
        std::stable_sort(
            m_result.seen.begin(), m_result.seen.end(), [](const SearchedPlan &a, const SearchedPlan &b) {
                return std::tie(a.seconds, a.peakBytes, a.configuration)
                    < std::tie(b.seconds, b.peakBytes, b.configuration);
            });
        m_result.searchSeconds = now();
    }

    const Model &m_model;
    const Cluster &m_cluster;
    const std::int32_t m_deviceCount;
    const ConstraintTable &m_rows;
    CostModel m_costs; ///< What collectives take is remembered.
    const SearchOptions &m_options;
    const std::stop_token &m_stop;
    const std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
    const WorkClock m_worked{}; ///< What is cut short by time does not depend on what runs beside it.
    SearchSpace m_space{};
    std::unique_lock<std::mutex> m_lock{};
    SearchMemory::Kept *m_memory = nullptr; ///< While it is this search's.
    std::unique_ptr<StepEstimator> m_own{}; ///< Where nothing is remembered.
    StepEstimator *m_estimator = nullptr;
    KnownBounds m_known{}; ///< From searches before, and from this one.
    bool m_pricedLeast = false; ///< See `priceThoseThatNeedLeast`.
    bool m_tookOver = false; ///< Some are from searches before.
    std::vector<Configuration> m_nested{}; ///< With a second shard axis; beside those of the space.
    std::vector<const Configuration *> m_open{}; ///< Of the space, that may fit.
    std::vector<StepEstimate> m_priced{};
    std::set<Configuration> m_isUsualPriced{}; ///< Also with the partitions that people use.
    std::map<Configuration, double> m_bounds{}; ///< Of all configurations that hold.
    std::vector<SearchedPlan> m_simulated{};
    struct Tries {
        std::int32_t simulated = 0;
        std::int32_t failed = 0; ///< To be planned: what rows place apart need not go with every schedule.
        double trust = kTrust;
        std::set<std::string> done{}; ///< Rows.
        std::vector<StepEstimate> tried{};
    };
    Tries m_tries{};
    Correction m_correction{};
    std::optional<Error> m_problem{};
    SearchResult m_result{};
    bool m_found = false;
    PlanTrials m_trials{{m_model, m_cluster, m_deviceCount, m_rows, m_costs, m_options.precision, m_stop}};
};

Result<SearchResult> searchPlan(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    const ConstraintTable &rows, const CostModel &costs, const SearchOptions &options,
    const std::stop_token &stop)
{
    return PlanSearch(model, cluster, deviceCount, rows, costs, options, stop).run();
}

} // namespace planloom
