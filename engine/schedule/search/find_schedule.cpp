#include "engine/schedule/search/find_schedule.h"

#include "engine/base/ids.h"
#include "engine/schedule/schedule_templates.h"
#include "engine/schedule/search/placement_runs.h"
#include "engine/schedule/search/placement_stages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>

namespace planloom {

namespace {

constexpr std::int64_t kShortSearch = 1000; ///< Nodes of a search for something that is only nice to have.
constexpr std::int32_t kMostRounds = 8; ///< Of searches for schedules that hold less.
constexpr std::int32_t kMostMicroBatches = 1 << 20;
constexpr std::int64_t kMostStarts = 1 << 22;
constexpr std::int64_t kMostTemplateStarts = 1 << 16;

std::int64_t spanOf(const Placement &placement, const std::vector<std::int64_t> &starts)
{
    std::int64_t span = 0;
    for (std::size_t b = 0; b < starts.size(); ++b)
        span = std::max(span, starts[b] + placement.blocks[b].time);
    return span;
}

/// A steady state of the same period whose micro-batches end sooner, which makes ramps shorter.
PeriodicSchedule withShorterSpan(
    const StartProblem &problem, PeriodicSchedule best, const ScheduleLimits &limits)
{
    const Placement &placement = problem.placement();
    const ChainLengths chains = chainLengths(placement);
    std::int64_t least = *std::max_element(chains.from.begin(), chains.from.end());
    std::int64_t most = spanOf(placement, best.start);
    while (least < most && !limits.areOver()) {
        const std::int64_t middle = least + (most - least) / 2;
        StartSearch search = problem.periodic(best.period);
        for (std::size_t b = 0; b < placement.blocks.size(); ++b)
            search.require(static_cast<std::int32_t>(b), search.origin(), placement.blocks[b].time - middle);
        if (search.find(limits, kShortSearch) == SearchOutcome::Found) {
            best.start = search.starts();
            most = spanOf(placement, best.start);
        } else {
            least = middle + 1;
        }
    }
    return best;
}

/// The same for less memory: as long as a short search finds schedules that are no longer.
/// @param placement  with the options of the steady state
void holdLess(const Placement &placement, const ScheduleLimits &limits, ScheduleAnswer &answer)
{
    for (std::int32_t round = 0; round < kMostRounds && !limits.areOver(); ++round) {
        Placement tighter = placement;
        tighter.memoryLimit.resize(static_cast<std::size_t>(placement.devices));
        const auto &peaks = answer.figures.peakMemory;
        const std::int64_t peak = *std::max_element(peaks.begin(), peaks.end());
        if (peak <= 0)
            return;
        for (std::size_t d = 0; d < tighter.memoryLimit.size(); ++d)
            tighter.memoryLimit[d] =
                placement.memoryLimit.empty() ? peak - 1 : std::min(placement.memoryLimit[d], peak - 1);
        const Placement steadyState = steadyStateOf(tighter);
        const StartProblem problem(steadyState);
        if (problem.fillsUp())
            return;
        StartSearch search = problem.periodic(answer.period.schedule->period);
        if (search.find(limits, kShortSearch) != SearchOutcome::Found)
            return;
        const PeriodicSchedule steady{answer.period.schedule->period, search.starts()};
        const MakespanAnswer less =
            makespanOf(placement, {steady, withShorterSpan(problem, steady, limits)}, answer.microBatches);
        if (less.starts.empty() || less.makespan > answer.makespan.makespan)
            return; // no template is tried: those that hold less were
        answer.period.schedule = steady;
        answer.makespan.starts = less.starts;
        answer.makespan.choices = answer.period.choices;
        answer.makespan.makespan = less.makespan;
        answer.figures = figuresOf(placement, less.starts);
    }
}

/// Templates are schedules too: of a pipeline, one of them may have the shorter ramps.
void takeTemplates(const Placement &placement, std::int32_t microBatches, MakespanAnswer &best)
{
    const auto pipeline = pipelineOf(placement, microBatches);
    if (!pipeline)
        return;
    for (const ScheduleKind kind : kAllSchedules)
        if (const auto schedule = makeSchedule(kind, pipeline->setting))
            if (auto starts = playSchedule(pipeline->stages, *schedule, microBatches))
                takeBetter(placement, microBatches, *std::move(starts), best);
}

/// The best that comes of steady states and templates, with the options of the steady state, with none, and
/// with the first of each block. Its bound is one of all of them.
MakespanAnswer plainMakespan(const OptionSearch &search, const PeriodAnswer &period,
    const std::vector<RepeatingUnit> &steady, std::int32_t microBatches, bool templates)
{
    const Placement &whole = search.placement();
    std::vector<OptionChoices> tried;
    if (!steady.empty())
        tried.push_back(period.choices);
    tried.push_back(keptOptions(whole));
    tried.push_back(keptOptions(whole));
    for (std::size_t o = whole.options.size(); o-- > 0;)
        tried.back()[at(whole.options[o].block)] = static_cast<std::int32_t>(o);
    const auto worth = [](const Placement &placement, const MakespanAnswer &answer) {
        const ScheduleFigures figures = figuresOf(placement, answer.starts);
        return std::tuple(figures.makespan,
            *std::max_element(figures.peakMemory.begin(), figures.peakMemory.end()), figures.inFlight);
    };
    MakespanAnswer best;
    for (std::size_t t = 0; t < tried.size(); ++t) {
        if (std::find(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(t), tried[t])
            != tried.begin() + static_cast<std::ptrdiff_t>(t))
            continue;
        const Placement placement = withOptions(whole, tried[t]);
        const bool isSteady = !steady.empty() && tried[t] == period.choices;
        MakespanAnswer own =
            makespanOf(placement, isSteady ? steady : std::vector<RepeatingUnit>{}, microBatches);
        if (templates)
            takeTemplates(placement, microBatches, own);
        own.choices = tried[t];
        if (!own.starts.empty()
            && (best.starts.empty() || worth(placement, own) < worth(withOptions(whole, best.choices), best)))
            best = std::move(own);
    }
    best.bound = makespanBound(search.eased(), microBatches);
    return best;
}

ScheduleStatus statusOf(bool found, bool proven, bool none)
{
    if (none)
        return ScheduleStatus::Infeasible;
    return proven ? ScheduleStatus::Optimal : found ? ScheduleStatus::Feasible : ScheduleStatus::Unknown;
}

} // namespace

const char *nameOf(ScheduleStatus status)
{
    constexpr std::array kNames{"optimal", "feasible", "infeasible", "unknown"};
    return kNames[static_cast<std::size_t>(status)];
}

Result<ScheduleAnswer> findSchedule(const Placement &placement, const ScheduleRequest &request)
{
    TRY_VOID(validate(placement));
    const auto blocks = static_cast<std::int64_t>(placement.blocks.size());
    if (request.microBatches
        && (*request.microBatches < 1 || *request.microBatches > kMostMicroBatches
            || *request.microBatches * blocks > kMostStarts))
        return Error{ErrorCode::InvalidInput,
            "expected from 1 micro-batch to as many as have " + std::to_string(kMostStarts)
                + " blocks, found " + std::to_string(*request.microBatches),
            {}, "micro-batches"};
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    const ScheduleLimits limits{
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(request.seconds)),
        request.stop};
    ScheduleAnswer answer;
    OptionSearch search(placement);
    const Placement steadyState = steadyStateOf(placement);
    if (steadyState == placement) {
        answer.period = findPeriod(search, limits);
    } else {
        OptionSearch steadySearch(steadyState);
        answer.period = findPeriod(steadySearch, limits);
    }
    answer.periodSeconds = since();
    if (request.stop.stop_requested())
        return cancelled();
    std::vector<RepeatingUnit> steady;
    std::int64_t inSteadyState = 1;
    const Placement repeated = withOptions(placement, answer.period.choices);
    if (answer.period.schedule) {
        const Placement repeatedState = steadyStateOf(repeated);
        const StartProblem problem(repeatedState);
        const PeriodicSchedule found = *answer.period.schedule;
        answer.period.schedule = withShorterSpan(problem, found, limits);
        steady = {found, *answer.period.schedule};
        inSteadyState =
            (spanOf(repeatedState, answer.period.schedule->start) + found.period - 1) / found.period;
        answer.unit = findUnit(repeated, *answer.period.schedule, limits);
        if (answer.unit)
            steady.push_back(*answer.unit);
    }
    answer.microBatches = request.microBatches.value_or(
        static_cast<std::int32_t>(std::min<std::int64_t>(2 * inSteadyState, kMostStarts / blocks)));
    const auto report = [&] {
        answer.seconds = since();
        if (request.report)
            request.report(answer);
    };
    answer.makespan.bound = makespanBound(search.eased(), answer.microBatches);
    report();
    answer.makespan = plainMakespan(search, answer.period, steady, answer.microBatches,
        answer.microBatches * blocks <= kMostTemplateStarts);
    report();
    if (request.microBatches || steady.empty())
        searchMakespan(search, answer.microBatches, limits, answer.makespan);
    if (request.stop.stop_requested())
        return cancelled();
    if (!answer.makespan.starts.empty()) {
        answer.figures = figuresOf(withOptions(placement, answer.makespan.choices), answer.makespan.starts);
        if (!steady.empty())
            holdLess(repeated, limits, answer);
    }
    answer.status = answer.period.schedule
        ? statusOf(true, answer.period.proven(), false)
        : statusOf(!answer.makespan.starts.empty(), answer.makespan.proven(), answer.makespan.none);
    answer.seconds = since();
    return answer;
}

} // namespace planloom
