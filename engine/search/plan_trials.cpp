#include "engine/search/plan_trials.h"

#include "engine/base/background_disposal.h"
#include "engine/base/give_way.h"
#include "engine/lowering/lower.h"
#include "engine/simulate/simulate.h"
#include "engine/simulate/summary.h"
#include "engine/table/table_text.h"

#include <functional>
#include <future>
#include <string>
#include <system_error>
#include <utility>

namespace planloom {

/// A plan that is tried on another thread.
struct PlanTrials::Begun {
    explicit Begun(const std::stop_token &ofSearch)
        : withSearch(ofSearch, [this] { stop.request_stop(); })
    {
    }
    ~Begun()
    {
        stop.request_stop();
        if (outcome.valid())
            outcome.wait();
    }
    Begun(const Begun &) = delete;
    Begun &operator=(const Begun &) = delete;

    std::string rows{};
    std::stop_source stop{};
    std::future<Result<TriedPlan>> outcome{};
    std::stop_callback<std::function<void()>> withSearch; ///< The last member: it uses what is above.
};

PlanTrials::PlanTrials(const TrialSetting &setting)
    : m_setting(setting)
{
}

PlanTrials::~PlanTrials() = default;

void PlanTrials::drop()
{
    m_begun = nullptr;
}

void PlanTrials::begin(const ConstraintTable &rows)
{
    m_begun = std::make_unique<Begun>(m_setting.stop);
    m_begun->rows = print(rows);
    const auto work = [this, rows, stop = m_begun->stop.get_token()]() -> Result<TriedPlan> {
        giveWay();
        return tried(rows, stop);
    };
    try {
        m_begun->outcome = std::async(std::launch::async, work);
    } catch (const std::system_error &) { // there is no thread to be had: it is tried when it is asked for
        m_begun = nullptr;
    }
}

Result<TriedPlan> PlanTrials::of(const ConstraintTable &rows)
{
    if (m_begun && m_begun->rows == print(rows)) {
        auto outcome = m_begun->outcome.get();
        m_begun = nullptr;
        return outcome;
    }
    return tried(rows, m_setting.stop);
}

Result<TriedPlan> PlanTrials::tried(const ConstraintTable &rows, const std::stop_token &stop) const
{
    TRY(Completion completion,
        completedWith(m_setting.model, m_setting.cluster, m_setting.deviceCount, m_setting.rows, rows,
            m_setting.precision));
    if (const auto seen = m_setting.seen->find(completion.plan)) // as good as the other one
        return TriedPlan{.step = *seen};
    TRY(TriedPlan outcome, carriedOut(std::move(completion.plan), stop));
    m_setting.seen->add(*outcome.plan, outcome.step);
    return outcome;
}

Result<Completion> completedWith(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    const ConstraintTable &asked, const ConstraintTable &found, PrecisionPreset precision)
{
    ConstraintTable all = asked;
    all.rows.insert(all.rows.end(), found.rows.begin(), found.rows.end());
    CompletionOptions options;
    options.precision = precision;
    Cluster planned = cluster;
    planned.deviceCount = deviceCount;
    options.alike = [&planned](const ScaleUnits &units) { return unitsAlike(planned, units); };
    TRY(Completion completion, completePlan(model, deviceCount, all, options));
    if (auto error = firstError(completion))
        return *std::move(error);
    return completion;
}

Result<TriedPlan> PlanTrials::carriedOut(Plan plan, const std::stop_token &stop) const
{
    TRY(auto materialized, materialize(plan, m_setting.cluster, m_setting.costs, stop, m_setting.paths));
    TRY(const ExecutionPlan execution, sequenceAsMade(materialized, plan));
    SimulateOptions options;
    options.spans = false;
    TRY(Timeline timeline, simulate(execution, m_setting.cluster, m_setting.costs, options, stop));
    const TimelineSummary summary = summaryOf(timeline);
    TriedPlan outcome;
    outcome.step = {summary.stepSeconds, summary.largestPeak.count, mostSent(summary).count, summary.links};
    outcome.plan = sharedInBackground(std::move(plan));
    outcome.materialized = sharedInBackground(std::move(materialized));
    outcome.figures = sharedInBackground(std::move(timeline));
    return outcome;
}

} // namespace planloom
