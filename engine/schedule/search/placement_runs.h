#pragma once

#include "engine/base/ids.h"
#include "engine/schedule/search/block_starts.h"
#include "engine/schedule/search/placement.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// One run of a block in a step; those that run once have micro-batch 0.
struct PlacedRun {
    std::int32_t block = 0;
    std::int32_t microBatch = 0;
    friend auto operator<=>(const PlacedRun &, const PlacedRun &) = default;
};

/// The runs of a step, numbered block by block: of each as many as there are micro-batches, of those that run
/// once one.
class PlacementRuns
{
public:
    PlacementRuns(const Placement &placement, std::int32_t microBatches);

    std::int32_t count() const { return m_first.back(); }
    std::int32_t of(std::int32_t block) const { return m_first[at(block) + 1] - m_first[at(block)]; }
    std::int32_t number(std::int32_t block, std::int32_t microBatch) const
    {
        return m_first[at(block)] + microBatch;
    }
    PlacedRun run(std::int32_t number) const ///< O(log blocks)
    {
        const std::int32_t block = blockOf(number);
        return {block, number - m_first[at(block)]};
    }
    std::int32_t blockOf(std::int32_t number) const;

private:
    std::vector<std::int32_t> m_first{}; ///< By block, and what is behind the last.
};

/// Calls `visit` with each micro-batch of `edge.before` that one of `edge.after` waits for: its own, or that
/// at the edge's distance; the only one of a block that runs once; and before a block that runs once all.
template<typename Visit>
void forEachRunBefore(const Placement &placement, const PlacementEdge &edge, std::int32_t microBatch,
    std::int32_t microBatches, const Visit &visit)
{
    if (placement.blocks[at(edge.before)].once) {
        visit(0);
    } else if (placement.blocks[at(edge.after)].once) {
        for (std::int32_t m = 0; m < microBatches; ++m)
            visit(m);
    } else if (microBatch >= edge.distance) {
        visit(microBatch - edge.distance);
    }
}

/// What validity asks of blocks that run once: other blocks wait for them, or they for others, not both.
/// @return InvalidInput naming the block, or the edge
Result<void> validateOnce(const Placement &placement);

/// The placement as its steady state sees it, far from both ends of a step. Blocks that run once keep their
/// index, but stand alone, on queues of their own; what those hold that others wait for is taken off the
/// devices' memory. May leave limits below 0, under which there is no steady state.
Placement steadyStateOf(const Placement &placement);

/// Adds the runs of blocks that run once to those of all others: what comes before the micro-batches ends
/// when the first of its readers starts, what comes behind them starts when the last that it waits for has
/// ended.
void addOnce(const Placement &placement, std::vector<BlockStart> &starts);

} // namespace planloom
