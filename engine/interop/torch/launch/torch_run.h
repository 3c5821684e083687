#pragma once

#include "engine/base/result.h"
#include "engine/interop/torch/launch/torch_probe.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/runtime/processes/supervisor.h"

#include <stop_token>
#include <string>

namespace planloom {

/// How a plan is run by PyTorch.
struct TorchRunOptions {
    TorchProbe probe{}; ///< Of the Python that runs it.
    /// Cancel on SIGINT and SIGTERM, which are held back from the calling thread meanwhile.
    bool signals = false;
};

/// That PyTorch can do what `request` asks for. @return NotSupported, InvalidInput naming what it can't
Result<void> requireTorchRun(const RunRequest &request);

/// Runs `request` as exported PyTorch code (torch_export.h), in a temporary folder, by torchrun: one process
/// for each device of each scale unit, on the GPUs that the Python sees if there is one for each, else on
/// CPUs. Reports the events that other backends report (event_json.h), as far as PyTorch tells them: "hello",
/// "ready", "resumed", "step", "checkpoint", "live" (of the last step), "warn", "check", "error", "done";
/// "alive" once a second.
///
/// - With a reference, loss, gradients and weights are compared with those of Planloom's own runner of it,
/// with
///   what one unit in the last place of inputs and weights moves as allowance. What is further apart is run
///   again in double precision (check.py), which decides.
/// - What users' code prints is a warning. Errors are those that a rank tells, with the rank in `where`; else
///   what was said last.
/// - Cancelled, by `stop`, a signal, or a sink that reads no more, torchrun is asked to end all ranks, and
/// killed
///   after 5 s; ranks end with it.
/// @return the first error of a rank that is no consequence of another one's; Cancelled; as `exportTorch`; Io
Result<SuperviseOutcome> runOnTorch(const RunRequest &request, const TorchRunOptions &options,
    const EventSink &sink, std::stop_token stop = {});

} // namespace planloom
