#include "engine/search/simulated_plans.h"

#include "engine/lowering/layout/path_finder.h"
#include "engine/search/search_rows.h"
#include "engine/search/stages/unequal_rows.h"
#include "engine/simulate/link_traffic.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cmath>

namespace planloom {

SimulatedPlans::SimulatedPlans(Setting setting)
    : m_setting(std::move(setting))
    , m_paths(m_setting.memory ? m_setting.memory->paths() : std::make_shared<PathMemory>())
    , m_seen(m_setting.memory ? m_setting.memory->seen() : std::make_shared<StepsSeen>())
    , m_trials({m_setting.request.model, m_setting.request.cluster, m_setting.request.deviceCount,
          m_setting.request.rows, m_setting.costs, m_setting.request.options.precision,
          m_setting.request.stop, m_paths, m_seen})
{
}

Result<ConstraintTable> SimulatedPlans::rowsFor(const StepEstimate &estimate) const
{
    const SearchRequest &asked = m_setting.request;
    StepEstimator &estimator = m_setting.estimator;
    if (estimate.configuration.isUnequal())
        return unequalRowsOf(estimate, estimator, asked.model, m_setting.space, asked.rows);
    return rowsOf(estimate, estimator.problemOf(estimate.configuration),
        estimator.placedIn(estimate.configuration), asked.model, m_setting.space, asked.rows);
}

bool SimulatedPlans::isNew(const ConstraintTable &rows)
{
    return m_asked.insert(print(rows)).second;
}

bool SimulatedPlans::wasAsked(const ConstraintTable &rows) const
{
    return m_asked.contains(print(rows));
}

std::optional<SearchedPlan> SimulatedPlans::simulate(
    const StepEstimate &estimate, ConstraintTable rows, Price price)
{
    auto outcome = carriedOut(rows);
    if (!outcome) {
        if (!m_problem)
            m_problem = std::move(outcome).error();
        return std::nullopt;
    }
    const TimedStep &step = outcome->step;
    SearchedPlan plan{estimate.configuration, estimate.seconds, estimate.peakBytes, step.seconds, step.peak,
        m_setting.request.secondsSinceBegin(), false, std::make_shared<const ConstraintTable>(rows)};
    plan.isBeside = price == Price::OfNone;
    if (price != Price::OfThisPlan) {
        plan.seconds = step.seconds;
        plan.peakBytes = step.peak;
    }
    m_all.push_back(plan);
    const bool fits = step.peak <= m_setting.space.memoryLimit && keepsTraffic(step);
    if (fits)
        m_fitting.push_back({step.seconds, estimate});
    takeIfBetter(plan, std::move(rows), *std::move(outcome), fits);
    return plan;
}

void SimulatedPlans::takeIfBetter(const SearchedPlan &plan, ConstraintTable rows, TriedPlan made, bool fits)
{
    SearchResult &result = m_setting.result;
    const bool isBetter = !m_isFound || (fits && !result.fits)
        || (fits == result.fits
            && (fits ? plan.simulatedSeconds < result.best.simulatedSeconds
                     : plan.simulatedPeak < result.best.simulatedPeak));
    if (!isBetter)
        return;
    m_isFound = true;
    result.rows = std::move(rows);
    result.plan = std::move(made.plan);
    result.materialized = std::move(made.materialized);
    result.figures = std::move(made.figures);
    result.best = plan;
    result.fits = fits;
    m_setting.onBetter();
}

void SimulatedPlans::learnFrom(const StepEstimate &estimate, ConstraintTable rows, double proven)
{
    const auto outcome = simulate(estimate, std::move(rows), Price::OfThisPlan);
    ++(outcome ? m_learnt : m_failed);
    if (!outcome || outcome->simulatedSeconds <= 0)
        return;
    m_trust = std::max(m_trust, std::min(0.5, 1 - outcome->simulatedSeconds / outcome->seconds));
    m_correction.learn(estimate.configuration, outcome->seconds, outcome->simulatedSeconds, proven);
    m_correction.learnPeak(estimate.configuration, static_cast<double>(outcome->peakBytes),
        static_cast<double>(outcome->simulatedPeak));
}

void SimulatedPlans::begin(const ConstraintTable &rows)
{
    if (!wasAsked(rows) && !(m_setting.memory && m_setting.memory->outcomeOf(keyOf(rows))))
        m_trials.begin(rows);
}

bool SimulatedPlans::keepsTraffic(const TimedStep &step) const
{
    const auto &limits = m_setting.space.trafficLimits;
    return std::all_of(limits.begin(), limits.end(), [&](const LimitRule &limit) {
        return mostCarried(Bytes{step.sent}, step.links, limit.links).value_or(Bytes{}).count <= limit.value;
    });
}

std::string SimulatedPlans::keyOf(const ConstraintTable &rows) const
{
    std::string key;
    for (const Row &row : m_setting.request.rows.rows)
        if (row.enabled)
            key += print(row) + "\n";
    return key + print(rows);
}

Result<TriedPlan> SimulatedPlans::carriedOut(const ConstraintTable &rows)
{
    if (!m_setting.memory)
        return m_trials.of(rows);
    std::string key = keyOf(rows);
    if (const TimedStep *known = m_setting.memory->outcomeOf(key))
        return TriedPlan{.step = *known};
    TRY(TriedPlan outcome, m_trials.of(rows));
    m_setting.memory->remember(std::move(key), outcome.step);
    return outcome;
}

} // namespace planloom
