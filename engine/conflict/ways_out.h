#pragma once

#include "engine/conflict/find_conflict.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// One row less, or another one in its place, with which a conflict is over. Tried, not guessed.
struct WayOut {
    RowId row{};
    std::optional<Row> changed{}; ///< What it becomes; nothing where it is switched off.
    bool holds = false; ///< The whole table can be carried out then.
    std::vector<std::size_t> left{}; ///< Else: the other sets that still cannot hold together, by index.
    /// Or what is then wrong with a row of none of these sets, as those that a mesh in conflict was hiding.
    std::optional<Error> behind{};
};

struct WaysOutOptions {
    CompletionOptions completion{};
    SpaceQuestion space{}; ///< As `ConflictOptions::space`.
    std::chrono::milliseconds limit{1500}; ///< Ways that were not tried by then are missing.
};

/// By set of `conflicts`: its ways out. Of every row of it: off; and the nearest values to either side with
/// which it holds, for what can be loosened: parts, axes, sizes of the mesh, micro-batches, stages, devices,
/// coordinates, lanes, offsets of orders, and their direction; degrees. Rows in order, each off last.
///
/// Each is carried out with all other rows; where that fails for the other sets alone, without them.
/// @return Cancelled if stopped
Result<std::vector<std::vector<WayOut>>> waysOut(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const std::vector<ConflictSet> &conflicts,
    const WaysOutOptions &options = {}, const std::stop_token &stop = {});

} // namespace planloom
