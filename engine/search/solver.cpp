#include "engine/search/solver.h"

#include "engine/base/processor_time.h"
#include "engine/hardware/remembered_costs.h"
#include "engine/search/bound_tightening.h"
#include "engine/search/plan_improvement.h"
#include "engine/search/search_memory.h"
#include "engine/search/simulated_plans.h"
#include "engine/search/space_pricing.h"
#include "engine/search/time/step_estimate.h"
#include "engine/table/selector_matcher.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// Partitions of one configuration whose prices are as near differ in what does not matter.
constexpr double kSame = 2e-4;

/// Plans that are simulated however long it takes: of the first alone it is not known how far the model is
/// off.
constexpr std::int32_t kLeastSimulated = 4;
/// Of models so large that a multiple of the time for simulations has passed.
constexpr std::int32_t kLeastSimulatedLate = 2;
constexpr double kLate = 2;
/// How much longer plans are simulated where none of the first had fitted.
constexpr double kUntilOneFits = 4;
/// How often others are looked for, of configurations whose plans did not quite fit in simulation.
constexpr int kMostRefitted = 3;
/// Where nothing fits, the fastest plan is shown of those that hold at most so much more than the least, if
/// it is by so much faster.
constexpr double kLittleMore = 0.1;
constexpr double kMuchFaster = 0.2;
constexpr std::int32_t kSimulatedOfTheLeast = 2;
constexpr double kShareForTheLeast = 0.3; ///< Of the time for simulations.
/// By so much less a plan holds in simulation where others of its configuration may that the model refuses.
constexpr double kHoldsLess = 0.02;
/// Where a search is not waited for, what was found is looked at closer until it has taken so many times as
/// long, or `SearchOptions::mostSeconds`.
constexpr double kLonger = 1.2;
} // namespace

/// One search.
class PlanSearch
{
public:
    /// Instead of what devices and rows say.
    struct Instead {
        std::int64_t memoryLimit = 0;
        double seconds = 0; ///< It is only asked for plans that are faster.
    };
    PlanSearch(const SearchRequest &request, const CostModel &costs,
        const std::optional<Instead> &instead = std::nullopt)
        : m_request(request)
        , m_model(request.model)
        , m_rows(request.rows)
        , m_options(request.options)
        , m_stop(request.stop)
        , m_costs(costs)
        , m_instead(instead)
    {
    }

    Result<SearchResult> run()
    {
        TRY(m_space, searchSpaceOf(m_model, m_request.cluster, m_request.deviceCount, m_rows));
        if (m_instead)
            m_space.memoryLimit = m_instead->memoryLimit;
        m_result.configurations = static_cast<std::int64_t>(m_space.configurations.size());
        m_result.memoryLimit = m_space.memoryLimit;
        TRY_VOID(findEstimator());
        if (const SearchResult *known = m_memory ? m_memory->resultOf(m_rows) : nullptr) {
            m_result = *known;
            m_result.searchSeconds = now();
            if (m_options.onBetter)
                m_options.onBetter(m_result);
            return std::move(m_result);
        }
        begin();
        TRY_VOID(m_pricing->price());
        if (m_instead && !anyIsBelow(m_instead->seconds))
            return Error{ErrorCode::InvalidInput, "no plan is faster", {}, "search"};
        // After an edit, which is waited for, where that was better before it.
        if (!m_memory || !m_pricing->tookOver() || m_memory->unequalHelped())
            TRY_VOID(m_pricing->priceUnequal());
        m_result.leastNeeded = m_pricing->leastNeeded();
        TRY_VOID(findBest());
        TRY_VOID(improve());
        if (m_memory) {
            m_memory->correctionFor(m_rows) = m_plans->correction();
            m_memory->rememberSimulated(m_rows, simulatedLeast());
        }
        if (!m_plans->isFound()) {
            const auto &problem =
                m_pricing->book().problem() ? m_pricing->book().problem() : m_plans->problem();
            return problem && !m_stop.stop_requested() ? *problem : cancelled();
        }
        finish();
        if (m_result.cannotFit() && !m_instead)
            showFastestOfTheLeast();
        if (m_memory && !m_pricing->tookOver())
            m_memory->rememberUnequal(m_result.best.configuration.isUnequal());
        if (m_memory && !m_stop.stop_requested())
            m_memory->remember(m_rows, m_result);
        return std::move(m_result);
    }

private:
    /// Makes what prices and what simulates, with what is remembered.
    void begin()
    {
        m_estimator->beginSearch();
        m_plans.emplace(
            SimulatedPlans::Setting{m_request, m_space, *m_estimator, m_costs, m_memory, m_result, [this] {
                                        if (m_options.onBetter) {
                                            finish();
                                            m_options.onBetter(m_result);
                                        }
                                    }});
        m_pricing.emplace(SpacePricing::Setting{.estimator = m_estimator,
            .space = &m_space,
            .correction = &m_plans->correction(),
            .worked = &m_worked,
            .mostSeconds = m_options.mostSeconds,
            .note = [this](double best, double bound) { note(best, bound); },
            .stop = m_stop});
        if (!m_memory)
            return;
        const auto boundsFor = [this](const std::vector<Configuration> &configurations) {
            return m_memory->boundsFor(m_rows, configurations, m_space.memoryLimit,
                [this](const Row &row) { return outputBytesOf(row.selector); });
        };
        KnownBounds known = boundsFor(m_space.configurations);
        known.merge(boundsFor(m_pricing->nested()));
        m_pricing->takeOver(std::move(known));
        m_plans->correction() = m_memory->correctionFor(m_rows);
    }

