#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// A block: the operators of one stage, direction, lane and slice, or the transfers from one such block to
/// another.
struct BlockInfo {
    SegmentKind kind = SegmentKind::Forward;
    StageId stage{};
    double rank =
        0; ///< Order within one micro-batch: prologue, forward by stage, backward by stage, step ends.
    std::int32_t slice = 0; ///< Of its stage (plan/block_places.h).
    std::int32_t slices = 1; ///< How many its stage has.
    std::int32_t lane = 0; ///< Of its stage.
    std::int32_t lanes = 1; ///< How many its stage has.
    std::int32_t source = -1; ///< Transfer: the block it carries from, and to.
    std::int32_t target = -1;
    double seconds = 0; ///< Estimated duration; in pipelines with what it communicates (block_times.h).
    std::vector<DeviceId> devices{}; ///< That run something in it; ascending.
    std::vector<std::int32_t> cuts{}; ///< Marks behind what it communicates, ascending: where it may be cut.
};

/// What schedules and rows call a pass.
inline BlockKey keyOf(const BlockInfo &pass)
{
    return {pass.stage, pass.kind, pass.slice, pass.lane};
}

/// Of a transfer: it carries what a backward pass makes (QueueKind::PipelineBack).
inline bool goesBack(const BlockInfo &transfer, const std::vector<BlockInfo> &blocks)
{
    return isBackward(blocks[static_cast<std::size_t>(transfer.source)].kind);
}

/// Where a block runs an operator: what it communicates before stands before the mark. Those launched
/// together share the first one's place.
struct RunPlace {
    OperatorId op{};
    std::int32_t mark = -1;
};

/// One block of one micro-batch in the global order, or a slice of it.
struct BlockRun {
    std::int32_t block = 0;
    std::int32_t microBatch = 0;
    std::int32_t from =
        -1; ///< Where the slice begins: a mark of the program builder; -1 for the block's begin.
    std::int32_t to = -1; ///< Where it ends; -1 for the block's end.
    friend bool operator==(const BlockRun &, const BlockRun &) = default;
};

/// `earlier` of micro-batch i before `later` of micro-batch i + offset. Where a row asks so of two that run
/// side by side, it is about pieces of them: what stands before mark `behind` of `earlier` comes before what
/// stands behind mark `before` of `later`.
struct BlockDependency {
    std::int32_t earlier = 0;
    std::int32_t later = 0;
    std::int32_t offset = 0;
    RowId row{}; ///< Valid if a row asks for it, invalid for data flow.
    std::int32_t microBatch = -1; ///< Only this i; -1 for every one.
    /// Above 0: so many micro-batches are a group, `offset` counts groups, and all of one group run before
    /// all of the other.
    std::int32_t groupSize = 0;
    std::int32_t behind = -1; ///< -1 for the block's end, and in all but rows of interleaved plans.
    std::int32_t before = -1; ///< -1 for the block's begin.
    friend auto operator<=>(const BlockDependency &, const BlockDependency &) = default;
};

/// The operators of one block in the first topological order, by their order in the graph, that data flow and
/// the rows inside the block allow.
/// Rows that are `allWithAll` are taken together by row, at a cost of their number.
/// @param regionOf  by operator: those with the same number >= 0 stay together, in their order; may be empty
/// @return InvalidInput naming a row, or an operator of a region, if there is none
Result<std::vector<OperatorId>> orderInBlock(const Graph &graph, const Uses &uses,
    const std::vector<OperatorId> &operators, const std::vector<OrderConstraint> &rows,
    const std::vector<std::int32_t> &regionOf = {});

/// The second phase of lowering: one global order of blocks, from which every device takes its own, so that
/// no two devices wait for each other. A list schedule in estimated time: among the blocks whose dependencies
/// are done, the one that can start first; ties go by `schedule`:
///
/// 1. Sequential: by micro-batch, then by rank.
/// 2. GPipe: all forward blocks before any backward block.
/// 3. OneFOneB: backward before forward, and stage s starts a forward block only while it holds fewer than
///    S - s micro-batches (PipeDream-Flush, arXiv:2104.04473, section 2.2). Where the first or the last
///    stages lie on the devices of all others, and no row says otherwise: `interlacedSchedule`.
///
/// 4. Templates that make a schedule (schedule.h): each rank in its order, bent as little as rows ask for
///    (bent_ranks.h). So are those that are listed. Two blocks that it interleaves start together, when both
///    can, and are handed on when both are done.
///
/// Gradients of weights that are a block of their own come last in all of them: they fill what would be idle
/// time, until the stage holds as many micro-batches as it may.
///
/// `inFlight` by stage, where it is not 0, is the most micro-batches the stage holds between its forward and
/// its last backward block, under every schedule; under OneFOneB in place of S - s, more or less. Under GPipe
/// a backward block then runs where no forward block may. Stages without a backward block hold none. Limits
/// are only lifted where rows leave nothing else to run (`liftedLimits` in in_flight.h finds out).
///
/// `interleaved` are blocks that rows pair, whatever the schedule: they start together as those of templates
/// do. Pieces of two that run side by side alternate at an even pace (paired_pieces.h), but for what rows
/// order.
///
/// Transfers come as soon as they can: a device sends and receives in one order each way, beside what it
/// computes, and receives a block's input no earlier than it is of use (received_runs.h). The step's ends
/// (Prologue; Reduce, Optimizer) stand first and last.
/// @return InvalidInput naming a row if the dependencies form a cycle, of blocks or of pieces, or if blocks
/// that it pairs wait for
///   one another, run on different devices, or are paired with others; if the schedule runs against
///   updates within the step; or if `listed`, the order of a schedule that is listed, names blocks that there
///   are not, or runs against data flow
Result<std::vector<BlockRun>> orderBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dependencies, std::int32_t microBatches, std::int32_t stageCount,
    ScheduleKind schedule, const std::vector<std::int32_t> &inFlight = {},
    const std::vector<InterleavedBlocks> &interleaved = {}, const Schedule &listed = {});

} // namespace planloom
