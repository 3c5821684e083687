#pragma once

#include "engine/lowering/order/order.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// What an order is made of: the blocks that run once for every micro-batch, with each of them. Items are
/// numbered block by block; a block's place among those is its position.
class OrderItems
{
public:
    /// @param blocks  must outlive this
    OrderItems(const std::vector<BlockInfo> &blocks, std::int32_t microBatches);

    std::size_t count() const { return m_repeated.size() * m_microBatches; }
    std::size_t positions() const { return m_repeated.size(); }
    std::size_t microBatches() const { return m_microBatches; }
    const std::vector<BlockInfo> &allBlocks() const { return m_blocks; }

    std::int32_t positionOf(std::int32_t block) const ///< -1 for a block that does not run so, or nowhere.
    {
        return m_positions[static_cast<std::size_t>(block)];
    }
    std::size_t positionOfItem(std::size_t item) const { return item / m_microBatches; }
    const BlockInfo &at(std::size_t position) const
    {
        return m_blocks[static_cast<std::size_t>(m_repeated[position])];
    }

    const BlockInfo &blockOf(std::size_t item) const { return at(positionOfItem(item)); }
    std::size_t microBatchOf(std::size_t item) const { return item % m_microBatches; }
    BlockRun runOf(std::size_t item) const ///< The whole block.
    {
        return {m_repeated[positionOfItem(item)], static_cast<std::int32_t>(microBatchOf(item))};
    }

    std::size_t itemAt(std::int32_t position, std::int32_t microBatch) const
    {
        return static_cast<std::size_t>(position) * m_microBatches + static_cast<std::size_t>(microBatch);
    }
    /// What a schedule calls so; nothing for a pass that a stage has not got. O(log blocks)
    std::optional<std::size_t> find(const ScheduledBlock &block) const;

private:
    const std::vector<BlockInfo> &m_blocks;
    std::size_t m_microBatches = 1;
    std::vector<std::int32_t> m_repeated{}; ///< By position: the block.
    std::vector<std::int32_t> m_positions{}; ///< By block.
    std::vector<std::pair<BlockKey, std::int32_t>> m_named{}; ///< Positions of passes, ascending.
};

/// "backward block of stage 1, micro-batch 0"
std::string wordsOf(const OrderItems &items, std::size_t item);

} // namespace planloom
