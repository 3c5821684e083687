#pragma once

#include "engine/lowering/sharded_weights.h"

#include <map>
#include <vector>

namespace planloom {

/// Brings operators what they read, from wherever it is: kept across steps, shared out, fed from the host, or
/// made by other operators.
class BlockInputs
{
public:
    /// @param blocks, kept, sharded  of the work; all must outlive this
    BlockInputs(LoweringWork &work, const LoweredBlocks &blocks, KeptWeights &kept, ShardedWeights &sharded);

    /// What the host fed to other blocks is not at hand in the next one.
    void beginBlock() { m_loaded.clear(); }
    /// Buffers of a tensor by need.
    Result<std::vector<std::int32_t>> of(
        TensorId tensor, const std::vector<Need> &needs, DataType type, std::int32_t block, OperatorId op);
    /// Buffers of the parts of an operator with these numbers, by slot; -1 where absent.
    /// @param passed  by slot: inputs that come another way; empty for none
    Result<std::vector<BufferList>> ofParts(OperatorId id, std::int32_t block,
        const std::vector<std::size_t> &numbers, const std::vector<bool> &passed = {});

private:
    std::int32_t load(TensorId tensor, const Need &need, DataType type, std::int32_t block, OperatorId op);
    Result<std::vector<std::int32_t>> ofSlot(OperatorId id, std::int32_t block, std::size_t slot,
        const std::vector<const TransformedPart *> &parts);

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    KeptWeights &m_kept;
    ShardedWeights &m_sharded;
    std::map<TensorId, std::vector<KeptBox>> m_loaded{}; ///< From the host, for the block at hand.
};

} // namespace planloom
