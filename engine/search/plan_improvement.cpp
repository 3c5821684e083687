#include "engine/search/plan_improvement.h"

#include "engine/search/bound_tightening.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// Of so many pipelines the fastest plan is tried with other stages, and so many of the others with those
/// found for that: plans that are slower than the best by no more than this. And so many stages of each.
constexpr std::size_t kMostPlansMoved = 6;
constexpr double kWorthMoving = 0.08;
constexpr int kMostStagesMoved = 12;
/// A bound so near to the best step is not made tighter, once plans of so many operators in all, on every
/// device and for every micro-batch, were simulated: about a tenth of a second, which nobody notices.
constexpr double kNearEnough = 0.04;
constexpr double kUnnoticed = 50'000;
constexpr int kMostUnnoticed = 4; ///< Plans of one pipeline among them.
/// Partitions that are looked at without a tighter bound before a plan is simulated instead.
constexpr int kMostIdleRaised = 2;
/// Plans beside the space that are tried, and where memory is dear.
constexpr int kMostBeside = 4;
constexpr int kMostBesideWhereDear = 16;
/// Plans of the space that are tried with sequences in zigzags.
constexpr int kMostZigzags = 3;
/// Of many parts of a sequence under a causal mask, the last one has twice as much to do as all have in
/// zigzags: a plan whose sequences are cut so takes no less than this share.
constexpr double kLeastOfZigzags = 0.5;
/// A plan that holds so many times what there is is tried again with all layers computed again.
constexpr double kFarTooLarge = 1.5;
constexpr std::size_t kMostRelatives = 2; ///< Plans of before an edit that are tried.

/// Configurations that want the same stages, about: however wide their stages are.
using Pipeline = std::tuple<std::int32_t, std::int32_t, std::int32_t, ScheduleKind>;

Pipeline pipelineOf(const Configuration &configuration)
{
    return {
        configuration.ranks, configuration.stagesPerRank, configuration.microBatches, configuration.schedule};
}

} // namespace

PlanImprovement::PlanImprovement(const Setting &setting)
    : m_setting(setting)
    , m_plans(setting.plans)
{
}

void PlanImprovement::tryRelatives(SearchMemory::Kept &memory)
{
    const auto &space = m_setting.space;
    std::set<std::string> seen;
    for (const SearchResult *each : memory.relativesOf(m_setting.request.rows)) {
        const SearchedPlan best = each->best;
        const bool isOfSpace = best.configuration.isUnequal()
            ? space.leavesGroups
            : std::find(space.configurations.begin(), space.configurations.end(), best.configuration)
                != space.configurations.end();
        if (!isOfSpace || (m_plans.fits() && best.simulatedSeconds >= m_plans.best().simulatedSeconds)
            || !seen.insert(print(each->rows)).second || m_plans.wasAsked(each->rows))
            continue;
        if (seen.size() > kMostRelatives || m_setting.request.stop.stop_requested())
            return;
        m_plans.simulate(
            {.configuration = best.configuration, .seconds = best.seconds, .peakBytes = best.peakBytes},
            each->rows, best.isBeside ? SimulatedPlans::Price::OfNone : SimulatedPlans::Price::OfThisPlan);
    }
}

struct PlanImprovement::Beside {
    const PlansBeside &plans;
    bool isDear = false; ///< Memory is: weights are cut over all devices.
    std::int32_t zero = 0; ///< Otherwise they are sharded so.
    double until = 0; ///< Seconds of the search's work.
};

void PlanImprovement::lookBeside(double worked)
{
    const PlansBeside plans(
        m_setting.estimator, m_setting.request.model, m_setting.space, m_setting.request.rows);
    const Configuration best = m_plans.best().configuration;
    const double mostSeconds = m_setting.request.options.mostSeconds;
    const bool isDear = plans.mayCutOverAll()
        && (!m_plans.fits() || best.recompute != RecomputeWord::None || best.zero == 3 || best.inTurns)
        && plans.leastShare(m_setting.request.deviceCount) <= m_setting.space.memoryLimit;
    if (!isDear && !plans.mayCutQueries())
        return;
    const Beside beside{.plans = plans,
        .isDear = isDear,
        .zero = best.zero,
        .until = isDear ? worked + mostSeconds : std::max(worked, mostSeconds)};
    if (plans.hasCausalQueries())
        tryZigzags(beside);
    for (const StepEstimate &each : plans.partitions(m_setting.request.stop))
        for (const bool goesRound : {true, false})
            if (!tryBeside(beside, each, goesRound))
                return;
}

