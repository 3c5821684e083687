#pragma once

#include "engine/terminal/arguments.h"

#include "engine/design/make_plan.h"
#include "engine/interop/configs/write_config.h"

#include <string>
#include <string_view>

namespace planloom::cli {

/// True for the formats that `exportConfig` writes: "megatron", "torchtitan" ...
bool isConfigFormat(std::string_view format);

/// The rows, model and target that a plan file was made of, on `--cluster` where that is given.
Result<PlanRequest> requestRemembered(const Arguments &arguments, const ExecutionPlan &plan);

/// What is left out, on standard error: what is written may be on standard output.
void sayUnsaid(const std::string &format, const WrittenConfig &written);

/// Writes a plan file as another framework's config, and says what that leaves out.
/// @return 0 where it says the plan whole, 1 where rows are left out
Result<int> exportConfig(const Arguments &arguments);

} // namespace planloom::cli
