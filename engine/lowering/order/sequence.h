#pragma once

#include "engine/base/result.h"
#include "engine/lowering/order/order.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace planloom {

/// A place inside a block.
struct BlockMark {
    std::int32_t block = -1;
    std::int32_t mark = -1; ///< See `MaterializedPlan::marks`; -1 before any.
    friend auto operator<=>(const BlockMark &, const BlockMark &) = default;
};

/// A reduction of gradients that starts inside other blocks' last runs.
struct ReductionPlace {
    std::int32_t block = -1; ///< The reduction's own.
    /// Behind all of these, a block for each lane that adds to its gradients; none: when all is done.
    std::vector<BlockMark> after{};
    std::vector<TensorId> gradients{}; ///< Ascending.
};

/// What a plan's devices run, block by block, whatever the order of the blocks: the first half of lowering.
/// `sequence` makes it an execution plan, as often as the order changes.
struct MaterializedPlan {
    ExecutionPlan programs{}; ///< All of it but the schedules of devices.
    std::vector<BlockInfo> blocks{};
    /// By operator: its blocks, in the order in which they run; several where it is sliced.
    std::vector<std::vector<std::int32_t>> blocksOf{};
    std::vector<BlockDependency> dataFlow{};
    std::vector<ReductionPlace> reductions{}; ///< In the order in which their gradients are complete.
    std::vector<std::int32_t> optimizers{}; ///< Block by stage, then the one of weights of several stages.
    std::vector<std::vector<std::int32_t>> segmentOf{}; ///< By device and block: its segment; -1 for none.
    /// By mark and device: instructions of the device that stand before the mark in its block.
    std::vector<std::map<std::int32_t, std::int32_t>> marks{};
    /// By block: where its operators run, for rows that order pieces of blocks side by side; nothing where no
    /// block could run beside another.
    std::vector<std::vector<RunPlace>> places{};
    /// By block: the rows' orders of operators inside it, which it was made in.
    std::vector<std::vector<OrderConstraint>> inside{};
};

/// The second half of lowering: puts the blocks in one global order, from which every device takes its own,
/// and cuts the last backward blocks where reductions start.
/// O(blocks x micro-batches): instructions are not touched, and shared with `materialized`.
/// @param plan  what was materialized, or a plan that `isSameButForOrder`
/// @return nothing if rows order operators inside a block in another way, or pieces of blocks where nothing
/// was
///   known to run side by side: that has to be materialized anew;
///   InvalidInput naming a row if orders contradict each other
Result<std::optional<ExecutionPlan>> sequence(const MaterializedPlan &materialized, const Plan &plan);

/// The same of the very plan that was materialized. @return Internal if it was another one
Result<ExecutionPlan> sequenceAsMade(const MaterializedPlan &materialized, const Plan &plan);

/// Whether two plans differ in nothing but the order of what runs: schedule, order rows, micro-batches in
/// flight.
bool isSameButForOrder(const Plan &a, const Plan &b);

} // namespace planloom
