#pragma once

#include "engine/base/result.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/interop/torch/plan_rows.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// By device, segment and instruction: how long the members' parts of a collective are, where they are not
/// alike.
struct CollectiveSizes {
    std::vector<std::int64_t> ofInputs{}; ///< Along the dimension in which inputs are put together.
    std::vector<std::int64_t> ofOutputs{}; ///< Along that in which outputs are cut.
};
using UnevenCollectives = std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, CollectiveSizes>;
/// The k-th collective of a group in one member's step meets the k-th of every other. O(instructions).
UnevenCollectives unevenCollectives(const ExecutionPlan &plan);

/// A program as text, with marks (rank_numbers.h).
struct ProgramText {
    std::string module{};
    /// By function: its name, and by instruction the line it begins in, counted from 1. The first is the
    /// setup.
    std::vector<std::pair<std::string, std::vector<std::int32_t>>> lines{};
};

/// What the programs of a plan are written with.
struct ProgramContext {
    const ExecutionPlan &plan;
    DimensionClasses dimensions{}; ///< Of its graph: what comments call them.
    UnevenCollectives uneven{};
    PlanRows rows; ///< Those that comments name.
};

/// Writes the program of one device as a module of Python: a function for each block, and one that calls them
/// in the order of the schedule. What may differ between devices is marked.
/// @return NotSupported naming an operator that has no text, or what of the plan has none
Result<ProgramText> programText(const ProgramContext &context, std::int32_t device);

} // namespace planloom
