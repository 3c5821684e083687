#pragma once

#include "engine/base/result.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/terminal/arguments.h"

namespace planloom::cli {

/// `run --backend torch`: as exported PyTorch code, under torchrun, by the Python of --python.
/// @param request  what is run, and how
Result<int> runWithTorch(const Arguments &arguments, RunRequest &request);

} // namespace planloom::cli