    /// The best plan of the space, by pricing and simulating in turns.
    Result<void> findBest()
    {
        // After an edit the plan is what is waited for: it is shown with the bounds that there are.
        if (m_pricing->tookOver())
            simulateBest();
        TRY_VOID(BoundTightening(*m_pricing).tighten());
        if (m_memory)
            m_memory->remember(m_rows, m_pricing->book().known(), m_pricing->book().bounds());
        if (m_pricing->book().priced().empty())
            return m_pricing->book().problem().value_or(
                Error{ErrorCode::InvalidInput, "no configuration holds with the rows", {}, "search"});
        simulateBest();
        for (int i = 0; i < kMostRefitted && !m_stop.stop_requested()
             && (priceThoseThatHeldMore() || priceThoseThatMayHoldLess());
             ++i)
            simulateBest();
        if (m_plans->isFound() && !m_result.fits && !m_result.cannotFit()) {
            TRY_VOID(m_pricing->priceThoseThatNeedLeast());
            m_pricedLeast = true;
            simulateBest();
        }
        const Configuration &best = m_result.best.configuration;
        if (m_plans->isFound() && m_result.fits && !m_pricing->tookOver() && !best.isUnequal()
            && !best.inTurns && !m_pricing->book().bounds().contains(best)) {
            TRY_VOID(BoundTightening(*m_pricing).boundAlso(Configuration(best)));
            simulateBest();
        }
        return {};
    }

