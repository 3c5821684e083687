#pragma once

#include "engine/lowering/lowered_blocks.h"

#include <map>
#include <optional>
#include <vector>

namespace planloom {

/// A shard of a micro-batch's gradient, to be added to that of the step.
struct GradientShard {
    TensorId gradient{};
    DeviceId device{};
    OperatorId update{};
    IndexMask box{};
    std::int32_t buffer = -1;
    const UnitShard *shard = nullptr; ///< Where the units share it out.
};

/// Gradients of weights: where devices add them up over a step's micro-batches, when they are complete, and
/// which are reduced together.
class GradientBuckets
{
public:
    /// @param blocks  of the work; both must outlive this
    GradientBuckets(LoweringWork &work, const LoweredBlocks &blocks);

    /// Adds what a device made of a summand in `block`, once.
    void accumulate(TensorId gradient, DeviceId device, std::int32_t block, OperatorId op,
        const IndexMask &box, std::int32_t summand, std::int32_t buffer);
    /// Adds shards of this micro-batch's gradients, which are complete then.
    void addShards(const std::vector<GradientShard> &shards, std::int32_t block);
    /// The gradients that this operator adds to are complete behind it, unless another one adds to them too.
    void markCompletions(OperatorId id, std::int32_t block);
    /// Sorts gradients into buckets, in the order in which the backward pass completes them, each until it is
    /// full (`isFullBucket`), and hands what was added up to their reductions.
    void reduce();

    /// The stage that completes a gradient, or the number of stages where several do; nothing if nobody does.
    std::optional<std::int32_t> stageOf(TensorId gradient) const;
    /// Number of the bucket of a gradient; -1 for what is none.
    std::int32_t bucketOf(TensorId gradient) const;
    /// The block that reduces it.
    std::int32_t reductionOf(TensorId gradient) const { return m_buckets[at(m_bucketOf.at(gradient))].block; }
    /// The devices that hold summands of one part of a gradient, each others.
    std::vector<DeviceId> addersOf(TensorId gradient) const;
    /// Where a device adds the first box of a gradient up.
    std::int32_t sumOn(TensorId gradient, DeviceId device) const
    {
        return m_accumulators[at(gradient)].at(device).front().buffer;
    }
    void handOver(MaterializedPlan &materialized) const; ///< The reductions.

private:
    struct Accumulator {
        IndexMask box{};
        std::int32_t summand = -1; ///< The only one it holds; -1 where it holds them all.
        std::int32_t buffer = -1;
        SummandSet summands{};
        bool complete = false; ///< Whatever `summands` says: what is added to it is complete.
    };
    /// Behind these marks in the last micro-batch, one for each lane that adds to it.
    struct Completion {
        std::vector<BlockMark> marks{}; ///< None: several stages or passes add to it.
        bool atEnd() const { return marks.empty(); }
    };
    struct Bucket {
        std::int32_t block = -1; ///< The reduction's own.
        Completion after{};
    };

    bool joinsAccumulators(TensorId gradient);
    void noteCompletion(TensorId gradient, std::int32_t block);
    void addShard(const GradientShard &shard, std::int32_t block);
    double reductionSeconds(TensorId gradient, Bytes bytes) const;
    std::vector<TensorId> inOrderOfCompletion() const;
    void fillBuckets();
    void handOverSums();

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    std::vector<std::map<DeviceId, std::vector<Accumulator>>> m_accumulators; ///< By tensor and device.
    std::map<std::int32_t, bool> m_joinsAccumulators{}; ///< By tensor, once asked.
    std::map<TensorId, Completion> m_complete{};
    std::vector<Bucket> m_buckets{};
    std::map<TensorId, std::int32_t> m_bucketOf{};
};

} // namespace planloom
