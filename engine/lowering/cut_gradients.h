#pragma once

#include "engine/lowering/gradient_buckets.h"
#include "engine/lowering/sharded_weights.h"

#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// ZeRO's stage 2 (arXiv:1910.02054, section 5): gradients that are reduced to shards in every micro-batch.
class CutGradients
{
public:
    /// @param blocks, sharded, gradients  of the work; all must outlive this
    CutGradients(LoweringWork &work, const LoweredBlocks &blocks, const ShardedWeights &sharded,
        GradientBuckets &gradients);

    /// Whether a gradient is cut into shards in every micro-batch: one block makes it, and across units every
    /// device makes all of its box alone.
    bool isCut(TensorId gradient);
    bool isCutInUnit(TensorId gradient); ///< And the devices of the unit share it out.
    /// What a part of `op` made of such a gradient in a micro-batch, to be cut when its group is done.
    void add(TensorId gradient, DeviceId device, std::int32_t block, OperatorId op, const IndexMask &box,
        std::int32_t summand, std::int32_t buffer);
    /// An operator has run: gradients that it was the last to add to are complete for this micro-batch.
    void note(OperatorId id, std::int32_t block);
    /// Cuts the gradients that are complete behind the operators emitted so far, and adds the shards up that
    /// were cut before: what is computed next is not to wait for those that are on their way.
    Result<void> cut(std::int32_t block);
    /// Cuts what is left of a block, and adds all of it up.
    Result<void> endBlock(std::int32_t block);

private:
    const ShardedWeight &weightOf(TensorId gradient) const
    {
        return *m_sharded.of(m_work.graph.at(gradient).of, 2);
    }
    std::vector<TensorId> takeComplete(std::int32_t block);
    void cutAcrossUnits(const std::vector<TensorId> &gradients, std::int32_t block);

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    const ShardedWeights &m_sharded;
    GradientBuckets &m_gradients;
    std::map<TensorId, bool> m_isCut{}; ///< By gradient, once asked.
    std::map<TensorId, std::int32_t> m_makersLeft{}; ///< By such a gradient: operators that add to it still.
    std::vector<TensorId> m_complete{}; ///< Such gradients, not yet cut.
    std::vector<GradientShard> m_shards{}; ///< Of the block at hand, not yet added up.
    /// (buffer, summand) of what a device made of such a gradient.
    std::map<std::pair<TensorId, DeviceId>, std::vector<std::pair<std::int32_t, std::int32_t>>> m_made{};
};

} // namespace planloom
