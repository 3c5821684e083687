#pragma once

#include "engine/terminal/arguments.h"

#include <string_view>

namespace planloom::cli {

/// True for the formats that `exportConfig` writes: "megatron", "torchtitan" ...
bool isConfigFormat(std::string_view format);

/// Writes a plan file as another framework's config, and says what that leaves out.
/// @return 0 where it says the plan whole, 1 where rows are left out
Result<int> exportConfig(const Arguments &arguments);

} // namespace planloom::cli