void PlanImprovement::tryZigzags(const Beside &beside)
{
    std::vector<SimulatedPlans::Fitting> fitting = m_plans.fitting();
    std::stable_sort(
        fitting.begin(), fitting.end(), [](const auto &a, const auto &b) { return a.seconds < b.seconds; });
    int tried = 0;
    for (const auto &[seconds, estimate] : fitting) {
        if (tried >= kMostZigzags || isOver(beside.until)
            || seconds * kLeastOfZigzags >= m_plans.best().simulatedSeconds)
            return;
        if (!estimate.partition || estimate.configuration.isUnequal()
            || beside.plans.axisOfQueries(estimate).empty())
            continue;
        auto rows = beside.plans.rowsOf(estimate, {.isZigzag = true});
        if (!rows || !m_plans.isNew(*rows))
            continue;
        ++tried;
        m_plans.simulate(estimate, *std::move(rows), SimulatedPlans::Price::OfNone);
    }
}

bool PlanImprovement::tryBeside(const Beside &beside, const StepEstimate &partition, bool goesRound)
{
    const bool cutsQueries = !beside.plans.axisOfQueries(partition).empty();
    PlansBeside::Choice choice{.goesRound = goesRound,
        .isZigzag = cutsQueries && beside.plans.hasCausalQueries(),
        .cutsOverAll = beside.isDear};
    if (goesRound ? !cutsQueries : !beside.isDear && !choice.isZigzag)
        return true;
    const auto limit = m_setting.space.memoryLimit;
    bool isFarTooLarge = false;
    for (const RecomputeWord word : {RecomputeWord::None, RecomputeWord::Selective, RecomputeWord::Full}) {
        const double least = partition.seconds * (choice.isZigzag ? kLeastOfZigzags : 1);
        if (m_triedBeside >= (beside.isDear ? kMostBesideWhereDear : kMostBeside) || isOver(beside.until)
            || (m_plans.fits() && least >= m_plans.best().simulatedSeconds * (1 + kWorthMoving)))
            return false;
        if (isFarTooLarge && word == RecomputeWord::Selective)
            continue; // that saves less
        StepEstimate other = partition;
        other.configuration.recompute = word;
        if (!beside.isDear)
            other.configuration.zero = other.configuration.replicas > 1 ? beside.zero : 0;
        auto rows = beside.plans.rowsOf(other, choice);
        if (!rows || !m_plans.isNew(*rows))
            return true;
        ++m_triedBeside;
        if (beside.isDear)
            other.configuration.zero = 3;
        const auto outcome = m_plans.simulate(other, *std::move(rows), SimulatedPlans::Price::OfNone);
        if (!beside.isDear || !outcome || outcome->simulatedPeak <= limit)
            return true; // computing more again only takes longer
        isFarTooLarge =
            static_cast<double>(outcome->simulatedPeak) > kFarTooLarge * static_cast<double>(limit);
    }
    return true;
}

namespace {

StepEstimate withStages(const StepEstimate &estimate, std::vector<std::int32_t> stageOf)
{
    StepEstimate other = estimate;
    StagePlan stages = *estimate.stages;
    stages.stageOf = std::move(stageOf);
    other.stages = std::make_shared<const StagePlan>(std::move(stages));
    return other;
}

} // namespace

void PlanImprovement::moveStages(double until)
{
    std::vector<SimulatedPlans::Fitting> fitting = m_plans.fitting();
    std::stable_sort(
        fitting.begin(), fitting.end(), [](const auto &a, const auto &b) { return a.seconds < b.seconds; });
    std::map<Pipeline, std::vector<std::int32_t>> moved; // stages found for the fastest
    std::set<Configuration> looked;
    std::size_t others = 0;
    const double unmoved = m_plans.best().simulatedSeconds;
    for (const SimulatedPlans::Fitting &each : fitting) {
        const Configuration &configuration = each.estimate.configuration;
        if (isOver(until) || each.seconds > unmoved * (1 + kWorthMoving))
            return;
        if (!each.estimate.stages || configuration.isUnequal() || configuration.inTurns
            || m_setting.estimator.stagesAreDecided(configuration) || !looked.insert(configuration).second)
            continue;
        const auto known = moved.find(pipelineOf(configuration));
        if (known == moved.end() && moved.size() < kMostPlansMoved)
            moved.emplace(pipelineOf(configuration), moveStagesOf(each, until));
        else if (known != moved.end() && known->second != each.estimate.stages->stageOf
            && ++others <= kMostPlansMoved)
            tryStages(each, withStages(each.estimate, known->second));
    }
}

bool PlanImprovement::tryStages(const SimulatedPlans::Fitting &plan, const StepEstimate &other)
{
    auto rows = m_plans.rowsFor(other);
    if (!rows || !m_plans.isNew(*rows))
        return false;
    const auto outcome = m_plans.simulate(other, *std::move(rows), SimulatedPlans::Price::OfOther);
    if (!outcome || outcome->simulatedPeak > m_setting.space.memoryLimit
        || outcome->simulatedSeconds >= plan.seconds)
        return false;
    // What is proven is of the stages that were priced: others of its kind may gain as much.
    m_plans.correction().learn(other.configuration, plan.estimate.seconds, outcome->simulatedSeconds,
        m_setting.pricing.book().provenOf(plan.estimate));
    return true;
}

