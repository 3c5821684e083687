#pragma once

#include "engine/base/units.h"
#include "engine/gesture/gesture.h"
#include "engine/plan/complete.h"

#include <string>
#include <vector>

namespace planloom {

/// What would end a conflict: an edit of the table.
struct RowWayOut {
    std::string words{}; ///< "switch row 4 off", "take h.3.mlp.c_fc out of row 12"; rows by line, from 1.
    TableEdit edit{};
    RowId row{}; ///< That it changes, by index.
    std::string text{}; ///< What the row becomes, as printed: "off place ..." for one that is switched off.
    bool holds = false; ///< Tried: all rows can be carried out then.
    std::string left{}; ///< Tried, and others are in the way: "rows 5 and 9 still can't hold together".
    double stepSeconds = 0; ///< Of the plan then; 0 where it was not simulated.
    Bytes peak{}; ///< Of that plan, the largest of all devices.
    std::int32_t overMemory = 0; ///< Of that plan: devices whose peak is above their memory.
    friend bool operator==(const RowWayOut &, const RowWayOut &) = default;
};

/// "step 41.2 ms, peak 31.0 GiB", "step 41.2 ms, but 4 devices lack memory (peak 96.1 GiB)"; what is left of
/// it where it does not end all conflicts; empty where it is not known.
std::string effectOf(const RowWayOut &way);

/// Rows that cannot hold together.
struct RowConflict {
    std::vector<RowId> rows{}; ///< Ascending. One row is wrong whatever the others say.
    std::vector<std::int32_t> lines{}; ///< Those of the document, in the order of `rows`.
    bool minimal = false; ///< Known: any row less, and the others can hold together.
    /// "Rows 4 and 12 both place h.3.mlp.c_fc: on GPU 0 and on GPU 1"; rows by line, from 1.
    std::string words{};
    std::vector<OperatorId> operators{}; ///< Where they meet, ascending; empty for rows about the whole plan.
    std::vector<DeviceId> devices{}; ///< Where its rows place operators, ascending; empty if they do not.
    Error reason{}; ///< What its rows are refused with together, rows by index; empty for pairs.
    std::vector<RowWayOut> waysOut{}; ///< The best first, as far as that is known.
    friend bool operator==(const RowConflict &, const RowConflict &) = default;
};

/// The conflicts of a table whose completion has row errors; empty if it has none, or none that is between
/// rows.
///
/// Found pairwise, row by row, where two rows meet on an operator: both place it, split it, cut it, recompute
/// it, give it a stage or shard its optimizer in different ways; one splits it over a mesh axis along which
/// the other does not let it run, or into parts that cannot be dealt out to the other's devices; or both are
/// about the whole plan, where there can be one only. At most 100 of them. Quick, for every movement of the
/// pointer; minimal sets of any number of rows, and ways out that were tried, are engine/conflict's.
///
/// @param completion  of `context.document.table()`
/// O(rows x operators) at most; rows that name operators cost their names.
std::vector<RowConflict> findConflicts(const GestureContext &context, const Completion &completion);

} // namespace planloom
