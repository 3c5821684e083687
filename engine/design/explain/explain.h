#pragma once

#include "engine/analyse/limits.h"
#include "engine/conflict/row_oracle.h"
#include "engine/design/make_plan.h"

#include <functional>
#include <stop_token>
#include <vector>

namespace planloom {

/// How the rows that an answer refuses are read.
struct ExplainOptions {
    CompletionOptions completion{}; ///< As the plan is completed.
    SpaceQuestion space{}; ///< Where what rows leave open is searched.
    bool withoutFound = false; ///< What a search before chose takes no part: it gives way by itself.
};

/// Why rows cannot hold together, for people: minimal sets of them (engine/conflict), each with a
/// sentence, the operators and devices it is about, and ways out that were tried, as edits of the table.
///
/// @param answer  refused: `table`, `rows`, `deviceCount` and `conflicts`, pairs, are read. Ways to narrow a
/// row
///   that these have are tried, too, where the set is the pair.
/// @return Cancelled if stopped; what is known so far where time is over
/// About 2 s at most. Thread-safe.
Result<std::vector<RowConflict>> explainConflicts(
    const PlanAnswer &answer, const ExplainOptions &options, const std::stop_token &stop);

/// Simulates what ways out that hold would give, and ranks them: those that hold first, then those that fit
/// memory, then by step time. Ways that were not simulated when time was over stay behind, in their order.
/// @param changed  called behind each conflict
/// @return Cancelled if stopped
/// About 8 s at most, and one simulation: searches end then.
Result<void> rankWaysOut(const PlanRequest &request, const PlanAnswer &answer,
    std::vector<RowConflict> &conflicts, const std::stop_token &stop, const std::function<void()> &changed);

/// What the search finds where a limit that its plan breaks is off, as the effect of that way out, where it
/// is faster than that plan; and ranks the ways again.
/// @param answer  timed; @param conflicts  of `brokenLimit`, with the plan's own figures
/// @return Cancelled if stopped
/// As `rankWaysOut`: one search for each limit.
Result<void> searchWithoutLimits(const PlanRequest &request, const PlanAnswer &answer,
    std::vector<RowConflict> &conflicts, const std::stop_token &stop);

/// The rows of an answer's table, with those of a search before switched off.
ConstraintTable rowsWithoutFound(const TableDocument &table);

/// Rows about degrees that no plan of the search's space keeps to together with the others, before it is
/// known which others: as `answer` is refused because of them.
/// @param rows  not empty; @param reason  what the search says
RowConflict noPlanLeft(const PlanAnswer &answer, const std::vector<RowId> &rows, const Error &reason);

/// A limit that a plan breaks, as a conflict of its row with what the plan needs: the limit can be raised to
/// that, or switched off.
RowConflict brokenLimit(const PlanAnswer &answer, const BrokenLimit &broken);

} // namespace planloom
