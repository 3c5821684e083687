#pragma once

#include "engine/base/ids.h"
#include "engine/base/scale_units.h"
#include "engine/graph/annotation/partition.h"
#include "engine/graph/dimensions/batch.h"
#include "engine/graph/graph.h"
#include "engine/graph/operators/attention.h"
#include "engine/graph/precision.h"
#include "engine/table/table.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// How far the sharding of a weight's update goes: the stages of ZeRO (arXiv:1910.02054, section 5).
struct WeightSharding {
    std::int32_t stage = 0; ///< 1: the optimizer's states; 2: gradients too; 3: weights too. 0: nothing.
    /// Stage 3: what the forward pass gathers is kept for the backward pass, not gathered again.
    bool keep = false;
    std::int32_t prefetch = 1; ///< Stage 3: groups of weights that are gathered ahead of those in use.
    friend bool operator==(const WeightSharding &, const WeightSharding &) = default;
};

/// `first` of micro-batch i runs side by side with `second` of micro-batch i + `microBatchOffset`, where both
/// exist: see `InterleaveRule`.
struct InterleavedBlocks {
    StageId firstStage{};
    SegmentKind first = SegmentKind::Forward;
    StageId secondStage{};
    SegmentKind second = SegmentKind::Backward;
    std::int32_t microBatchOffset = 0;
    RowId row{};
    std::int32_t firstLane = -1; ///< See `InterleaveRule::lane`.
    std::int32_t secondLane = -1;
    friend bool operator==(const InterleavedBlocks &, const InterleavedBlocks &) = default;
};

/// What was decided for one operator: its op-trans and op-assign, and the rows behind them.
struct OperatorDecision {
    Partition partition{};
    std::vector<DeviceId> devices{}; ///< Of each part; several parts may share a device (coshard).
    StageId stage{}; ///< Valid for forward and backward operators.
    /// Forward operators with the same group >= 0 drop their outputs and are run again just before the
    /// group's first backward operator; -1 keeps outputs.
    std::int32_t recomputeGroup = -1;
    /// Operators with the same region >= 0 run part by part: all of them the parts of turn 0, then those of
    /// turn 1. Forward ones that are recomputed are so part by part too, before the backward ones of the same
    /// turn. Backward operators are in the region of their forwards. See `turnOf`.
    std::int32_t coshardRegion = -1;
    AttentionMode attention = AttentionMode::Fused; ///< Of an Attention and its backward operator.
    /// Of an Attention and its backward operator whose keys and values go round (engine/plan/ring.h): which
    /// of its splits is that of the queries over the devices of the ring. -1: no ring.
    std::int32_t ringSplit = -1;
    WeightSharding sharding{}; ///< Of an optimizer operator whose partition shares its work out.
    /// Forward and backward operators with the same group >= 0 have their sharded weights gathered, and their
    /// gradients reduced, together; -1 for each on its own.
    std::int32_t gatherGroup = -1;
    /// Gradients of its weights are made in a pass of their own, behind the stage's other backward operators.
    /// Of forward and backward operators.
    bool splitBackward = false;
    /// Forward operators: what they made and the backward pass reads waits in host memory. Optimizer
    /// operators: their states, and weights that nobody else reads so, live there.
    bool offloaded = false;
    /// Forward and backward operators: how many versions of its weights are kept. Both read the oldest, that
    /// of `weightVersions` - 1 updates ago: see `stalenessOf` (execution_plan.h).
    std::int32_t weightVersions = 1;
    Precision precision{}; ///< Backward operators have their forward's.
    std::vector<RowId> precisionRows{}; ///< Rows it follows from, ascending; empty if the default decided.
    std::vector<RowId> rows{}; ///< Rows it follows from, ascending; empty if only defaults decided.
    std::string why{}; ///< The default rule that decided what no row did, as a sentence; may be empty.
    friend bool operator==(const OperatorDecision &, const OperatorDecision &) = default;
};

