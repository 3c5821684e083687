#include "engine/search/schedule/period_search.h"

#include "engine/base/ids.h"
#include "engine/search/schedule/least_value.h"

#include <algorithm>
#include <map>
#include <numeric>
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

} // namespace

PeriodAnswer findPeriod(const StartProblem &problem, const ScheduleLimits &limits)
{
    PeriodAnswer answer;
    const Placement &placement = problem.placement();
    answer.bound = busiestQueue(placement);
    if (problem.fillsUp()) {
        answer.none = true;
        return answer;
    }
    // All blocks one after another: in this period whatever fits any fits (in the order of the phases).
    const std::int64_t most = std::accumulate(placement.blocks.begin(), placement.blocks.end(),
        std::int64_t{0}, [](std::int64_t sum, const PlacementBlock &block) { return sum + block.time; });
    PeriodicSchedule best;
    const auto holds = [&](std::int64_t period) { return problem.periodic(period).propagate(); };
    const auto attempt = [&](std::int64_t period, std::int64_t nodes) {
        StartSearch search = problem.periodic(period);
        ValueAttempt found{search.find(limits, nodes), period};
        if (found.outcome == SearchOutcome::Found) {
            std::vector<std::int64_t> starts = search.starts();
            found.achieved = problem.squeezed(starts, period, busiestQueue(placement));
            moveToZero(starts);
            best = {found.achieved, std::move(starts)};
        }
        return found;
    };
    const LeastValue least = leastValue(answer.bound, most, limits, holds, attempt);
    answer.bound = least.bound;
    answer.none = least.none;
    if (least.found >= 0)
        answer.schedule = std::move(best);
    return answer;
}

std::vector<BlockStart> unroll(const PeriodicSchedule &schedule, std::int32_t microBatches)
{
    std::vector<BlockStart> starts;
    for (std::size_t b = 0; b < schedule.start.size(); ++b)
        for (std::int32_t m = 0; m < microBatches; ++m)
            starts.push_back({static_cast<std::int32_t>(b), m, schedule.start[b] + m * schedule.period});
    return starts;
}

std::vector<BlockStart> asEarlyAsOrdered(const Placement &placement, std::vector<BlockStart> starts)
{
    std::sort(starts.begin(), starts.end(), [&](const BlockStart &a, const BlockStart &b) {
        // At one moment what gives memory back comes before what takes it.
        return std::tuple(a.start, placement.blocks[at(a.block)].memory > 0, a)
            < std::tuple(b.start, placement.blocks[at(b.block)].memory > 0, b);
    });
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> freeAt; // by device and queue
    // By device: when memory was given back, before the move and after it, the earliest first; and the latest
    // of those that a take has waited for.
    using Give = std::pair<std::int64_t, std::int64_t>;
    std::vector<std::priority_queue<Give, std::vector<Give>, std::greater<>>> gives(at(placement.devices));
    std::vector<std::int64_t> lastGive(at(placement.devices), 0);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> ends; // by block and micro-batch
    std::vector<std::vector<PlacementEdge>> into(placement.blocks.size());
    for (const PlacementEdge &edge : placement.edges)
        into[at(edge.after)].push_back(edge);
    for (BlockStart &run : starts) {
        const PlacementBlock &block = placement.blocks[at(run.block)];
        const std::int64_t before = run.start;
        run.start = 0;
        for (const PlacementEdge &edge : into[at(run.block)])
            if (run.microBatch >= edge.distance)
                run.start = std::max(run.start, ends.at({edge.before, run.microBatch - edge.distance}));
        for (const std::int32_t device : block.devices) {
            run.start = std::max(run.start, freeAt[{device, block.queue}]);
            auto &given = gives[at(device)];
            for (; block.memory > 0 && !given.empty() && given.top().first <= before; given.pop())
                lastGive[at(device)] = std::max(lastGive[at(device)], given.top().second);
            if (block.memory > 0)
                run.start = std::max(run.start, lastGive[at(device)]);
        }
        const std::int64_t end = run.start + block.time;
        ends[{run.block, run.microBatch}] = end;
        const std::int64_t late = block.givesBackAtEnd ? block.time : 0;
        for (const std::int32_t device : block.devices) {
            freeAt[{device, block.queue}] = end;
            if (block.memory < 0)
                gives[at(device)].emplace(before + late, run.start + late);
        }
    }
    return starts;
}

} // namespace planloom
