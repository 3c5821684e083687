#pragma once

#include "engine/base/result.h"
#include "engine/plan/plan.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What became of one row.
struct RowReport {
    std::int32_t selected = 0; ///< Operators that the selector names, of all directions.
    std::int32_t bound = 0; ///< Operators that the rule acts on.
    std::optional<Error> error {}; ///< Why the row can't hold; `where` is "row:5/rule".
    std::string warning {}; ///< "binds to no operator"; may be empty.
    bool leftOut = false; ///< A preference that does not hold with other rows: `warning` says with which.
    friend bool operator==(const RowReport &, const RowReport &) = default;
};

/// A table carried out as far as it goes.
struct Completion {
    Plan plan {}; ///< Its `graph` is null if a row has an error.
    std::vector<RowReport> rows {}; ///< By row; those switched off are only counted.
};

/// Completes the rows of `table` to a plan of `model` on `deviceCount` devices.
///
/// Preferences are applied as far as they can be (preferences.h); those that can't are not errors.
///
/// Rows about forward operators bind their backward operators too; rows that select only optimizer operators
/// bind those. Rows whose dimension an operator does not have pass it by. Two op-trans rows on one operator
/// compose if they run over different mesh axes, in the order of the mesh.
///
/// Parts on devices. On the mesh, or the part of it at the row's coordinates, parts follow the mesh order;
/// axes that no row mentions are left to the default rule. With P parts and a list of D devices: D = P; P = c
/// x D puts c consecutive parts on each device; D = r x P makes r replicas, innermost.
///
/// What no row decides is decided by the default rule (default_rule.h), the optimizer rule (optimizer_rule.h)
/// and the stage rule (stages.h).
///
/// @return reports with or without a plan; InvalidInput if the model is missing or `deviceCount` is not in
/// [1, 65536] O(rows x operators + operators x parts). Thread-safe.
Result<Completion> completePlan(const Model &model, std::int32_t deviceCount, const ConstraintTable &table);

/// The first error of the reports, if any.
std::optional<Error> firstError(const Completion &completion);

} // namespace planloom
