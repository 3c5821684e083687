#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/machine/gpu_fit.h"
#include "engine/runtime/machine/probe.h"
#include "engine/simulate/timeline.h"
#include "widgets/run/run_record.h"
#include "widgets/run/torch_python.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// One line of the list before a run.
struct PreflightItem {
    enum class Level : std::uint8_t { Good, Note, Blocked };
    Level level = Level::Good;
    std::string text{};
    friend bool operator==(const PreflightItem &, const PreflightItem &) = default;
};

/// What this machine has for a run.
struct RunMachine {
    std::int64_t freeMemory = 0; ///< Bytes; 0 where nothing is known.
    int processors = 1;
    std::optional<Probe> probe{}; ///< Nothing before it is known.
    TorchProbeSnapshot torch{}; ///< Of the Python that is chosen; null before it is known.
};

/// What can be said before a run, in words: is the plan proven, can every operator run, is there memory, how
/// many processors share the devices, are there weights.
std::vector<PreflightItem> preflight(const ExecutionPlan &plan, const Timeline &predicted, bool verified,
    const RunSetup &setup, const RunMachine &machine);
/// The processes of a run in which each device of each scale unit has its own.
std::int32_t processesOf(const ExecutionPlan &plan);
/// Whether the Python that was asked runs the plan, and how; whether all of the plan can be said in PyTorch.
/// Empty for other backends. O(instructions): for a worker.
std::vector<PreflightItem> torchPreflight(
    const ExecutionPlan &plan, const RunSetup &setup, const RunMachine &machine);
/// Whether the GPUs that were found fit, where the set-up wants any.
std::optional<PreflightItem> gpuPreflight(
    const ExecutionPlan &plan, const Timeline &predicted, const RunSetup &setup, const RunMachine &machine);
bool mayRun(const std::vector<PreflightItem> &items);

/// All that is said before a run.
struct Readiness {
    std::vector<PreflightItem> items{};
    /// Where what the set-up wants cannot be: what else the plan can run on, with the rest of the set-up as
    /// it is. GPUs come first, one that emulates all devices next, the processor last.
    std::optional<RunBackend> offer{};
};
/// O(instructions): for a worker.
Readiness readinessOf(const ExecutionPlan &plan, const Timeline &predicted, bool verified,
    const RunSetup &setup, const RunMachine &machine);

} // namespace planloom
