#include "engine/schedule/search/block_starts.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

std::string runWords(const Placement &placement, const BlockStart &run)
{
    const PlacementBlock &block = placement.blocks[at(run.block)];
    return wordsOf(block) + (block.once ? "" : " of micro-batch " + std::to_string(run.microBatch));
}

std::int64_t endOf(const Placement &placement, const BlockStart &run)
{
    return run.start + placement.blocks[at(run.block)].time;
}

/// What a device's memory changes by, and when.
struct MemoryEvent {
    std::int64_t time = 0;
    std::int64_t change = 0;
    BlockStart run{};
};

/// By device, in order of time; at one moment what is given back comes first.
std::vector<std::vector<MemoryEvent>> memoryEvents(
    const Placement &placement, const std::vector<BlockStart> &starts)
{
    std::vector<std::vector<MemoryEvent>> events(at(placement.devices));
    for (const BlockStart &run : starts) {
        const PlacementBlock &block = placement.blocks[at(run.block)];
        const bool late = block.memory < 0 && block.givesBackAtEnd;
        for (const std::int32_t device : block.devices)
            for (const auto &[time, change] : {std::pair{run.start + (late ? block.time : 0), block.memory},
                     std::pair{run.start, block.workspace},
                     std::pair{run.start + block.time, -block.workspace}})
                if (change != 0)
                    events[at(device)].push_back({time, change, run});
    }
    for (auto &own : events)
        std::sort(own.begin(), own.end(), [](const MemoryEvent &a, const MemoryEvent &b) {
            return std::tie(a.time, a.change, a.run) < std::tie(b.time, b.change, b.run);
        });
    return events;
}

void findMissing(const Placement &placement, const std::vector<BlockStart> &starts,
    std::vector<std::vector<const BlockStart *>> &runs, std::vector<ScheduleViolation> &found)
{
    for (const BlockStart &run : starts) {
        const bool known = run.block >= 0 && at(run.block) < placement.blocks.size() && run.microBatch >= 0
            && at(run.microBatch) < runs[at(run.block)].size();
        if (!known) {
            found.push_back({ViolationKind::Missing, run, run, -1,
                "there is no block " + std::to_string(run.block) + " of micro-batch "
                    + std::to_string(run.microBatch)});
            continue;
        }
        const BlockStart *&own = runs[at(run.block)][at(run.microBatch)];
        if (own != nullptr)
            found.push_back(
                {ViolationKind::Missing, *own, run, -1, runWords(placement, run) + " starts twice"});
        own = &run;
    }
    for (std::size_t b = 0; b < runs.size(); ++b)
        for (std::size_t m = 0; m < runs[b].size(); ++m)
            if (runs[b][m] == nullptr) {
                const BlockStart run{static_cast<std::int32_t>(b), static_cast<std::int32_t>(m), 0};
                found.push_back(
                    {ViolationKind::Missing, run, run, -1, runWords(placement, run) + " never starts"});
            }
}

void findOverlaps(
    const Placement &placement, const std::vector<BlockStart> &starts, std::vector<ScheduleViolation> &found)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<BlockStart>> queues;
    for (const BlockStart &run : starts)
        for (const std::int32_t device : placement.blocks[at(run.block)].devices)
            queues[{device, placement.blocks[at(run.block)].queue}].push_back(run);
    for (auto &[queue, runs] : queues) {
        std::sort(runs.begin(), runs.end(),
            [](const BlockStart &a, const BlockStart &b) { return a.start < b.start; });
        for (std::size_t i = 0; i < runs.size(); ++i)
            for (std::size_t k = i + 1; k < runs.size() && runs[k].start < endOf(placement, runs[i]); ++k)
                found.push_back({ViolationKind::Overlap, runs[i], runs[k], queue.first,
                    runWords(placement, runs[k]) + " starts at " + std::to_string(runs[k].start)
                        + " on device " + std::to_string(queue.first) + ", which "
                        + runWords(placement, runs[i]) + " keeps busy until "
                        + std::to_string(endOf(placement, runs[i]))});
    }
}

