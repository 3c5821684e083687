#pragma once

#include "engine/base/result.h"
#include "engine/terminal/arguments.h"

namespace planloom::cli {

/// `cluster --spans`: what a run of a plan measured, as a cluster file.
Result<int> clusterOfSpans(const Arguments &arguments);

} // namespace planloom::cli
