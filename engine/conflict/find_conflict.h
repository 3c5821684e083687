#pragma once

#include "engine/base/result.h"
#include "engine/conflict/row_oracle.h"
#include "engine/plan/complete.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

struct ConflictOptions {
    CompletionOptions completion{}; ///< As the plan is completed.
    SpaceQuestion space{}; ///< Where what rows leave open is searched.
    std::chrono::milliseconds limit{1000}; ///< For all of it.
    std::size_t mostSets = 6;
};

/// Rows that cannot hold together, of which any one less can.
struct ConflictSet {
    std::vector<RowId> rows{}; ///< Ascending. One row is wrong whatever the others say.
    bool minimal = true; ///< False: the smallest set so far, when time was over.
    Error reason{}; ///< What these rows are refused with.
    std::vector<OperatorId> operators{}; ///< That all of those about operators act on; else that any does.
    friend bool operator==(const ConflictSet &, const ConflictSet &) = default;
};

/// Which rows of a table hold together.
struct ConflictAnswer {
    std::vector<ConflictSet> sets{}; ///< The smallest first; empty if all rows hold.
    bool all = false; ///< No other minimal set exists.
    bool timedOut = false;
    int completions = 0; ///< Plans that were completed to find them.
    int corrections = 0; ///< Sets that the logic refused and the completion did not: 0, or a defect.
    double seconds = 0;
    bool holds() const { return sets.empty() && !timedOut; }
};

/// Whether the rows of `table` that are on and must hold can hold together, and if not, minimal sets of them
/// that cannot.
///
/// The logic (row_logic.h) proposes a set of rows, the completion of a plan (row_oracle.h) decides, with the
/// search's space where there is to be a search, and what it refuses goes back into the logic: so every set
/// is truly refused, and minimal with respect to it. Sets are enumerated as MARCO does it (Liffiton et al.,
/// Constraints 21, 2016): a largest set not yet known to hold or to contain a conflict is either carried out,
/// or shrunk to a minimal conflict.
///
/// @return Cancelled if stopped; errors of `completePlan` that no row causes
/// Takes `options.limit` and one completion at most. Thread-safe.
Result<ConflictAnswer> findConflict(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const ConflictOptions &options = {}, const std::stop_token &stop = {});

} // namespace planloom
