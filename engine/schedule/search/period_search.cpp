#include "engine/schedule/search/period_search.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/least_value.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace planloom {

namespace {

/// So that the least start is 0.
void moveToZero(std::vector<std::int64_t> &starts)
{
    const std::int64_t first = *std::min_element(starts.begin(), starts.end());
    for (std::int64_t &start : starts)
        start -= first;
}

constexpr std::int64_t kNeedlessSearch = 1000; ///< Nodes, for each option that may not be needed.

/// Takes back options without which a short search finds the same period.
void dropNeedless(const Placement &whole, const ScheduleLimits &limits, PeriodAnswer &answer)
{
    const std::int64_t period = answer.schedule->period;
    for (std::size_t b = 0; b < answer.choices.size() && !limits.areOver(); ++b) {
        if (answer.choices[b] < 0)
            continue;
        OptionChoices fewer = answer.choices;
        fewer[b] = kOptionKept;
        const Placement placement = withOptions(whole, fewer);
        StartSearch search = StartProblem(placement).periodic(period);
        if (search.find(limits, kNeedlessSearch) != SearchOutcome::Found)
            continue;
        answer.schedule->start = search.starts();
        moveToZero(answer.schedule->start);
        answer.choices = std::move(fewer);
    }
}

} // namespace

PeriodAnswer findPeriod(OptionSearch &search, const ScheduleLimits &limits)
{
    PeriodAnswer answer;
    const Placement &whole = search.placement();
    const StartProblem &eased = search.easedProblem();
    answer.bound = busiestQueue(search.eased());
    if (eased.fillsUp()) { // options give back what they take
        answer.none = true;
        return answer;
    }
    // All blocks one after another: in this period whatever fits any fits (in the order of the phases).
    std::int64_t most = 0;
    for (const PlacementBlock &block : whole.blocks)
        most += block.time;
    for (const MemoryOption &option : whole.options)
        most += option.time + (option.kind == OptionKind::Offload ? option.backTime : 0);
    PeriodicSchedule best;
    const auto holds = [&](std::int64_t period) { return eased.periodic(period).propagate(); };
    const auto attempt = [&](std::int64_t period, std::int64_t nodes) {
        const OptionSearch::Question question{.busy = period,
            .starts = [period](const StartProblem &problem) { return problem.periodic(period); }};
        ValueAttempt found{search.find(question, limits, nodes), period};
        if (found.outcome == SearchOutcome::Found) {
            std::vector<std::int64_t> starts = search.starts();
            found.achieved =
                search.problem().squeezed(starts, period, busiestQueue(search.problem().placement()));
            moveToZero(starts);
            best = {found.achieved, std::move(starts)};
            answer.choices = search.choices();
        }
        return found;
    };
    const LeastValue least = leastValue(answer.bound, most, limits, holds, attempt);
    answer.bound = least.bound;
    answer.none = least.none;
    if (least.found >= 0) {
        answer.schedule = std::move(best);
        dropNeedless(whole, limits, answer);
    }
    return answer;
}

std::vector<BlockStart> asEarlyAsOrdered(const Placement &placement, std::vector<BlockStart> starts)
{
    std::sort(starts.begin(), starts.end(), [&](const BlockStart &a, const BlockStart &b) {
        // At one moment what gives memory back comes before what takes it; between them, what does both.
        const auto takes = [&](const BlockStart &run) {
            const PlacementBlock &block = placement.blocks[at(run.block)];
            return !takesMemory(block) ? 0 : block.memory < 0 && !block.givesBackAtEnd ? 1 : 2;
        };
        return std::tuple(a.start, takes(a), a) < std::tuple(b.start, takes(b), b);
    });
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> freeAt; // by device and queue
    // By device: when memory was given back, before the move and after it, the earliest first; and the latest
    // of those that a take has waited for.
    using Give = std::pair<std::int64_t, std::int64_t>;
    std::vector<std::priority_queue<Give, std::vector<Give>, std::greater<>>> gives(at(placement.devices));
    std::vector<std::int64_t> lastGive(at(placement.devices), 0);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> ends; // by block and micro-batch
    std::int32_t microBatches = 0;
    for (const BlockStart &run : starts)
        microBatches = std::max(microBatches, run.microBatch + 1);
    std::vector<std::vector<PlacementEdge>> into(placement.blocks.size());
    for (const PlacementEdge &edge : placement.edges)
        into[at(edge.after)].push_back(edge);
    for (BlockStart &run : starts) {
        const PlacementBlock &block = placement.blocks[at(run.block)];
        const std::int64_t before = run.start;
        run.start = 0;
        for (const PlacementEdge &edge : into[at(run.block)])
            forEachRunBefore(placement, edge, run.microBatch, microBatches, [&](std::int32_t m) {
                run.start = std::max(run.start, ends.at({edge.before, m}));
            });
        for (const std::int32_t device : block.devices) {
            run.start = std::max(run.start, freeAt[{device, block.queue}]);
            auto &given = gives[at(device)];
            for (; takesMemory(block) && !given.empty() && given.top().first <= before; given.pop())
                lastGive[at(device)] = std::max(lastGive[at(device)], given.top().second);
            if (takesMemory(block))
                run.start = std::max(run.start, lastGive[at(device)]);
        }
        const std::int64_t end = run.start + block.time;
        ends[{run.block, run.microBatch}] = end;
        const std::int64_t late = block.givesBackAtEnd ? block.time : 0;
        for (const std::int32_t device : block.devices) {
            freeAt[{device, block.queue}] = end;
            if (block.memory < 0)
                gives[at(device)].emplace(before + late, run.start + late);
            if (block.workspace > 0)
                gives[at(device)].emplace(before + block.time, end);
        }
    }
    return starts;
}

} // namespace planloom