    /// What is found from the best plan on, and what tells more of all.
    Result<void> improve()
    {
        PlanImprovement improvement({m_request, m_space, *m_estimator, *m_pricing, *m_plans, m_worked});
        if (m_memory && m_pricing->tookOver())
            improvement.tryRelatives(*m_memory);
        if (!m_plans->isFound() || m_pricing->tookOver())
            return {};
        const double worked = kLonger * m_worked.seconds();
        if (!m_instead) {
            improvement.lookBeside(worked);
            if (m_result.fits)
                m_result.leastNeeded = std::min(m_result.leastNeeded, m_result.best.simulatedPeak);
        }
        if (m_result.fits) {
            improvement.tightenBounds(std::max(m_options.mostSeconds, worked));
            improvement.moveStages(std::max(m_options.mostSeconds, worked));
        }
        return {};
    }

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
            m_memory->use(
                m_model.graph, m_request.cluster, m_request.deviceCount, m_options.precision, m_costs);
            m_costs = m_memory->costs();
            m_estimator = m_memory->estimatorOf(key);
            if (m_estimator)
                return {};
        }
        if (!m_memory)
            m_costs = withRememberedCollectives(std::move(m_costs));
        TRY(auto made,
            StepEstimator::make(m_model, m_request.cluster, m_request.deviceCount, m_rows, m_space, m_costs,
                m_options.precision, m_memory ? m_memory->usual() : nullptr));
        m_estimator = made.get();
        if (m_memory)
            m_memory->remember(std::move(key), std::move(made));
        else
            m_own = std::move(made);
        return {};
    }

    /// Takes down how far the search is. @param bound  0: not all were bounded
    void note(double best, double bound)
    {
        SearchMoment moment{now(), std::isfinite(best) ? best : 0, std::isfinite(bound) ? bound : 0};
        if (m_result.course.empty() || m_result.course.back().best != moment.best
            || m_result.course.back().bound != moment.bound)
            m_result.course.push_back(moment);
    }

    double now() const { return m_request.secondsSinceBegin(); }

    /// Of what operators make of a whole batch.
    double outputBytesOf(const Selector &selector) const
    {
        double bytes = 0;
        for (const OperatorId op : forwardSelected(*m_model.index, selector))
            for (const TensorId output : m_model.graph->at(op).outputs)
                if (output.valid()) {
                    const TensorType &type = m_model.graph->at(output).type;
                    bytes += static_cast<double>(elementCount(type.shape) * sizeOf(type.dataType));
                }
        return bytes;
    }

    double likelyPeak(const StepEstimate &each) const
    {
        return static_cast<double>(each.peakBytes) * m_plans->correction().peakOf(each.configuration);
    }
    bool mayFit(const StepEstimate &each) const
    {
        return likelyPeak(each) <= static_cast<double>(m_space.memoryLimit);
    }
    /// What it likely takes when simulated.
    Correction::Range factorOf(const StepEstimate &each) const
    {
        return m_plans->correction().of(each.configuration, m_plans->trust());
    }
    /// Seconds of what may fit, bytes of what does not.
    double likely(const StepEstimate &each) const
    {
        return mayFit(each) ? each.seconds * factorOf(each).likely : likelyPeak(each);
    }

    bool mayBeBest(const StepEstimate &each) const
    {
        if (!m_result.fits)
            return true;
        const double best = m_result.best.simulatedSeconds;
        // After an edit, which is waited for, what is likely counts: simulations before it have shown how far
        // the model is off.
        const auto factor = factorOf(each);
        const double hoped = each.seconds * (m_pricing->tookOver() ? factor.likely : factor.least);
        return (m_pricing->book().fits(each) || mayFit(each)) && leastBefore(each.configuration) < best
            && hoped < best;
    }

    /// Before which others an estimate is simulated: the least first.
    std::tuple<bool, bool, double> rankOf(const StepEstimate &each) const
    {
        if (m_pricedLeast && !m_result.fits) // whatever fits
            return {false, false, likelyPeak(each)};
        // Another partition of what was simulated tells little where it is not likely to be faster.
        const auto &tried = m_plans->tried();
        const bool isAgain = m_result.fits && likely(each) >= m_result.best.simulatedSeconds
            && std::any_of(tried.begin(), tried.end(),
                [&](const StepEstimate &other) { return other.configuration == each.configuration; });
        return {!mayFit(each), isAgain, likely(each)};
    }

    /// Those that may be fastest, the most promising first, while one of them may still be faster than the
    /// best; those that do not fit, by what they lack, where none fits.
    void simulateBest()
    {
        if (m_pricing->book().priced().empty())
            return;
        std::vector<const StepEstimate *> open;
        for (const StepEstimate &each : m_pricing->book().priced())
            open.push_back(&each);
        m_result.leastPeak = open.front()->peakBytes;
        for (const StepEstimate *each : open)
            m_result.leastPeak = std::min(m_result.leastPeak, each->peakBytes);
        const auto close = [&open](const StepEstimate &each) {
            std::erase_if(open, [&](const StepEstimate *other) {
                return other->configuration == each.configuration
                    && std::abs(other->seconds - each.seconds) <= kSame * each.seconds
                    && other->peakBytes >= each.peakBytes;
            });
        };
        for (const StepEstimate &each : m_plans->tried())
            close(each);
        const auto first = [&] {
            return *std::min_element(open.begin(), open.end(),
                [&](const StepEstimate *a, const StepEstimate *b) { return rankOf(*a) < rankOf(*b); });
        };
        while (!m_stop.stop_requested() && m_plans->failed() < 2 * m_options.mostSimulated
            && m_plans->learnt() < mostSimulatedNow()) {
            std::erase_if(open, [&](const StepEstimate *each) { return !mayBeBest(*each); });
            if (open.empty())
                break;
            const StepEstimate *each = first();
            close(*each);
            m_plans->addTried(*each);
            auto rows = m_plans->rowsFor(*each);
            if (!rows || !m_plans->isNew(*rows))
                continue;
            if (m_options.threads > 1 && !m_plans->isBegun() && !open.empty())
                beginNext(*first(), likely(*each));
            m_plans->learnFrom(*each, *std::move(rows), m_pricing->book().provenOf(*each));
        }
        m_plans->dropBegun();
    }

    /// On another thread the plan that will most likely be simulated next, if it will.
    /// @param expected  seconds of the one that is simulated meanwhile
    void beginNext(const StepEstimate &next, double expected)
    {
        if (m_result.fits || m_pricing->book().fits(next)) {
            if (m_result.fits)
                expected = std::min(expected, m_result.best.simulatedSeconds);
            if (next.seconds * factorOf(next).least >= expected)
                return;
        }
        if (const auto rows = m_plans->rowsFor(next))
            m_plans->begin(*rows);
    }

    PricedSpace::Bound lowestBound() const
    {
        return m_pricing->book().boundBeside(m_result.best.configuration, m_result.best.simulatedSeconds);
    }

    /// Rows that were added do not make plans faster: what a search without them had found out of a
    /// configuration, also where what is computed again has the model be wrong otherwise than before.
    double leastBefore(const Configuration &configuration) const
    {
        const auto known = m_pricing->book().known().find(configuration);
        return known == m_pricing->book().known().end() ? 0 : known->second.simulatedLeast;
    }

    /// By configuration: seconds that what was priced of it is not likely to be below when simulated.
    std::map<Configuration, double> simulatedLeast() const
    {
        std::map<Configuration, double> least;
        for (const StepEstimate &each : m_pricing->book().priced()) {
            if (each.configuration.isUnequal()) // no configuration of the space's
                continue;
            const double seconds = each.seconds * factorOf(each).least;
            const auto [known, isNew] = least.try_emplace(each.configuration, seconds);
            if (!isNew)
                known->second = std::min(known->second, seconds);
        }
        return least;
    }

    /// Configurations whose plans fit in the model, but not in simulation, with partitions that hold as much
    /// less; where they may be faster than the best.
    /// @return whether there is one
    bool priceThoseThatHeldMore()
    {
        bool found = false;
        for (const SearchedPlan &tried : m_plans->all()) {
            const auto held = static_cast<double>(tried.simulatedPeak);
            const auto limit = static_cast<double>(m_space.memoryLimit);
            if (tried.configuration.isUnequal() || held <= limit || tried.peakBytes > m_space.memoryLimit
                || (m_result.fits && tried.seconds >= m_result.best.simulatedSeconds)
                || !m_refitted.insert({tried.configuration, tried.peakBytes}).second)
                continue;
            const auto within =
                static_cast<std::int64_t>(limit * static_cast<double>(tried.peakBytes) / held);
            const auto estimate = m_pricing->priceWithin(tried.configuration, within);
            found = found || (estimate && estimate->peakBytes <= within);
        }
        return found;
    }

    /// The best plan's configuration with partitions that the model takes for too large, where it took the
    /// plan for larger than it was in simulation, too.
    /// @return whether there may be a faster one
    bool priceThoseThatMayHoldLess()
    {
        const SearchedPlan best = m_result.best;
        if (best.configuration.isUnequal())
            return false;
        const auto limit = static_cast<double>(m_space.memoryLimit);
        const double larger = static_cast<double>(best.peakBytes) / static_cast<double>(best.simulatedPeak);
        const auto within = static_cast<std::int64_t>(limit * larger);
        if (!m_result.fits || m_pricing->tookOver() || larger < 1 + kHoldsLess
            || !m_refitted.insert({best.configuration, within}).second)
            return false;
        const auto fastest = m_estimator->estimate(best.configuration, 0, m_stop);
        if (!fastest || m_pricing->book().fits(*fastest))
            return false;
        const auto found = m_pricing->priceAlongPaths(best.configuration, within);
        return found && *found < best.seconds;
    }

    std::int32_t mostSimulatedNow() const
    {
        const double worked = m_worked.seconds();
        if (m_result.cannotFit())
            return std::min(m_options.mostSimulated, kSimulatedOfTheLeast);
        if (m_plans->learnt() >= kLeastSimulated && !m_result.fits && !m_pricedLeast)
            return 0; // others need less
        if (worked < m_options.mostSeconds * (m_pricedLeast ? kUntilOneFits : 1))
            return m_options.mostSimulated;
        return std::min(m_options.mostSimulated,
            worked < kLate * m_options.mostSeconds ? kLeastSimulated : kLeastSimulatedLate);
    }

    bool anyIsBelow(double seconds) const
    {
        const auto &priced = m_pricing->book().priced();
        return std::any_of(priced.begin(), priced.end(),
            [&](const StepEstimate &each) { return m_pricing->book().fits(each) && each.seconds < seconds; });
    }

    /// Where nothing fits: of plans that need little more than the one found to need least, some may be
    /// several times as fast.
    void showFastestOfTheLeast()
    {
        m_result.materialized = nullptr;
        m_result.plan = nullptr;
        const double begin = now();
        const auto limit =
            static_cast<std::int64_t>(static_cast<double>(m_result.best.simulatedPeak) * (1 + kLittleMore));
        const Instead instead{limit, m_result.best.simulatedSeconds * (1 - kMuchFaster)};
        const auto asShown = [&](SearchResult found) {
            found.fits = false;
            found.configurations = m_result.configurations;
            found.memoryLimit = m_result.memoryLimit;
            found.leastNeeded = m_result.leastNeeded;
            found.leastPeak = m_result.leastPeak;
            for (SearchedPlan &each : found.seen)
                each.at += begin;
            for (SearchMoment &each : found.course)
                each.at += begin;
            found.best.at += begin;
            found.searchSeconds = now();
            return found;
        };
        SearchOptions options = m_options;
        options.memory = nullptr; // what is remembered is of the devices' own memory
        options.mostSimulated = std::min(options.mostSimulated, kSimulatedOfTheLeast);
        options.mostSeconds *= kShareForTheLeast;
        if (m_options.onBetter)
            options.onBetter = [&](const SearchResult &found) {
                if (found.fits)
                    m_options.onBetter(asShown(found));
            };
        auto found = PlanSearch(
            {m_model, m_request.cluster, m_request.deviceCount, m_rows, options, m_stop}, m_costs, instead)
                         .run();
        if (found && found->fits && found->best.simulatedSeconds < instead.seconds)
            m_result = asShown(*std::move(found));
        m_result.searchSeconds = now();
    }

    void finish()
    {
        m_result.modelBound =
            m_pricing->book().modelBoundBeside(m_result.best.configuration, m_result.best.seconds);
        m_result.bound = lowestBound().seconds;
        // Several prices lead to one partition, and partitions of one price are told apart by simulation
        // alone.
        const auto same = [](const SearchedPlan &a, const SearchedPlan &b) {
            return a.seconds == b.seconds && a.peakBytes == b.peakBytes && a.configuration == b.configuration;
        };
        m_result.seen = m_plans->all();
        for (const StepEstimate &each : m_pricing->book().priced()) {
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

    const SearchRequest m_request;
    const Model &m_model;
    const ConstraintTable &m_rows;
    const SearchOptions &m_options;
    const std::stop_token &m_stop;
    CostModel m_costs; ///< What collectives take is remembered.
    const std::optional<Instead> m_instead;
    const WorkClock m_worked{}; ///< What is cut short by time does not depend on what runs beside it.
    SearchSpace m_space{};
    std::unique_lock<std::mutex> m_lock{};
    SearchMemory::Kept *m_memory = nullptr; ///< While it is this search's.
    std::unique_ptr<StepEstimator> m_own{}; ///< Where nothing is remembered.
    StepEstimator *m_estimator = nullptr;
    bool m_pricedLeast = false; ///< See `priceThoseThatNeedLeast`.
    std::set<std::pair<Configuration, std::int64_t>> m_refitted{}; ///< And the peak of the plan.
    SearchResult m_result{};
    std::optional<SimulatedPlans> m_plans{}; ///< Once there is an estimator, as the next.
    std::optional<SpacePricing> m_pricing{};
};

Result<SearchResult> searchPlan(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    const ConstraintTable &rows, const CostModel &costs, const SearchOptions &options,
    const std::stop_token &stop)
{
    return PlanSearch({model, cluster, deviceCount, rows, options, stop}, costs).run();
}

} // namespace planloom
