#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

/// By block: there is a way along edges, forwards or backwards, between it and a block of micro-batches.
std::vector<bool> reachRepeated(const Placement &placement, bool forwards)
{
    std::vector<bool> reach(placement.blocks.size(), false);
    for (bool moved = true; moved;) {
        moved = false;
        for (const PlacementEdge &edge : placement.edges) {
            const std::size_t own = at(forwards ? edge.before : edge.after);
            const std::size_t other = at(forwards ? edge.after : edge.before);
            if (!reach[own] && (reach[other] || !placement.blocks[other].once))
                moved = reach[own] = true;
        }
    }
    return reach;
}

} // namespace

PlacementRuns::PlacementRuns(const Placement &placement, std::int32_t microBatches)
    : m_first{0}
{
    for (const PlacementBlock &block : placement.blocks)
        m_first.push_back(m_first.back() + (block.once ? 1 : microBatches));
}

std::int32_t PlacementRuns::blockOf(std::int32_t number) const
{
    return static_cast<std::int32_t>(
        std::upper_bound(m_first.begin(), m_first.end(), number) - m_first.begin() - 1);
}

Result<void> validateOnce(const Placement &placement)
{
    const auto refused = [](std::string where, std::string message, std::string advice) {
        return Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), std::move(where)};
    };
    const auto isOnce = [](const PlacementBlock &block) { return block.once; };
    if (std::all_of(placement.blocks.begin(), placement.blocks.end(), isOnce))
        return refused("blocks", "expected a block that runs for every micro-batch, found none",
            "leave \"once\" out where a block belongs to a micro-batch");
    if (std::none_of(placement.blocks.begin(), placement.blocks.end(), isOnce))
        return {};
    for (std::size_t i = 0; i < placement.edges.size(); ++i) {
        const PlacementEdge &edge = placement.edges[i];
        if (edge.distance != 0
            && (placement.blocks[at(edge.before)].once || placement.blocks[at(edge.after)].once))
            return refused("edge:" + std::to_string(i),
                "what runs once has no other micro-batches, found a distance of "
                    + std::to_string(edge.distance),
                "leave the distance out");
    }
    const auto before = reachRepeated(placement, true);
    const auto behind = reachRepeated(placement, false);
    for (std::size_t b = 0; b < placement.blocks.size(); ++b)
        if (placement.blocks[b].once && before[b] && behind[b])
            return refused("block:" + std::to_string(placement.blocks[b].id),
                wordsOf(placement.blocks[b])
                    + " runs once, waits for blocks of all micro-batches, and blocks of all wait for it",
                "what runs once comes before the micro-batches, or behind them");
    for (const MemoryOption &option : placement.options)
        for (const std::int32_t block : {option.block, option.until})
            if (placement.blocks[at(block)].once)
                return refused("block:" + std::to_string(placement.blocks[at(option.block)].id),
                    "its " + std::string(nameOf(option.kind)) + " is for blocks of micro-batches, "
                        + wordsOf(placement.blocks[at(block)]) + " runs once",
                    "leave the option out");
    return {};
}

Placement steadyStateOf(const Placement &placement)
{
    const auto before = reachRepeated(placement, true);
    Placement steady = placement;
    std::int32_t queue = 0; // the last that is in use
    for (const PlacementBlock &block : placement.blocks)
        queue = std::max(queue, block.queue);
    for (const MemoryOption &option : placement.options)
        queue = std::max({queue, option.queue, option.backQueue});
    for (std::size_t b = 0; b < steady.blocks.size(); ++b) {
        PlacementBlock &block = steady.blocks[b];
        if (!block.once)
            continue;
        for (const std::int32_t device : block.devices)
            if (before[b] && !steady.memoryLimit.empty())
                steady.memoryLimit[at(device)] -= block.memory;
        block.queue = ++queue;
        block.time = 1;
        block.memory = 0;
        block.workspace = 0;
    }
    std::erase_if(steady.edges, [&](const PlacementEdge &edge) {
        return steady.blocks[at(edge.before)].once || steady.blocks[at(edge.after)].once;
    });
    return steady;
}

void addOnce(const Placement &placement, std::vector<BlockStart> &starts)
{
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    struct Extent {
        std::int64_t first = kNone; ///< Start.
        std::int64_t last = -kNone; ///< End.
    };
    std::vector<Extent> extents(placement.blocks.size());
    const auto add = [&](const BlockStart &run) {
        Extent &own = extents[at(run.block)];
        own.first = std::min(own.first, run.start);
        own.last = std::max(own.last, run.start + placement.blocks[at(run.block)].time);
    };
    std::for_each(starts.begin(), starts.end(), add);
    const auto addRun = [&](std::int32_t block, std::int64_t start) {
        starts.push_back({block, 0, start});
        add(starts.back());
    };
    const auto order = topologicalOrder(placement);
    for (auto block = order.rbegin(); block != order.rend(); ++block) {
        std::int64_t first = kNone;
        for (const PlacementEdge &edge : placement.edges)
            if (edge.before == *block)
                first = std::min(first, extents[at(edge.after)].first);
        if (placement.blocks[at(*block)].once && first != kNone)
            addRun(*block, first - placement.blocks[at(*block)].time);
    }
    for (const std::int32_t block : order) {
        std::int64_t last = -kNone;
        for (const PlacementEdge &edge : placement.edges)
            if (edge.after == block)
                last = std::max(last, extents[at(edge.before)].last);
        if (placement.blocks[at(block)].once && extents[at(block)].first == kNone)
            addRun(block, last == -kNone ? 0 : last);
    }
}

} // namespace planloom
