#pragma once

#include "engine/gesture/gesture.h"
#include "engine/plan/complete.h"

#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Rows that cannot hold together.
struct RowConflict {
    std::vector<RowId> rows{}; ///< Ascending; today always two.
    std::vector<std::int32_t> lines{}; ///< Those of the document, in the order of `rows`.
    /// "Rows 4 and 12 both place h.3.mlp.c_fc: on GPU 0 and on GPU 1"; rows by line, from 1.
    std::string words{};
    std::vector<OperatorId> operators{}; ///< Where they meet, ascending; empty for rows about the whole plan.
    /// What would end it: words ("switch row 4 off", "take h.3.mlp.c_fc out of row 12") and the edit.
    std::vector<std::pair<std::string, TableEdit>> waysOut{};
};

/// The conflicts of a table whose completion has row errors; empty if it has none, or none that is between
/// rows.
///
/// Found pairwise, row by row, where two rows meet on an operator: both place it, split it, cut it, recompute
/// it, give it a stage or shard its optimizer in different ways; one splits it over a mesh axis along which
/// the other does not let it run, or into parts that cannot be dealt out to the other's devices; or both are
/// about the whole plan, where there can be one only. At most 100 of them. This is where a solver's minimal
/// sets of rows, of any number, come in later: views read `rows` as a set and make no use of there being two.
///
/// @param completion  of `context.document.table()`
/// O(rows x operators) at most; rows that name operators cost their names.
std::vector<RowConflict> findConflicts(const GestureContext &context, const Completion &completion);

} // namespace planloom
