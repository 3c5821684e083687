#pragma once

#include "engine/plan/complete.h"

#include <functional>

namespace planloom {

/// True if a row that is on is a preference.
bool hasPreferences(const ConstraintTable &table);

/// A table as it is carried out.
struct AppliedRows {
    /// The table with the preferences that are applied as rows that must hold, and the others switched off.
    ConstraintTable table{};
    struct LeftOut {
        std::int32_t row = 0;
        std::string reason{}; ///< "left out: row 4 (must) says otherwise"
    };
    std::vector<LeftOut> leftOut{}; ///< Ascending.
    Completion completion{}; ///< Of `table`.
};

/// Which preferences of a table are applied: the rows that must hold come first; then preferences in order of
/// weight, heaviest first, then of row, each if it can hold together with those applied already. Where not
/// even the rows that must hold do, none is applied.
///
/// @param complete  carries a table without preferences out
/// Costs one completion if all can hold, and about two per preference left out times the logarithm of their
/// number.
Result<AppliedRows> appliedRows(
    const ConstraintTable &table, const std::function<Result<Completion>(const ConstraintTable &)> &complete);

/// `completePlan` for a table with preferences; reports are those of the table's rows.
Result<Completion> completeWithPreferences(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const CompletionOptions &options);

} // namespace planloom