void findOverfull(
    const Placement &placement, const std::vector<BlockStart> &starts, std::vector<ScheduleViolation> &found)
{
    if (placement.memoryLimit.empty())
        return;
    const auto events = memoryEvents(placement, starts);
    for (std::size_t d = 0; d < events.size(); ++d) {
        std::int64_t held = 0;
        for (std::size_t i = 0; i < events[d].size(); ++i) {
            const MemoryEvent &event = events[d][i];
            held += event.change;
            if (event.change <= 0 || held <= placement.memoryLimit[d])
                continue;
            const auto gives = [](const MemoryEvent &each) { return each.change < 0; };
            auto other =
                std::find_if(events[d].begin() + static_cast<std::ptrdiff_t>(i), events[d].end(), gives);
            if (other == events[d].end())
                other = events[d].begin() + static_cast<std::ptrdiff_t>(i > 0 ? i - 1 : 0);
            found.push_back({ViolationKind::Memory, event.run, other->run, static_cast<std::int32_t>(d),
                runWords(placement, event.run) + " takes device " + std::to_string(d) + " to "
                    + std::to_string(held) + ", its limit is " + std::to_string(placement.memoryLimit[d])
                    + (other->change < 0
                            ? ": " + runWords(placement, other->run) + " would have to give some back first"
                            : ": nothing gives any back")});
        }
    }
}

} // namespace

std::vector<ScheduleViolation> violationsOf(
    const Placement &placement, std::int32_t microBatches, const std::vector<BlockStart> &starts)
{
    std::vector<ScheduleViolation> found;
    const PlacementRuns counts(placement, microBatches);
    std::vector<std::vector<const BlockStart *>> runs(placement.blocks.size());
    for (std::size_t b = 0; b < runs.size(); ++b)
        runs[b].assign(at(counts.of(static_cast<std::int32_t>(b))), nullptr);
    findMissing(placement, starts, runs, found);
    if (!found.empty())
        return found; // nothing else can be told
    for (const PlacementEdge &edge : placement.edges)
        for (const BlockStart *second : runs[at(edge.after)])
            forEachRunBefore(placement, edge, second->microBatch, microBatches, [&](std::int32_t m) {
                const BlockStart &first = *runs[at(edge.before)][at(m)];
                if (second->start < endOf(placement, first))
                    found.push_back({ViolationKind::Dependency, first, *second, -1,
                        runWords(placement, *second) + " starts at " + std::to_string(second->start)
                            + " and waits for " + runWords(placement, first) + ", which ends at "
                            + std::to_string(endOf(placement, first))});
            });
    findOverlaps(placement, starts, found);
    findOverfull(placement, starts, found);
    return found;
}

ScheduleFigures figuresOf(const Placement &placement, const std::vector<BlockStart> &starts)
{
    ScheduleFigures figures;
    figures.peakMemory.assign(at(placement.devices), 0);
    figures.busy.assign(at(placement.devices), 0);
    std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> lives; // by micro-batch
    std::int64_t first = starts.empty() ? 0 : starts.front().start;
    std::int64_t last = first;
    for (const BlockStart &run : starts) {
        const std::int64_t end = endOf(placement, run);
        first = std::min(first, run.start);
        last = std::max(last, end);
        const PlacementBlock &block = placement.blocks[at(run.block)];
        for (const std::int32_t device : block.devices)
            figures.busy[at(device)] += block.queue == 0 ? block.time : 0;
        if (block.once)
            continue;
        auto &[from, to] = lives.try_emplace(run.microBatch, run.start, end).first->second;
        from = std::min(from, run.start);
        to = std::max(to, end);
    }
    figures.makespan = last - first;
    const auto events = memoryEvents(placement, starts);
    for (std::size_t d = 0; d < events.size(); ++d) {
        std::int64_t held = 0;
        for (const MemoryEvent &event : events[d])
            figures.peakMemory[d] = std::max(figures.peakMemory[d], held += event.change);
    }
    std::vector<std::pair<std::int64_t, std::int32_t>> flights; // ends stand before begins
    for (const auto &[microBatch, life] : lives) {
        flights.emplace_back(life.first, 1);
        flights.emplace_back(life.second, -1);
    }
    std::sort(flights.begin(), flights.end());
    std::int32_t flying = 0;
    for (const auto &[time, change] : flights)
        figures.inFlight = std::max(figures.inFlight, flying += change);
    return figures;
}

} // namespace planloom
