#pragma once

#include "engine/design/make_plan.h"
#include "engine/gesture/gesture.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <optional>

namespace planloom {

// What moving blocks in time leads to, as far as it takes more than the rows to say so.

/// The limit that a plan breaks and the plan before it kept: of a device's memory, of a row for memory, or,
/// where they differ in the order of their blocks alone, of a row for micro-batches in flight. Then it names
/// the block that takes too much, and the next that gives some back, before which it runs: "F3 of stage 0
/// can't run before B0 of stage 0: GPU 0 would hold 41.2 GiB and has 40.0 GiB". `where` is "row:N" if a row
/// says so, else "memory".
/// @param after   as far as `PlanGrade::Simulated`; nothing is said of others
/// @param before  may be null: then whatever `after` breaks counts
/// O(devices + spans of one device + schedule)
std::optional<Error> limitBrokenBy(const PlanAnswer &after, const PlanAnswer *before);

/// Whether two plans differ in nothing but when and where the same parts of operators run.
bool isMoved(const Plan &before, const Plan &after);

/// A move of blocks inside the repeating unit of a schedule.
struct UnitMove {
    BlockRef first{}; ///< Runs before `second` then.
    BlockRef second{};
    bool movesSecond = false; ///< `second` goes right behind `first`; else `first` right before `second`.
    std::int32_t unit = 1; ///< Micro-batches that a unit is of; at least 1.
};
/// Moves every copy of the two blocks, `unit` micro-batches apart, wherever both are and run the other way
/// round. The whole order becomes the schedule row for the micro-batches that there are.
/// @param execution  of the context's plan: its order is what is changed, or that which a row lists already
/// @return refused as `proposeBlockOrder`
Proposal proposeUnitMove(const GestureContext &context, const ExecutionPlan &execution, const UnitMove &move);

} // namespace planloom
