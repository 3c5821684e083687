#pragma once

#include "engine/lowering/gradient_clipping.h"
#include "engine/lowering/update_inputs.h"

#include <map>
#include <utility>
#include <vector>

namespace planloom {

/// Updates weights, and brings the new ones to wherever they are kept.
class OptimizerEmitter
{
public:
    /// All of the same work, and must outlive this.
    OptimizerEmitter(LoweringWork &work, const LoweredBlocks &blocks, BlockInputs &inputs, KeptWeights &kept,
        const ShardedWeights &sharded, GradientBuckets &gradients, CutGradients &cut);

    /// Weights are updated in the order in which their gradients are reduced, those of one bucket together:
    /// none waits for a reduction that comes later. What brings the new weights of a bucket to their copies
    /// (one launch casts them) stands behind the kernels of the next, which would else wait until they have
    /// been gathered. What the same devices bring together waits until it is worth a launch.
    Result<void> emit();

private:
    /// A weight's update, of which its copies know nothing yet.
    struct WeightUpdate {
        OperatorId id{};
        std::int32_t block = -1;
        std::vector<std::pair<DeviceId, std::int32_t>> inPlace{}; ///< Buffers, ascending.
        std::vector<std::vector<Holding>> made{}; ///< By slot of its outputs.
        bool isInPlace(const KeptBox &kept) const;
    };
    struct Gathering {
        std::vector<DeviceId> sources{}; ///< Whose parts come together; none where nothing is to be brought.
        Bytes bytes{};
    };

    std::int32_t blockOf(const Operator &op) const;
    OperatorsByBucket byBlockAndBucket(bool (*wanted)(const Operator &)) const;
    Result<void> emitBlock(
        std::int32_t block, const std::map<std::int32_t, std::vector<OperatorId>> &byBucket);
    std::vector<OperatorId> byReduction(std::vector<OperatorId> updates) const;
    Result<std::vector<WeightUpdate>> emitUpdates(const std::vector<OperatorId> &together);
    Result<WeightUpdate> emitUpdate(OperatorId id);
    void emitPart(WeightUpdate &update, std::size_t number, const BufferList &inputs,
        const std::optional<UnitShard> &shard);
    Gathering gatheringOf(const WeightUpdate &update) const;
    bool isWorthALaunch(const std::vector<DeviceId> &sources, Bytes bytes) const;
    Result<void> spread(WeightUpdate update);
    Result<void> spreadSlot(WeightUpdate &update, std::size_t slot, bool isGathered);
    void castShards(TensorId weight, DeviceId device, std::int32_t block, OperatorId op, std::int32_t made);
    void gatherAcrossUnits(OperatorId id, std::int32_t block, const Holding &own, const UnitShard &shard);

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    const KeptWeights &m_kept;
    const ShardedWeights &m_sharded;
    GradientBuckets &m_gradients;
    UpdateInputs m_inputs;
    GradientClipping m_clipping;
};

} // namespace planloom
