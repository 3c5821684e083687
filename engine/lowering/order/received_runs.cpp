#include "engine/lowering/order/received_runs.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

std::vector<std::pair<std::int32_t, std::int32_t>> transferOrder(const std::vector<BlockInfo> &blocks)
{
    std::vector<std::vector<std::int32_t>> from(blocks.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> order;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].kind == SegmentKind::Transfer) {
            const auto transfer = static_cast<std::int32_t>(b);
            from[at(blocks[b].source)].push_back(transfer);
            order.emplace_back(blocks[b].source, transfer);
            order.emplace_back(transfer, blocks[b].target);
        }
    for (auto &transfers : from) {
        std::stable_sort(transfers.begin(), transfers.end(),
            [&](std::int32_t a, std::int32_t b) { return blocks[at(a)].rank < blocks[at(b)].rank; });
        for (std::size_t i = 1; i < transfers.size(); ++i)
            order.emplace_back(transfers[i - 1], transfers[i]);
    }
    return order;
}

ReceivedRuns::ReceivedRuns(const std::vector<BlockInfo> &blocks, std::int32_t microBatches)
    : m_blocks(blocks)
    , m_microBatches(at(microBatches))
    , m_sends(blocks.size())
    , m_hasArrived(blocks.size() * m_microBatches, false)
{
    std::map<std::tuple<SegmentKind, StageId, std::int32_t>, std::size_t> passes;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const BlockInfo &block = blocks[b];
        m_passOf.push_back(
            passes.try_emplace({block.kind, block.stage, block.lane}, passes.size()).first->second);
        if (block.kind == SegmentKind::Transfer && !block.devices.empty())
            m_sends[at(block.source)].push_back(static_cast<std::int32_t>(b));
    }
    m_ahead.resize(passes.size(), 0);
    m_pending.resize(passes.size());
}

std::size_t ReceivedRuns::placeOf(std::int32_t block, std::int32_t microBatch) const
{
    return at(block) * m_microBatches + at(microBatch);
}

bool ReceivedRuns::hasRoom(std::int32_t transfer, std::int32_t microBatch) const
{
    const std::int32_t target = m_blocks[at(transfer)].target;
    return m_hasArrived[placeOf(target, microBatch)]
        || m_ahead[m_passOf[at(target)]] < kAhead * std::max(1, m_blocks[at(target)].slices);
}

bool ReceivedRuns::mayArrive(std::int32_t block, std::int32_t microBatch) const
{
    const std::int32_t target = m_blocks[at(block)].target;
    const auto &pending = m_pending[m_passOf[at(target)]];
    return m_hasArrived[placeOf(target, microBatch)]
        || (hasRoom(block, microBatch)
            && (m_ahead[m_passOf[at(target)]] == 0
                || std::none_of(pending.begin(), pending.end(),
                    [&](const auto &send) { return hasRoom(send.first, send.second); })));
}

void ReceivedRuns::ran(std::int32_t block, std::int32_t microBatch)
{
    const BlockInfo &own = m_blocks[at(block)];
    if (own.kind == SegmentKind::Transfer) {
        std::erase(m_pending[m_passOf[at(own.source)]], std::pair(block, microBatch));
        if (const std::size_t place = placeOf(own.target, microBatch); !m_hasArrived[place]) {
            m_hasArrived[place] = true;
            ++m_ahead[m_passOf[at(own.target)]];
        }
        return;
    }
    if (m_hasArrived[placeOf(block, microBatch)])
        --m_ahead[m_passOf[at(block)]];
    for (const std::int32_t transfer : m_sends[at(block)])
        m_pending[m_passOf[at(block)]].emplace_back(transfer, microBatch);
}

} // namespace planloom
