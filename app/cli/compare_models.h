#pragma once

#include "engine/terminal/arguments.h"

namespace planloom::cli {

/// True if `compare` is asked for two models: neither word names a plan file.
bool comparesModels(const Arguments &arguments);

/// What the second model has otherwise than the first: operators that are new, gone, renamed, changed.
/// @return 0; as `openForward`
Result<int> compareModels(const Arguments &arguments);

} // namespace planloom::cli
