#pragma once

#include "engine/lowering/kept_weights.h"

#include <algorithm>
#include <map>
#include <vector>

namespace planloom {

/// ZeRO's stage 3 (arXiv:1910.02054, section 5): weights that are gathered before their use, group by group,
/// and which weights' replicas share out more than the update at all.
class ShardedWeights
{
public:
    /// @param blocks, kept  of the work; all must outlive this
    ShardedWeights(LoweringWork &work, const LoweredBlocks &blocks, KeptWeights &kept);

    /// Finds the weights whose replicas share out more than the update; operators are in their blocks.
    void find();
    /// Null where its replicas share out less than `stage` does.
    const ShardedWeight *of(TensorId weight, std::int32_t stage) const;

    /// Finds what is to be gathered for a block, and when.
    /// @return InvalidInput naming a row that asks for weights after their use
    Result<void> beginBlock(std::int32_t block);
    /// Gathers the weights of groups that are due before the operator at `place` of `block`.
    void gatherAhead(std::size_t place, std::int32_t block);
    /// Brings a sharded weight together where `needs` ask for it, once in a block.
    void gather(const ShardedWeight &sharded, TensorId weight, const std::vector<Need> &needs, DataType type,
        std::int32_t block, OperatorId op);
    /// Whether a group's last operator is at one of these places of the block at hand, [begin, end).
    bool anyGroupEnds(std::size_t begin, std::size_t end) const;

private:
    /// A sharded weight, as one operator reads it.
    struct WeightGather {
        const ShardedWeight *sharded = nullptr;
        TensorId weight{};
        DataType type{};
        OperatorId op{};
        std::vector<Need> needs{}; ///< By part.
        std::vector<DeviceId> among{}; ///< That have something of what the first part reads.
    };
    /// Operators of a block whose sharded weights are gathered together.
    struct GatherGroup {
        std::size_t first = 0; ///< Places in the block's sequence.
        std::size_t last = 0;
        std::size_t due = 0; ///< Where the weights are gathered.
        bool waits = true; ///< For what is computed before that place.
        std::vector<OperatorId> operators{};
    };

    void addGathers(OperatorId id, std::int32_t block, std::vector<WeightGather> &gathers) const;
    void findGroups(std::int32_t block);
    Result<void> scheduleGroups(std::int32_t block);

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    KeptWeights &m_kept;
    std::map<TensorId, ShardedWeight> m_sharded{}; ///< By weight.
    std::vector<GatherGroup> m_groups{}; ///< Of the block at hand, in the order of their begins.
    bool m_waits = true; ///< Gathers start no earlier than what was emitted before them is done.
};

/// Puts together what the same devices communicate, so that it is one launch: in the order in which the first
/// of each comes.
template<typename Each> void byGroups(std::vector<Each> &all, std::vector<DeviceId> Each::*among)
{
    std::map<std::vector<DeviceId>, std::size_t> places;
    for (const Each &each : all)
        places.try_emplace(each.*among, places.size());
    std::stable_sort(all.begin(), all.end(),
        [&](const Each &a, const Each &b) { return places.at(a.*among) < places.at(b.*among); });
}

} // namespace planloom
