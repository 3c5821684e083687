#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/run.h"

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

// What `run` tells of a run, whatever runs it.

/// What a plan is held against.
std::string referenceText(const ExecutionPlan &plan);
/// The verdict, and what it rests on.
std::string verdictText(const CheckReport &report);
nlohmann::json checkJson(const CheckReport &report, const ExecutionPlan &plan);

/// Shows people where a run is. @param before  steps done before it, noted here
bool showEvent(const std::string &line, std::int64_t &before);

} // namespace planloom::cli