/// How many turns a decision's parts take: the parts of its last split, in a region; else 1.
inline std::int32_t turnsOf(const OperatorDecision &decision)
{
    return decision.coshardRegion < 0 || decision.partition.splits.empty()
        ? 1
        : decision.partition.splits.back().parts;
}

/// In which turn of its region part `part` runs.
inline std::int32_t turnOf(const OperatorDecision &decision, std::int32_t part)
{
    return part % turnsOf(decision);
}

/// op-order: `first` of micro-batch i runs before `second` of micro-batch i + `microBatchOffset`, on every
/// device that runs both, and across devices.
struct OrderConstraint {
    OperatorId first{};
    OperatorId second{};
    std::int32_t microBatchOffset = 0;
    RowId row{};
    std::int32_t microBatch = -1; ///< Only this i; -1 for every one.
    /// Every `first` of the constraints of this row with `allWithAll` runs before every `second` of them, so
    /// that two large selections take as many constraints as the larger has operators.
    bool allWithAll = false;
    BlockPart part{}; ///< Of the blocks of `first`: see `OpOrderRule`.
    BlockPart secondPart{};
    friend bool operator==(const OrderConstraint &, const OrderConstraint &) = default;
};

/// op-order of communication: what `first` communicates, where `before` before what `second` computes or
/// communicates, else after it. See `CommunicateRule`.
struct CommunicationOrder {
    std::vector<OperatorId> first{}; ///< Of one direction, ascending, as `second`.
    std::vector<OperatorId> second{};
    CommunicationPart part = CommunicationPart::Sends; ///< Of `first`. Never None.
    CommunicationPart secondPart = CommunicationPart::None;
    bool before = false;
    std::int32_t microBatchOffset = 0; ///< `second` is that of the micro-batch so many later.
    std::int32_t microBatch = -1; ///< Of `first`: only this one; -1 for every one.
    RowId row{};
    friend bool operator==(const CommunicationOrder &, const CommunicationOrder &) = default;
};

/// One explicit decision per operator, forward, backward and optimizer alike: what `lower` carries out.
struct Plan {
    GraphSnapshot graph{};
    /// `analyseBatch(*graph)`, where whoever made the plan had it at hand; null else. See `batchOf`.
    std::shared_ptr<const BatchInfo> batch{};
    std::int32_t deviceCount = 1; ///< Of one unit.
    ScaleUnits units{}; ///< All else is about one of them.
    std::int32_t microBatches = 1; ///< That a unit runs.
    bool wholeBatches = false; ///< Every micro-batch is a whole batch of the model, not a part of one.
    /// Of the weights, in a step: each with the mean gradient of as many micro-batches, one after another.
    std::int32_t updates = 1;
    std::int32_t stageCount = 1;
    ScheduleKind schedule = ScheduleKind::Sequential;
    Schedule order{}; ///< Of a schedule that is listed; empty for others.
    CollectiveOverlap overlap = CollectiveOverlap::None;
    std::vector<OperatorDecision> decisions{}; ///< By operator index. Backward ones mirror their forwards.
    std::vector<OrderConstraint> orders{};
    std::vector<CommunicationOrder> communicationOrders{};
    std::vector<InterleavedBlocks> interleaved{};
    /// By stage: the most micro-batches it holds whose backward pass has not run; 0 leaves it to the
    /// schedule. Empty means 0 for all.
    std::vector<std::int32_t> inFlight{};
    std::vector<RowId>
        inFlightRows{}; ///< By stage: the row that says so; invalid if none does. As long as `inFlight`.
};

/// How micro-batches cut the plan's graph (`analyseBatch`): what the plan carries, or else worked out anew.
/// Not null.
std::shared_ptr<const BatchInfo> batchOf(const Plan &plan);

/// Into how many pieces a step cuts the mini-batch: the micro-batches of all units.
inline std::int32_t batchCuts(const Plan &plan)
{
    return plan.microBatches * plan.units.count;
}

/// Every decision legal, devices in range, backward mirrors forward, stages along the data flow.
Result<void> validate(const Plan &plan);

} // namespace planloom
