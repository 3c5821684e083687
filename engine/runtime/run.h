#pragma once

#include "engine/base/result.h"
#include "engine/interop/npy.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/training/training_run.h"
#include "engine/simulate/timeline.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

class RunDevices;

/// Opens the devices that a plan is to run on (run_devices.h), in the process that runs it.
using OpenDevices = std::function<Result<std::unique_ptr<RunDevices>>(const ExecutionPlan &)>;

/// What a run is fed and how long it goes on.
struct RunOptions {
    NamedArrays inputs{}; ///< By graph input name; missing ones are drawn from `seed` (with a note).
    std::int32_t steps = 1;
    std::uint64_t seed = 1; ///< Dropout and drawn inputs.
    bool randomWeights = false; ///< Draw weights that have no values, from `seed`.
    bool keepGradients = false; ///< Collect weight gradients and updated weights into the outcome.
    bool poison = true; ///< Fill fresh buffers with NaN before they are written, in the first step.
    std::int32_t threads = 0; ///< That all devices share; 0: one for each core that this process may use.
    bool keepAll =
        false; ///< Collect every tensor that forward and backward operators make, of the last step.
    /// Shared libraries of operator files that may be loaded, by absolute path (operator_library.h): loading
    /// one runs its code, so whoever fills this in has asked, or has taken them from files that the user
    /// named.
    std::vector<std::string> libraries{};
    TrainingRun training{}; ///< Data, learning rates, checkpoints.
    OpenDevices devices{}; ///< Other devices than the CPU's; empty for those.
    /// CPU devices of one process compute once what several of them compute alike (shared_values.h): the same
    /// bits in less time. Off: each as if it were alone.
    bool shareValues = true;
    bool findNaN =
        false; ///< Stop at the first operator that makes NaN out of numbers, with CheckFailed naming it.
    bool inDouble = false; ///< Compute in Float64, whatever the plan's number formats (in_double.h).
    /// Not 0: inputs and weights are moved by one unit in the last place, up or down as this draws it; whole
    /// numbers, which are flags, masks and counts, are not.
    std::uint64_t moved = 0;
};

/// When an instruction ran, in nanoseconds from the start of its step.
struct LiveSpan {
    std::int32_t step = 0;
    std::int32_t segment = 0;
    std::int32_t instruction = 0;
    std::int32_t microBatch = 0;
    std::int64_t start = 0;
    std::int64_t duration = 0;
    friend bool operator==(const LiveSpan &, const LiveSpan &) = default;
};

/// How far one device is. Instructions of all its steps are counted, from 0 in schedule order; its setup is
/// not. Queues run side by side: what counts as finished is all before the first that is not.
struct DeviceProgress {
    std::atomic<std::int64_t> issued{0}; ///< Up to that first one, once it may start.
    std::atomic<std::int64_t> finished{0};
};

/// A checkpoint that has been written.
struct SavedCheckpoint {
    std::string path{};
    std::int64_t step = 0; ///< Steps done since training began.
    double seconds = 0; ///< That it took.
    friend bool operator==(const SavedCheckpoint &, const SavedCheckpoint &) = default;
};

/// Events while running; called on the runner's threads, one at a time.
struct RunEvents {
    std::function<void(std::int32_t step, double loss, double seconds)> stepDone{};
    std::function<void(DeviceId, std::int64_t issued, std::int64_t finished)> progress{};
    std::function<void(const std::string &text)> warning{};
    /// Spans that have ended since the last call, in their order, at least five times a second while there
    /// are any and once more at the end. Setting it measures every step.
    std::function<void(DeviceId, const std::vector<LiveSpan> &)> spans{};
    std::function<void(const SavedCheckpoint &)> saved{};
    std::function<void(std::int64_t step, const std::string &path)> resumed{}; ///< From a checkpoint.
    /// Asked to stop, the run ends behind the step that it is in, with its checkpoint if it writes any.
    std::stop_token finish{};
    /// Weights are in place, the first step begins. @param peak  what each device will have used
    std::function<void(const std::vector<Bytes> &peak)> loaded{};
    /// Written by the runner's threads, one a device; may lie in memory shared with another process. May be
    /// null.
    DeviceProgress *counters = nullptr;
};

struct RunOutcome {
    std::int64_t firstStep = 0; ///< Steps done before this run, as its checkpoint has it.
    std::string checkpoint{}; ///< The last one written; empty if none was.
    bool stopped = false; ///< By `RunEvents::finish`, before all steps were done: no gradients and weights.
    std::vector<double> losses{}; ///< One a step.
    std::vector<double> stepSeconds{};
    /// One a step: elements that operators with places for what data choose (engine/graph/operators/places.h)
    /// had no room for, and left out.
    std::vector<std::int64_t> dropped{};
    NamedArrays outputs{}; ///< Graph outputs of the last step, whole.
    NamedArrays gradients{}; ///< By weight name (in files), of the last step, whole; if `keepGradients`.
    NamedArrays weights{}; ///< After the last step, whole; if `keepGradients`.
    NamedArrays tensors{}; ///< By tensor name, of the last step, whole, as far as made; if `keepAll`.
    Timeline measured{}; ///< Of the last step.
    std::vector<Bytes> peak{}; ///< By device.
};

/// Runs `plan` on CPU devices, each with a memory of its own, that share the threads of one pool: what comes
/// out is the same bits in every run, on any number of threads. Or on the devices that `options` opens.
/// @return NotSupported naming an operator without a kernel; InvalidInput for inputs or weights that are
/// missing or of the
///   wrong type; ResourceLimit, before it starts, for more memory than is free; CheckFailed with `findNaN`;
///   Cancelled
Result<RunOutcome> runOnCpu(const ExecutionPlan &plan, const RunOptions &options,
    const RunEvents &events = {}, std::stop_token stop = {});

/// Comparison of a plan's outcome with the unpartitioned model's.
struct CheckReport {
    bool ok = true;
    std::string worstTensor{}; ///< "loss", "out/logits", "grad/h.0.attn.weight", ...
    double worstError = 0; ///< max|a - b| / max(max|b|, 1e-3 G), G the largest reference value of its group.
    std::string firstDifference{}; ///< Name of the first operator whose output differs, if any.
    double allowed = 0; ///< What `worstError` may be by what rounding alone does.
    /// The worst error of the same instructions run in Float64, where that was needed to tell, and possible.
    std::optional<double> inDouble{};
};

} // namespace planloom