std::vector<std::int32_t> PlanImprovement::moveStagesOf(SimulatedPlans::Fitting plan, double until)
{
    const double unmoved = plan.seconds;
    const auto found = [&] {
        m_plans.correction().learnMoved(plan.estimate.configuration, plan.seconds / unmoved);
        return plan.estimate.stages->stageOf;
    };
    for (auto &stageOf : m_setting.estimator.stagesEndingEarly(plan.estimate)) {
        StepEstimate other = withStages(plan.estimate, std::move(stageOf));
        if (tryStages(plan, other))
            plan = {m_plans.all().back().simulatedSeconds, std::move(other)};
    }
    int tried = 0;
    for (bool better = true; better;) {
        better = false;
        const StagePlan &stages = *plan.estimate.stages;
        for (auto &stageOf : stagesMoved(*m_setting.request.model.index, stages.stageOf, stages.stages)) {
            if (tried >= kMostStagesMoved || isOver(until))
                return found();
            StepEstimate other = withStages(plan.estimate, std::move(stageOf));
            const std::size_t before = m_plans.all().size();
            const bool isBetter = tryStages(plan, other);
            tried += m_plans.all().size() > before ? 1 : 0;
            if (isBetter) {
                plan = {m_plans.all().back().simulatedSeconds, std::move(other)};
                better = true;
                break;
            }
        }
    }
    return found();
}

void PlanImprovement::tightenBounds(double until)
{
    std::set<Configuration> looked;
    std::set<Configuration> raised; // whose bounds were
    std::map<Pipeline, int> ofPipeline; // that were looked at
    const auto look = [&](const Configuration &configuration) {
        looked.insert(configuration);
        ++ofPipeline[pipelineOf(configuration)];
    };
    for (const StepEstimate &each : m_plans.tried())
        look(each.configuration);
    const auto operators = static_cast<double>(m_setting.request.model.graph->operators.size());
    for (double simulated = 0; !isOver(until);) {
        const double best = m_plans.best().simulatedSeconds;
        const auto bounds = m_setting.pricing.book().boundsInOrder(best);
        const auto costOf = [&](const Configuration &configuration) {
            return operators * configuration.devices() * configuration.microBatches;
        };
        // A pipeline that is unlike all that was simulated comes first, then what may be much better, then
        // what is least like the others.
        auto next = bounds.end();
        const auto mayBeMuchBetter = [&](auto each) { return each->seconds < best * (1 - kNearEnough); };
        for (auto each = bounds.begin(); each != bounds.end(); ++each) {
            if (looked.contains(each->configuration)
                && (!mayBeMuchBetter(each) || raised.contains(each->configuration)))
                continue;
            const int alike = ofPipeline[pipelineOf(each->configuration)];
            const bool isUnnoticed = simulated + costOf(each->configuration) <= kUnnoticed;
            if (alike == 0 && isUnnoticed) {
                next = each;
                break;
            }
            if (next != bounds.end() && mayBeMuchBetter(next))
                continue;
            if (mayBeMuchBetter(each)
                || (isUnnoticed && alike < kMostUnnoticed
                    && (next == bounds.end() || alike < ofPipeline[pipelineOf(next->configuration)])))
                next = each;
        }
        if (next == bounds.end())
            return;
        const Configuration &configuration = next->configuration;
        if (mayBeMuchBetter(next) && raised.insert(configuration).second) {
            // Perhaps that is all that was looked for when nothing was known of the model.
            const double enough = best / m_plans.correction().leastOf(configuration);
            if (!BoundTightening(m_setting.pricing).raise(configuration, enough, kMostIdleRaised))
                look(configuration);
            continue;
        }
        look(configuration);
        simulated += costOf(configuration);
        const auto estimate = cheapestOf(configuration);
        if (!estimate)
            continue;
        m_plans.addTried(*estimate);
        auto rows = m_plans.rowsFor(*estimate);
        if (rows && m_plans.isNew(*rows))
            m_plans.learnFrom(*estimate, *std::move(rows), m_setting.pricing.book().provenOf(*estimate));
    }
}

Result<StepEstimate> PlanImprovement::cheapestOf(const Configuration &configuration)
{
    const PricedSpace &book = m_setting.pricing.book();
    const StepEstimate *cheapest = nullptr;
    for (const StepEstimate &each : book.priced())
        if (each.configuration == configuration && book.fits(each)
            && (!cheapest || each.seconds < cheapest->seconds))
            cheapest = &each;
    if (cheapest)
        return *cheapest;
    return m_setting.pricing.priceWithin(configuration, m_setting.space.memoryLimit);
}

} // namespace planloom
