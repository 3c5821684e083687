#pragma once

#include "engine/lowering/block_inputs.h"
#include "engine/lowering/cut_gradients.h"

#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// Brings the operators of the optimizer what they read: weights, gradients over all micro-batches of all
/// units, states.
class UpdateInputs
{
public:
    /// All of the same work, and must outlive this.
    UpdateInputs(LoweringWork &work, BlockInputs &inputs, KeptWeights &kept, const ShardedWeights &sharded,
        GradientBuckets &gradients, CutGradients &cut);

    /// Buffers by part and slot of what an operator reads in `block`.
    Result<std::vector<BufferList>> of(OperatorId id, std::int32_t block);
    /// The gradient that it reads, added up inside of each unit; emitted once.
    Result<std::vector<std::int32_t>> gradientInUnit(OperatorId id, std::size_t slot);

private:
    Result<std::vector<std::int32_t>> ofSlot(OperatorId id, std::size_t slot, std::int32_t block);
    std::int32_t shareOf(
        OperatorId id, const TransformedPart &part, std::size_t slot, std::int32_t own, std::int32_t block);
    Result<std::vector<std::int32_t>> whole(
        OperatorId id, std::size_t slot, DataType type, std::int32_t block);

    LoweringWork &m_work;
    BlockInputs &m_inputs;
    KeptWeights &m_kept;
    const ShardedWeights &m_sharded;
    GradientBuckets &m_gradients;
    CutGradients &m_cut;
    std::map<std::pair<OperatorId, std::size_t>, std::vector<std::int32_t>>
        m_inUnit{}; ///< Gradients by slot.
    /// By device and buffer of a unit's own sum: that of all units, where several operators read it.
    std::map<std::pair<DeviceId, std::int32_t>, std::int32_t> m_ofUnits{};
};

} // namespace planloom
