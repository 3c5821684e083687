#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"

#include <string>
#include <string_view>

namespace planloom {

/// One self-contained JSON document, version 1, schema in resources/schema/execution-plan.json: the graph
/// (without weight values), partitions, groups, and every device's program.
std::string toJson(const ExecutionPlan &plan);

/// Inverse of `toJson`. Every index is checked; unknown fields are ignored.
/// @return InvalidInput with the JSON pointer of the first thing that is wrong in `where`
Result<ExecutionPlan> executionPlanFromJson(std::string_view text);

} // namespace planloom
