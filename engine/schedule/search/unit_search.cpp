#include "engine/schedule/search/unit_search.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/placement_runs.h"
#include "engine/schedule/search/start_problem.h"

namespace planloom {

namespace {

constexpr std::int64_t kUnitNodes = 400; ///< Of a search for one period.
constexpr std::int32_t kMostPeriods = 6; ///< Tried for a unit of one size.
constexpr std::int32_t kMostUnitBlocks = 96; ///< Larger units take longer than they are worth.

/// A unit of so many micro-batches that takes less than `most` for all of them.
std::optional<RepeatingUnit> shorterUnit(
    const Placement &placement, std::int32_t microBatches, std::int64_t most, const ScheduleLimits &limits)
{
    const Placement copies = inUnits(placement, microBatches);
    const StartProblem problem(copies);
    const std::int64_t bound = busiestQueue(copies);
    std::optional<RepeatingUnit> best;
    std::int64_t least = bound;
    std::int64_t high = most - 1;
    for (std::int32_t tried = 0; tried < kMostPeriods && least <= high && !limits.areOver(); ++tried) {
        // What is easiest to find first; then ever shorter.
        const std::int64_t period = tried == 0 ? high : least + (high - least) / 2;
        StartSearch search = problem.periodic(period);
        if (search.find(limits, kUnitNodes) != SearchOutcome::Found) {
            if (tried == 0)
                return std::nullopt;
            least = period + 1;
            continue;
        }
        std::vector<std::int64_t> starts = search.starts();
        const std::int64_t achieved = problem.squeezed(starts, period, bound);
        best = RepeatingUnit{microBatches, achieved, std::move(starts)};
        high = achieved - 1;
    }
    return best;
}

} // namespace

bool isShorter(const RepeatingUnit &one, const RepeatingUnit &other)
{
    return one.period * other.microBatches < other.period * one.microBatches;
}

Placement inUnits(const Placement &placement, std::int32_t microBatches)
{
    Placement units{.devices = placement.devices, .memoryLimit = placement.memoryLimit};
    const auto copyOf = [&](std::int32_t block, std::int32_t m) { return block * microBatches + m; };
    for (const PlacementBlock &block : placement.blocks)
        for (std::int32_t m = 0; m < microBatches; ++m) {
            units.blocks.push_back(block);
            units.blocks.back().id = static_cast<std::int64_t>(units.blocks.size());
        }
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(placement.blocks.size()); ++b)
        for (std::int32_t m = 0; m < microBatches; ++m) // in the order of the micro-batches
            units.edges.push_back(
                {copyOf(b, m), copyOf(b, (m + 1) % microBatches), m + 1 < microBatches ? 0 : 1});
    for (const PlacementEdge &edge : placement.edges)
        for (std::int32_t m = 0; m < microBatches; ++m) {
            const std::int32_t later = m + edge.distance;
            units.edges.push_back(
                {copyOf(edge.before, m), copyOf(edge.after, later % microBatches), later / microBatches});
        }
    return units;
}

std::optional<RepeatingUnit> findUnit(
    const Placement &placement, const PeriodicSchedule &steady, const ScheduleLimits &limits)
{
    const Placement repeated = steadyStateOf(placement);
    if (busiestQueue(repeated) >= steady.period)
        return std::nullopt;
    RepeatingUnit best{1, steady.period, steady.start};
    const auto count = static_cast<std::int32_t>(placement.blocks.size());
    for (std::int32_t m = 2; m <= kMostInUnit && m * count <= kMostUnitBlocks && !limits.areOver(); ++m) {
        // All of them in less than the best so far takes for as many.
        const std::int64_t most = (best.period * m + best.microBatches - 1) / best.microBatches;
        if (auto unit = shorterUnit(repeated, m, most, limits); unit && isShorter(*unit, best))
            best = *std::move(unit);
    }
    if (best.microBatches == 1)
        return std::nullopt;
    return best;
}

std::vector<BlockStart> unroll(
    const Placement &placement, const RepeatingUnit &unit, std::int32_t microBatches)
{
    std::vector<BlockStart> starts;
    for (std::size_t b = 0; b < placement.blocks.size(); ++b)
        for (std::int32_t m = 0; m < microBatches && !placement.blocks[b].once; ++m)
            starts.push_back({static_cast<std::int32_t>(b), m,
                unit.start[b * at(unit.microBatches) + at(m % unit.microBatches)]
                    + (m / unit.microBatches) * unit.period});
    addOnce(placement, starts);
    return starts;
}

} // namespace planloom
