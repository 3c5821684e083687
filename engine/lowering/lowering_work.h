#pragma once

#include "engine/base/result.h"
#include "engine/graph/operators/storage_types.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/layout/materialize.h"
#include "engine/lowering/program/program_builder.h"
#include "engine/lowering/transform.h"
#include "engine/lowering/weight_versions.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// How units share a tensor out among them: along one of its dimensions, side by side, unit 0's share first.
struct UnitShard {
    std::int32_t dimension = -1;
    std::int64_t extent = 0; ///< Of all units' shares together, along it.

    IndexMask joined(IndexMask box) const; ///< Of unit 0's share: that of all units.
    void mark(BufferInfo &info) const; ///< Says in the buffer of unit 0's share that it is one.
};

/// What all parts of lowering work on: a plan, its graph taken apart, and the programs that become of it.
struct LoweringWork {
    /// @param versioned, costs  must outlive this
    LoweringWork(const VersionedPlan &versioned, const Cluster &ofAllUnits, const CostModel &costs,
        TransformedGraph transformed, std::shared_ptr<PathMemory> paths, std::stop_token stop);
    LoweringWork(const LoweringWork &) = delete;
    LoweringWork &operator=(const LoweringWork &) = delete;

    Result<void> goesOn() const; ///< Cancelled, once it is told to stop.

    const OperatorDecision &decisionOf(OperatorId id) const { return plan.decisions[at(id)]; }
    const std::vector<TransformedPart> &partsOf(OperatorId id) const { return transformed.operators[at(id)]; }
    /// How an optimizer operator is shared out over the units; nothing if all units do the same.
    std::optional<UnitShard> unitShardOf(OperatorId id) const;
    /// True for probabilities that the plan does not keep: neither made nor read.
    bool isLeftOut(OperatorId op, bool output, std::size_t slot) const;

    /// Number of the summand that a part makes of output `slot`.
    std::int32_t summandOf(OperatorId id, std::size_t slot, const TensorView &made) const
    {
        return transformed.summandBase[at(id)][slot] + made.value.index;
    }

    bool isPersistent(TensorId tensor) const; ///< Lives across steps.
    bool isWeightGradient(TensorId tensor) const;
    bool isWanted(TensorId tensor) const; ///< Somebody reads it.
    bool isInParts(TensorId tensor) const; ///< Several summands make up its value.
    MemoryKind memoryOf(TensorId tensor) const;
    /// The tensors before the versions of weights, which are the last.
    std::size_t firstVersion() const { return graph.tensors.size() - versions.size(); }
    /// The weight that `tensor` is a version of; itself if it is none.
    WeightVersion versionOf(TensorId tensor) const;

    bool runsInMicroBatches(std::int32_t block) const { return isPass(builder.block(block).kind); }
    /// Room for what a block is to run.
    void reserveRoom(std::int32_t block, const std::vector<OperatorId> &operators);
    /// A copy of `buffer` in another type; of the newest version of `as`, if that is another tensor.
    std::int32_t castBuffer(DeviceId device, std::int32_t block, OperatorId op, std::int32_t buffer,
        DataType type, TensorId as = {});
    /// What all units' shares of `tensor` are together, of which `share` is this unit's.
    Holding gatherAcrossUnits(TensorId tensor, DataType type, const UnitShard &shard, const Holding &share,
        std::int32_t block, OperatorId op);

    const Plan &plan; ///< With versions of weights as tensors, as its graph.
    const std::vector<WeightVersion> &versions;
    const Graph &graph;
    const Cluster cluster; ///< Of one unit.
    const CostModel &costs;
    TransformedGraph transformed;
    std::stop_token stop;
    Uses uses;
    std::vector<Precision> precisions; ///< By operator; empty if all work in Float32.
    StorageTypes types;
    ProgramBuilder builder;
    Materializer materializer;
};

} // namespace planloom
