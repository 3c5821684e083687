#pragma once

#include "engine/lowering/order/order_items.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The most micro-batches that stages may hold.
struct HoldLimits {
    std::int32_t stageCount = 1;
    std::vector<std::int32_t> byStage{}; ///< 0, or not there: none that a row gives.
    /// Where no row gives one, stage s of S holds at most S - s, if there is a backward pass.
    bool fallWithStage = false;
};

/// Micro-batches that stages hold, each lane its own, while blocks run: from the forward block until the last
/// of the stage's backward blocks on the lane's devices (that of weight gradients, where it has one). A
/// backward block that needs nothing of its forward block may run before it: then nothing is held.
class HeldMicroBatches
{
public:
    /// @param items  must outlive this
    HeldMicroBatches(const OrderItems &items, HoldLimits limits);

    /// Whether running this forward block now keeps the limit of its stage.
    bool mayHold(std::size_t item) const;
    /// Two items are of one lane of one stage.
    bool shareLane(std::size_t a, std::size_t b) const
    {
        return laneOf(m_items.blockOf(a)) == laneOf(m_items.blockOf(b));
    }
    void ran(std::size_t item); ///< A forward or backward block has run.

private:
    void findReleases();
    std::size_t laneOf(const BlockInfo &block) const ///< Among all lanes of all stages.
    {
        return static_cast<std::size_t>(block.stage.index * m_lanes + block.lane);
    }
    std::size_t placeOf(std::size_t lane, std::size_t microBatch) const
    {
        return lane * m_items.microBatches() + microBatch;
    }

    const OrderItems &m_items;
    HoldLimits m_limits;
    std::int32_t m_lanes = 1; ///< The most of a stage.
    std::vector<bool> m_hasBackward{}; ///< By lane.
    std::vector<std::vector<std::size_t>> m_releases{}; ///< By position: lanes that its block lets go of.
    std::vector<std::int32_t> m_held{}; ///< By lane.
    std::vector<std::int32_t> m_backwardLeft{}; ///< By place: blocks until it is let go.
    std::vector<bool> m_ranForward{}; ///< By place.
    std::vector<bool> m_ranBackward{}; ///< By place.
};

} // namespace planloom
