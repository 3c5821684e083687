#include "engine/lowering/order/held_micro_batches.h"

#include <algorithm>
#include <set>

namespace planloom {

HeldMicroBatches::HeldMicroBatches(const OrderItems &items, HoldLimits limits)
    : m_items(items)
    , m_limits(std::move(limits))
    , m_releases(items.positions())
{
    for (const BlockInfo &block : items.allBlocks())
        m_lanes = std::max(m_lanes, block.lanes);
    const auto lanes = static_cast<std::size_t>(std::max(m_limits.stageCount, 1) * m_lanes);
    m_held.assign(lanes, 0);
    m_hasBackward.assign(lanes, false);
    m_backwardLeft.assign(lanes * items.microBatches(), 0);
    m_ranForward.assign(m_backwardLeft.size(), false);
    m_ranBackward.assign(m_backwardLeft.size(), false);
    bool any = false;
    for (std::size_t p = 0; p < items.positions(); ++p)
        if (isBackward(items.at(p).kind))
            any = m_hasBackward[laneOf(items.at(p))] = true;
    m_limits.fallWithStage = m_limits.fallWithStage && any;
    findReleases();
}

void HeldMicroBatches::findReleases()
{
    std::vector<bool> splits(m_held.size(), false); // by lane: what it holds, it holds until weight gradients
    for (std::size_t p = 0; p < m_items.positions(); ++p)
        if (m_items.at(p).kind == SegmentKind::WeightGradient)
            splits[laneOf(m_items.at(p))] = true;
    for (std::size_t p = 0; p < m_items.positions(); ++p) {
        const BlockInfo &block = m_items.at(p);
        if (!isBackward(block.kind) || splits[laneOf(block)] != (block.kind == SegmentKind::WeightGradient))
            continue;
        std::set<std::size_t> lanes{laneOf(block)};
        for (std::size_t f = 0; f < m_items.positions(); ++f) {
            const BlockInfo &forward = m_items.at(f);
            if (forward.kind == SegmentKind::Forward && forward.stage == block.stage
                && std::any_of(block.devices.begin(), block.devices.end(), [&](DeviceId device) {
                       return std::binary_search(forward.devices.begin(), forward.devices.end(), device);
                   }))
                lanes.insert(laneOf(forward));
        }
        m_releases[p].assign(lanes.begin(), lanes.end());
        for (const std::size_t lane : lanes)
            for (std::size_t i = 0; i < m_items.microBatches(); ++i)
                ++m_backwardLeft[placeOf(lane, i)];
    }
}

bool HeldMicroBatches::mayHold(std::size_t item) const
{
    const BlockInfo &block = m_items.blockOf(item);
    const std::size_t lane = laneOf(block);
    const std::size_t place = placeOf(lane, m_items.microBatchOf(item));
    if (m_ranBackward[place] || m_ranForward[place])
        return true;
    const auto stage = static_cast<std::size_t>(block.stage.index);
    const std::int32_t limit = stage < m_limits.byStage.size() ? m_limits.byStage[stage] : 0;
    if (limit > 0)
        return !m_hasBackward[lane] || m_held[lane] < limit;
    return !m_limits.fallWithStage || m_held[lane] < m_limits.stageCount - block.stage.index;
}

void HeldMicroBatches::ran(std::size_t item)
{
    const std::size_t microBatch = m_items.microBatchOf(item);
    for (const std::size_t lane : m_releases[m_items.positionOfItem(item)])
        if (const std::size_t place = placeOf(lane, microBatch); --m_backwardLeft[place] == 0) {
            m_ranBackward[place] = true;
            m_held[lane] -= m_ranForward[place] ? 1 : 0;
        }
    if (isBackward(m_items.blockOf(item).kind))
        return;
    const std::size_t lane = laneOf(m_items.blockOf(item));
    const std::size_t place = placeOf(lane, microBatch);
    m_held[lane] += m_ranBackward[place] || m_ranForward[place] ? 0 : 1;
    m_ranForward[place] = true;
}

} // namespace planloom
