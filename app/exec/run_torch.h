#pragma once

#include "engine/base/result.h"
#include "engine/runtime/processes/supervisor.h"

namespace planloom {

/// Runs `request`, whose backend is "torch", as exported PyTorch code (torch_run.h), until it ends or a line
/// "cancel" arrives on standard input; "finish" does the same, as PyTorch has no end behind a step. The end
/// of standard input is no cancel. SIGINT and SIGTERM cancel, too.
/// @return as `probeTorch` and `runOnTorch`
Result<SuperviseOutcome> runTorchRequest(const RunRequest &request, const EventSink &sink);

} // namespace planloom
