#pragma once

#include "engine/base/result.h"
#include "engine/binding/bound_table.h"
#include "engine/plan/plan.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace planloom {

class Decider;

/// A table carried out as far as it goes.
struct Completion {
    Plan plan{}; ///< Its `graph` is null if a row has an error.
    std::vector<RowReport> rows{}; ///< By row; those switched off are only counted.
};

/// When a plan of whole replicas is written as scale units: one program, many times.
enum class UseUnits : std::uint8_t {
    Never,
    WhereLarge, ///< Above `kMostExplicitDevices`: below, every device is worth a lane of its own.
    WherePossible,
};
constexpr std::int32_t kMostExplicitDevices = 16;

/// What completes a plan beside its rows.
struct CompletionOptions {
    const Decider *decider = nullptr; ///< The default rule, if null.
    PrecisionPreset precision = PrecisionPreset::Float32; ///< Of operators to which no row gives one.
    UseUnits units = UseUnits::WhereLarge;
    /// Whether the cluster's devices let these units stand for one another (`unitsAlike`); missing: they do.
    std::function<bool(const ScaleUnits &)> alike{};
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
/// What no row decides is decided by `decider`, or the default rule (default_rule.h) without one, the
/// optimizer rule (optimizer_rule.h) and the stage rule (stages.h).
///
/// @return reports with or without a plan; InvalidInput if the model is missing or `deviceCount` is not in
/// [1, 65536] O(rows x operators + operators x parts). Thread-safe.
Result<Completion> completePlan(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const CompletionOptions &options = {});

/// The first error of the reports, if any.
std::optional<Error> firstError(const Completion &completion);

} // namespace planloom
