#include "engine/search/solver.h"

#include "engine/base/processor_time.h"
#include "engine/hardware/remembered_costs.h"
#include "engine/lowering/layout/path_finder.h"
#include "engine/search/plan_trials.h"
#include "engine/search/plans_beside.h"
#include "engine/search/search_memory.h"
#include "engine/search/search_rows.h"
#include "engine/search/space_pricing.h"
#include "engine/search/stages/unequal_rows.h"
#include "engine/search/time/step_estimate.h"
#include "engine/simulate/link_traffic.h"
#include "engine/table/selector_matcher.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <chrono>
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
/// So many plans are tried with other stages, of those that are slower than the best by no more than this;
/// and so many stages of each.
constexpr std::size_t kMostPlansMoved = 6;
constexpr double kWorthMoving = 0.08;
constexpr int kMostStagesMoved = 12;
/// A bound so near to the best step is not made tighter.
constexpr double kNearEnough = 0.04;
constexpr int kMostTightened = 100; ///< Plans that are simulated for the sake of the bound.
/// Plans beside the space that are tried, and where memory is dear.
constexpr int kMostBeside = 4;
constexpr int kMostBesideWhereDear = 16;
/// A plan that holds so many times what there is is tried again with all layers computed again.
constexpr double kFarTooLarge = 1.5;
constexpr std::size_t kMostRelatives = 2; ///< Plans of before an edit that are tried.

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
    PlanSearch(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
        const ConstraintTable &rows, const CostModel &costs, const SearchOptions &options,
        const std::stop_token &stop, const std::optional<Instead> &instead = std::nullopt)
        : m_model(model)
        , m_cluster(cluster)
        , m_deviceCount(deviceCount)
        , m_rows(rows)
        , m_costs(costs)
        , m_options(options)
        , m_stop(stop)
        , m_instead(instead)
    {
    }

    Result<SearchResult> run()
    {
        TRY(m_space, searchSpaceOf(m_model, m_cluster, m_deviceCount, m_rows));
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
        m_pricing.emplace(SpacePricing::Setting{.estimator = m_estimator,
            .space = &m_space,
            .correction = &m_correction,
            .worked = &m_worked,
            .mostSeconds = m_options.mostSeconds,
            .note = [this](double best, double bound) { note(best, bound); },
            .stop = m_stop});
        takeOverBounds();
        TRY_VOID(m_pricing->price());
        if (m_instead && !anyIsBelow(m_instead->seconds))
            return Error{ErrorCode::InvalidInput, "no plan is faster", {}, "search"};
        // After an edit, which is waited for, where that was better before it.
        if (!m_memory || !m_pricing->tookOver() || m_memory->unequalHelped())
            TRY_VOID(m_pricing->priceUnequal());
        m_result.leastNeeded = m_pricing->leastNeeded();
        // After an edit the plan is what is waited for: it is shown with the bounds that there are.
        if (m_pricing->tookOver())
            simulateBest();
        TRY_VOID(m_pricing->tighten());
        if (m_memory)
            m_memory->remember(m_rows, m_pricing->known(), m_pricing->bounds());
        if (m_pricing->priced().empty())
            return m_pricing->problem().value_or(
                Error{ErrorCode::InvalidInput, "no configuration holds with the rows", {}, "search"});
        simulateBest();
        for (int i = 0; i < kMostRefitted && !m_stop.stop_requested()
             && (priceThoseThatHeldMore() || priceThoseThatMayHoldLess());
             ++i)
            simulateBest();
        if (m_found && !m_result.fits && !m_result.cannotFit()) {
            TRY_VOID(m_pricing->priceThoseThatNeedLeast());
            m_pricedLeast = true;
            simulateBest();
        }
        if (m_found && m_result.fits && !m_pricing->tookOver() && !m_result.best.configuration.isUnequal()
            && !m_result.best.configuration.inTurns
            && !m_pricing->bounds().contains(m_result.best.configuration)) {
            TRY_VOID(m_pricing->boundAlso(m_result.best.configuration));
            simulateBest();
        }
        if (m_memory && m_pricing->tookOver())
            simulateRelatives();
        if (m_found && !m_pricing->tookOver()) {
            const double worked = kLonger * m_worked.seconds();
            if (!m_instead)
                lookBeside(worked);
            if (m_result.fits) {
                tightenBySimulation(std::max(m_options.mostSeconds, worked));
                moveStages(std::max(m_options.mostSeconds, worked));
            }
        }
        if (m_memory) {
            m_memory->correctionFor(m_rows) = m_correction;
            m_memory->rememberSimulated(m_rows, simulatedLeast());
        }
        if (!m_found) {
            const auto &problem = m_pricing->problem() ? m_pricing->problem() : m_problem;
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
    struct Simulated {
        double seconds = 0;
        StepEstimate estimate{};
    };

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
            m_paths = m_memory->paths();
            m_seen = m_memory->seen();
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

    void takeOverBounds()
    {
        if (!m_memory)
            return;
        const auto boundsFor = [this](const std::vector<Configuration> &configurations) {
            return m_memory->boundsFor(m_rows, configurations, m_space.memoryLimit,
                [this](const Row &row) { return outputBytesOf(row.selector); });
        };
        KnownBounds known = boundsFor(m_space.configurations);
        known.merge(boundsFor(m_pricing->nested()));
        m_pricing->takeOver(std::move(known));
        m_correction = m_memory->correctionFor(m_rows);
    }

    /// Those that may be fastest, the most promising first, while one of them may still be faster than the
    /// best; those that do not fit, by what they lack, where none fits.
    void simulateBest()
    {
        if (m_pricing->priced().empty())
            return;
        std::vector<const StepEstimate *> open;
        for (const StepEstimate &each : m_pricing->priced())
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
        // After an edit, which is waited for, what is likely counts: simulations before it have shown how far
        // the model is off.
        const auto hoped = [&](const StepEstimate *each) {
            const auto factor = m_correction.of(each->configuration, trust);
            return each->seconds * (m_pricing->tookOver() ? factor.likely : factor.least);
        };
        const auto mayBeBest = [&](const StepEstimate *each) {
            return !m_result.fits
                || ((m_pricing->fits(*each) || mayFit(each))
                    && leastBefore(each->configuration) < m_result.best.simulatedSeconds
                    && hoped(each) < m_result.best.simulatedSeconds);
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
            learnFrom(*each, *std::move(rows));
        }
        m_trials.drop();
    }

    /// Simulates a plan, and by how much the model is wrong about it.
    void learnFrom(const StepEstimate &estimate, ConstraintTable rows)
    {
        const auto outcome = simulateOne(estimate, std::move(rows));
        ++(outcome ? m_tries.simulated : m_tries.failed);
        if (!outcome || outcome->simulatedSeconds <= 0)
            return;
        m_tries.trust =
            std::max(m_tries.trust, std::min(0.5, 1 - outcome->simulatedSeconds / outcome->seconds));
        // What is proven is of plans that fit.
        const auto proven = m_pricing->bounds().find(estimate.configuration);
        const bool isOfIt = proven != m_pricing->bounds().end() && m_pricing->fits(estimate);
        m_correction.learn(
            estimate.configuration, outcome->seconds, outcome->simulatedSeconds, isOfIt ? proven->second : 0);
        m_correction.learnPeak(estimate.configuration, static_cast<double>(outcome->peakBytes),
            static_cast<double>(outcome->simulatedPeak));
    }

    /// Plans that were found before rows were added or taken away, as far as they are of the space: an edit
    /// that they hold with leaves nothing worse than them.
    void simulateRelatives()
    {
        std::set<std::string> seen;
        for (const SearchResult *each : m_memory->relativesOf(m_rows)) {
            const SearchedPlan best = each->best;
            const bool isOfSpace = best.configuration.isUnequal()
                ? m_space.leavesGroups
                : std::find(m_space.configurations.begin(), m_space.configurations.end(), best.configuration)
                    != m_space.configurations.end();
            if (!isOfSpace || (m_result.fits && best.simulatedSeconds >= m_result.best.simulatedSeconds)
                || !seen.insert(print(each->rows)).second || m_tries.done.contains(print(each->rows)))
                continue;
            if (seen.size() > kMostRelatives || m_stop.stop_requested())
                return;
            simulateOne(
                {.configuration = best.configuration, .seconds = best.seconds, .peakBytes = best.peakBytes},
                each->rows);
        }
    }

    SpacePricing::Bound lowestBound() const
    {
        return m_pricing->boundBeside(m_result.best.configuration, m_result.best.simulatedSeconds);
    }

    /// Plans beside the space: keys and values that go round where that may be faster; and where memory is
    /// dear, weights that are cut over all devices.
    /// @param worked  seconds of the search's work at which it ends, or `SearchOptions::mostSeconds` if that
    /// is more; where memory is dear, the sum of both
    void lookBeside(double worked)
    {
        const PlansBeside beside(*m_estimator, m_model, m_space, m_rows);
        const Configuration best = m_result.best.configuration;
        const bool isDear = beside.mayCutOverAll()
            && (!m_result.fits || best.recompute != RecomputeWord::None || best.zero == 3 || best.inTurns);
        if (!isDear && !beside.mayGoRound())
            return;
        int tried = 0;
        const int most = isDear ? kMostBesideWhereDear : kMostBeside;
        const double until =
            isDear ? worked + m_options.mostSeconds : std::max(worked, m_options.mostSeconds);
        for (const StepEstimate &each : beside.partitions(m_stop))
            for (const bool goesRound : {true, false}) {
                if (goesRound ? !beside.mayGoRound(each) : !isDear)
                    continue;
                bool isFarTooLarge = false;
                for (const RecomputeWord word :
                    {RecomputeWord::None, RecomputeWord::Selective, RecomputeWord::Full}) {
                    if (tried >= most || m_worked.seconds() >= until || m_stop.stop_requested()
                        || (m_result.fits
                            && each.seconds >= m_result.best.simulatedSeconds * (1 + kWorthMoving)))
                        return;
                    if (isFarTooLarge && word == RecomputeWord::Selective)
                        continue; // that saves less
                    StepEstimate other = each;
                    other.configuration.recompute = word;
                    if (!isDear)
                        other.configuration.zero = other.configuration.replicas > 1 ? best.zero : 0;
                    auto rows = beside.rowsOf(other, {.goesRound = goesRound, .cutsOverAll = isDear});
                    if (!rows || !m_tries.done.insert(print(*rows)).second)
                        break;
                    ++tried;
                    if (isDear)
                        other.configuration.zero = 3;
                    const auto outcome = simulateOne(other, *std::move(rows), false);
                    if (!isDear || !outcome || outcome->simulatedPeak <= m_space.memoryLimit)
                        break; // computing more again only takes longer
                    isFarTooLarge = static_cast<double>(outcome->simulatedPeak)
                        > kFarTooLarge * static_cast<double>(m_space.memoryLimit);
                }
            }
        if (m_result.fits)
            m_result.leastNeeded = std::min(m_result.leastNeeded, m_result.best.simulatedPeak);
    }

    /// The best plans with stages that begin a layer earlier or later, as long as that makes them faster:
    /// stages that take equally long in the model are not all that makes a step short.
    void moveStages(double until)
    {
        std::stable_sort(m_steps.begin(), m_steps.end(),
            [](const Simulated &a, const Simulated &b) { return a.seconds < b.seconds; });
        std::set<Configuration> moved;
        for (std::size_t i = 0; i < m_steps.size() && moved.size() < kMostPlansMoved; ++i) {
            if (m_steps[i].seconds > m_result.best.simulatedSeconds * (1 + kWorthMoving))
                return;
            const Simulated each = m_steps[i];
            if (each.estimate.stages && !each.estimate.configuration.isUnequal()
                && !each.estimate.configuration.inTurns
                && !m_estimator->stagesAreDecided(each.estimate.configuration)
                && moved.insert(each.estimate.configuration).second)
                moveStagesOf(each, until);
        }
    }

    void moveStagesOf(Simulated plan, double until)
    {
        const double modelled = plan.estimate.seconds;
        int tried = 0;
        for (bool better = true; better;) {
            better = false;
            const StagePlan stages = *plan.estimate.stages;
            for (auto &stageOf : stagesMoved(*m_model.index, stages.stageOf, stages.stages)) {
                if (tried >= kMostStagesMoved || m_worked.seconds() >= until || m_stop.stop_requested())
                    return;
                StepEstimate other = plan.estimate;
                StagePlan moved = stages;
                moved.stageOf = std::move(stageOf);
                other.stages = std::make_shared<const StagePlan>(std::move(moved));
                auto rows = rowsFor(other);
                if (!rows || !m_tries.done.insert(print(*rows)).second)
                    continue;
                ++tried;
                const auto outcome = simulateOne(other, *std::move(rows), false);
                if (outcome && outcome->simulatedPeak <= m_space.memoryLimit
                    && outcome->simulatedSeconds < plan.seconds) {
                    plan = {outcome->simulatedSeconds, std::move(other)};
                    m_correction.learn(plan.estimate.configuration, modelled, plan.seconds);
                    better = true;
                    break;
                }
            }
        }
    }

    /// Simulates plans of the configurations whose bounds are lowest: what is known of them is nearer than
    /// what may be wrong of the model where nothing was simulated.
    void tightenBySimulation(double until)
    {
        std::set<Configuration> looked;
        for (const StepEstimate &each : m_tries.tried)
            looked.insert(each.configuration);
        for (int i = 0; i < kMostTightened && !m_stop.stop_requested() && m_worked.seconds() < until; ++i) {
            const SpacePricing::Bound lowest = lowestBound();
            if (lowest.seconds >= m_result.best.simulatedSeconds * (1 - kNearEnough)
                || !looked.insert(lowest.configuration).second)
                return;
            const StepEstimate *cheapest = nullptr;
            for (const StepEstimate &each : m_pricing->priced())
                if (each.configuration == lowest.configuration && m_pricing->fits(each)
                    && (!cheapest || each.seconds < cheapest->seconds))
                    cheapest = &each;
            const auto estimate = cheapest
                ? Result<StepEstimate>(*cheapest)
                : m_pricing->priceWithin(lowest.configuration, m_space.memoryLimit);
            if (!estimate)
                return;
            m_tries.tried.push_back(*estimate);
            auto rows = rowsFor(*estimate);
            if (rows && m_tries.done.insert(print(*rows)).second)
                learnFrom(*estimate, *std::move(rows));
        }
    }

    /// Rows that were added do not make plans faster: what a search without them had found out of a
    /// configuration, also where what is computed again has the model be wrong otherwise than before.
    double leastBefore(const Configuration &configuration) const
    {
        const auto known = m_pricing->known().find(configuration);
        return known == m_pricing->known().end() ? 0 : known->second.simulatedLeast;
    }

    /// By configuration: seconds that what was priced of it is not likely to be below when simulated.
    std::map<Configuration, double> simulatedLeast() const
    {
        std::map<Configuration, double> least;
        for (const StepEstimate &each : m_pricing->priced()) {
            if (each.configuration.isUnequal()) // no configuration of the space's
                continue;
            const double seconds = each.seconds * m_correction.of(each.configuration, m_tries.trust).least;
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
        for (const SearchedPlan &tried : std::vector<SearchedPlan>(m_simulated)) {
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
        if (!fastest || m_pricing->fits(*fastest))
            return false;
        const auto found = m_pricing->priceAlongPaths(best.configuration, within);
        return found && *found < best.seconds;
    }

    std::int32_t mostSimulatedNow() const
    {
        const double worked = m_worked.seconds();
        if (m_result.cannotFit())
            return std::min(m_options.mostSimulated, kSimulatedOfTheLeast);
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
        if (m_result.fits || m_pricing->fits(*next)) {
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
        if (estimate.configuration.isUnequal())
            return unequalRowsOf(estimate, *m_estimator, m_model, m_space, m_rows);
        return rowsOf(estimate, m_estimator->problemOf(estimate.configuration),
            m_estimator->placedIn(estimate.configuration), m_model, m_space, m_rows);
    }

    /// @param isPriced  the model has priced just this plan
    std::optional<SearchedPlan> simulateOne(
        const StepEstimate &estimate, ConstraintTable rows, bool isPriced = true)
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
        if (!isPriced) {
            tried.seconds = tried.simulatedSeconds;
            tried.peakBytes = tried.simulatedPeak;
        }
        tried.at = now();
        m_simulated.push_back(tried);
        const bool fits = tried.simulatedPeak <= m_space.memoryLimit && keepsTraffic(outcome->step);
        if (fits)
            m_steps.push_back({tried.simulatedSeconds, estimate});
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

    bool anyIsBelow(double seconds) const
    {
        const auto &priced = m_pricing->priced();
        return std::any_of(priced.begin(), priced.end(),
            [&](const StepEstimate &each) { return m_pricing->fits(each) && each.seconds < seconds; });
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
        auto found =
            PlanSearch(m_model, m_cluster, m_deviceCount, m_rows, m_costs, options, m_stop, instead).run();
        if (found && found->fits && found->best.simulatedSeconds < instead.seconds)
            m_result = asShown(*std::move(found));
        m_result.searchSeconds = now();
    }

    void finish()
    {
        m_result.modelBound = m_pricing->modelBoundBeside(m_result.best.configuration, m_result.best.seconds);
        m_result.bound = lowestBound().seconds;
        // Several prices lead to one partition, and partitions of one price are told apart by simulation
        // alone.
        const auto same = [](const SearchedPlan &a, const SearchedPlan &b) {
            return a.seconds == b.seconds && a.peakBytes == b.peakBytes && a.configuration == b.configuration;
        };
        m_result.seen = m_simulated;
        for (const StepEstimate &each : m_pricing->priced()) {
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
    const std::optional<Instead> m_instead;
    const std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
    const WorkClock m_worked{}; ///< What is cut short by time does not depend on what runs beside it.
    SearchSpace m_space{};
    std::unique_lock<std::mutex> m_lock{};
    SearchMemory::Kept *m_memory = nullptr; ///< While it is this search's.
    std::unique_ptr<StepEstimator> m_own{}; ///< Where nothing is remembered.
    StepEstimator *m_estimator = nullptr;
    bool m_pricedLeast = false; ///< See `priceThoseThatNeedLeast`.
    std::optional<SpacePricing> m_pricing{};
    std::vector<SearchedPlan> m_simulated{};
    std::set<std::pair<Configuration, std::int64_t>> m_refitted{}; ///< And the peak of the plan.
    struct Tries {
        std::int32_t simulated = 0;
        std::int32_t failed = 0; ///< To be planned: what rows place apart need not go with every schedule.
        double trust = kModelTrust;
        std::set<std::string> done{}; ///< Rows.
        std::vector<StepEstimate> tried{};
    };
    Tries m_tries{};
    Correction m_correction{};
    std::optional<Error> m_problem{};
    SearchResult m_result{};
    bool m_found = false;
    std::vector<Simulated> m_steps{}; ///< Of plans that fit.
    std::shared_ptr<PathMemory> m_paths = std::make_shared<PathMemory>();
    std::shared_ptr<StepsSeen> m_seen = std::make_shared<StepsSeen>();
    PlanTrials m_trials{
        {m_model, m_cluster, m_deviceCount, m_rows, m_costs, m_options.precision, m_stop, m_paths, m_seen}};
};

Result<SearchResult> searchPlan(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    const ConstraintTable &rows, const CostModel &costs, const SearchOptions &options,
    const std::stop_token &stop)
{
    return PlanSearch(model, cluster, deviceCount, rows, costs, options, stop).run();
}

} // namespace planloom
