#pragma once

#include "engine/lowering/order/order.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// What orders transfers besides the data that they carry: each stands behind its source and before its
/// target, and those of one source in the order of their ranks, as they may share buffers. Pairs of blocks.
std::vector<std::pair<std::int32_t, std::int32_t>> transferOrder(const std::vector<BlockInfo> &blocks);

/// How far what arrives for a block is ahead of it. What a device sends and receives of a pass is in one
/// order (QueueKind::Pipeline, or PipelineBack): what it is to receive much later must not stand before what
/// it is to send now, or the stages behind it wait. So no more than two runs of a pass, all slices of each,
/// have what they read before they are done, and what the block's stage can send goes first:
///
///     compute            Y0      Y1      Y2
///     transfers   >Y0    >Y1  Y0>    >Y2 Y1>      and never   >Y2 Y0>
class ReceivedRuns
{
public:
    ReceivedRuns(const std::vector<BlockInfo> &blocks, std::int32_t microBatches);

    /// Whether a transfer may be the next.
    bool mayArrive(std::int32_t block, std::int32_t microBatch) const;
    /// A block, or a transfer, has run for a micro-batch.
    void ran(std::int32_t block, std::int32_t microBatch);

private:
    static constexpr std::int32_t kAhead = 2; ///< Runs, of all slices, of which something has arrived.

    std::size_t placeOf(std::int32_t block, std::int32_t microBatch) const;
    bool hasRoom(std::int32_t transfer, std::int32_t microBatch) const;

    const std::vector<BlockInfo> &m_blocks;
    std::size_t m_microBatches = 1;
    std::vector<std::size_t> m_passOf{}; ///< By block: slices of a stage's pass are one.
    std::vector<std::vector<std::int32_t>> m_sends{}; ///< By block: transfers from it.
    std::vector<std::int32_t> m_ahead{}; ///< By pass.
    /// By pass: transfers that its runs could send, with their micro-batches.
    std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> m_pending{};
    std::vector<bool> m_hasArrived{}; ///< By block and micro-batch.
};

} // namespace planloom
