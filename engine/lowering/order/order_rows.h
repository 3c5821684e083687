#pragma once

#include "engine/base/result.h"
#include "engine/lowering/order/order.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// A plan's order constraints, sorted by what they order.
struct SortedOrders {
    std::vector<std::vector<OrderConstraint>> inside{}; ///< By block: of its operators, for `orderInBlock`.
    std::vector<BlockDependency> between{}; ///< Of blocks, each once however many operators it stands for.
};

/// Constraints inside a block order its operators, whatever their micro-batch: all run one program. Others
/// order blocks. Constraints that are `allWithAll` are taken together by row, at a cost of their number and
/// of pairs of blocks.
/// @param places  by block, in the order in which they run: what orders of pieces are read with. Null, or
/// empty
///                for a block: whole blocks are ordered
/// @param blocksOf  by operator: its blocks, in the order in which they run; several where it is sliced
/// @return InvalidInput naming a row that orders what runs once per step against its place
Result<SortedOrders> sortOrders(const Plan &plan, const std::vector<BlockInfo> &blocks,
    const std::vector<std::vector<std::int32_t>> &blocksOf,
    const std::vector<std::vector<RunPlace>> *places = nullptr);

} // namespace planloom
