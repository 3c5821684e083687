#pragma once

#include "engine/base/result.h"
#include "engine/plan/plan.h"
#include "engine/table/selector_index.h"
#include "engine/table/table.h"

#include <vector>

namespace planloom {

/// The order rows of a cycle in what must run before what, few of them; empty if there is none.
///
/// Two levels, as lowering has them (lowering/order/order.h). Inside a block, of one stage and pass,
/// operators run in one order for every micro-batch, which data flow and the rows inside it make:
///
///     a --data--> b --row 3--> c --row 7--> a        rows 3 and 7
///
/// Between blocks, every micro-batch of a block is one thing; a row orders its i-th before the (i +
/// offset)-th of another. A row about an operator that runs once per step is alone a cycle where it asks for
/// what stands at the other end of the step.
///
/// Of blocks on one device that may run side by side (`mayInterleave`) rows order pieces: those are left to
/// lowering. Plans whose stages run in slices or lanes, and passes that make gradients of weights on their
/// own, are looked at inside their blocks as far as they are whole: what is not found here is found by
/// lowering. O(operators + edges + blocks x micro-batches + orders).
std::vector<RowId> orderCycle(const Plan &plan, const SelectorIndex &index, const BatchInfo &batch);

/// What such a row is refused with, as lowering says it. @param others  whether further rows are on the cycle
Error orderCycleError(const Plan &plan, RowId row, bool others);

} // namespace planloom
