#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"

#include <string>
#include <string_view>

namespace planloom {

/// One self-contained JSON document, schema in resources/schema/execution-plan.json: the graph
/// (without weight values), partitions, groups, and every device's program, each instruction written out.
std::string toJson(const ExecutionPlan &plan);

/// The same plan in a form that says once what layers and devices have in common (folded_programs.h).
/// O(buffers and instructions of all devices).
std::string toFoldedJson(const ExecutionPlan &plan);

/// What is written to files: the first of the two where it is short, which is easy to read, else the second.
std::string planFileText(const ExecutionPlan &plan);

/// Inverse of all three. Every index is checked; unknown fields are ignored.
/// @return InvalidInput with the JSON pointer of the first thing that is wrong in `where`
Result<ExecutionPlan> executionPlanFromJson(std::string_view text);

} // namespace planloom
