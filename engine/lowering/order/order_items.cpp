#include "engine/lowering/order/order_items.h"

#include <algorithm>

namespace planloom {

namespace {

/// A backward block runs what gradients of inputs ask for, and the other way round.
BlockKey anyBackward(BlockKey key)
{
    if (key.pass == SegmentKind::InputGradient)
        key.pass = SegmentKind::Backward;
    return key;
}

} // namespace

OrderItems::OrderItems(const std::vector<BlockInfo> &blocks, std::int32_t microBatches)
    : m_blocks(blocks)
    , m_microBatches(static_cast<std::size_t>(microBatches))
    , m_positions(blocks.size(), -1)
{
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const BlockInfo &block = blocks[b];
        if ((!isPass(block.kind) && block.kind != SegmentKind::Transfer) || block.devices.empty())
            continue;
        m_positions[b] = static_cast<std::int32_t>(m_repeated.size());
        if (isPass(block.kind))
            m_named.emplace_back(anyBackward(keyOf(block)), m_positions[b]);
        m_repeated.push_back(static_cast<std::int32_t>(b));
    }
    std::sort(m_named.begin(), m_named.end());
}

std::optional<std::size_t> OrderItems::find(const ScheduledBlock &block) const
{
    const BlockKey key = anyBackward(block.block);
    const auto found = std::lower_bound(m_named.begin(), m_named.end(), key,
        [](const auto &named, const BlockKey &wanted) { return named.first < wanted; });
    if (found == m_named.end() || found->first != key || block.microBatch < 0
        || static_cast<std::size_t>(block.microBatch) >= m_microBatches)
        return std::nullopt;
    return itemAt(found->second, block.microBatch);
}

std::string wordsOf(const OrderItems &items, std::size_t item)
{
    const BlockInfo &block = items.blockOf(item);
    return std::string(nameOf(block.kind)) + " block of stage " + std::to_string(block.stage.index)
        + ", micro-batch " + std::to_string(items.microBatchOf(item))
        + (block.slices > 1 ? ", slice " + std::to_string(block.slice) : "")
        + (block.lanes > 1 ? ", lane " + std::to_string(block.lane) : "");
}

} // namespace planloom
