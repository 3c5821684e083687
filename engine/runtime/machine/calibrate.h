#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/machine/kernel_times.h"
#include "engine/runtime/machine/machine_profile.h"
#include "engine/runtime/machine/probe.h"
#include "engine/simulate/simulate.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace planloom {

class RunDevices;

struct CalibrateOptions {
    double seconds = 10; ///< No kernel is begun after so long; the largest come first.
    /// Of each kernel at a time. On the CPU kernels whose times are not settled (kernel_times.h) are visited
    /// again, as long as there is time: what disturbs them passes.
    std::int32_t repeats = 5;
    bool again = false; ///< Measures what the profile knows, too.
    /// Told after each kernel, of how many; may be empty.
    std::function<void(std::size_t done, std::size_t all)> progress{};
    BenchClock clock = machineClock(); ///< On the CPU.
};

/// Measures on this machine what `plan` runs and `profile` does not know: its distinct kernels by shape and
/// precision, each by itself on all cores, and once what issuing, exchanging and copying take; all of them as
/// on an idle machine, even if others use it (kernel_times.h). Operators of
/// files, and kernels that would need more than half of the free memory, are left out. A profile of another
/// machine is begun afresh. @return Cancelled
Result<void> calibrate(MachineProfile &profile, const ExecutionPlan &plan, const CalibrateOptions &options,
    std::stop_token stop = {});

/// The profile kept at `path`, with what `plan` needs added and kept; without a path, or where it cannot be
/// written, it is measured and not kept. @return Cancelled
Result<MachineProfile> profileFor(const ExecutionPlan &plan, const std::string &path,
    const CalibrateOptions &options = {}, std::stop_token stop = {});

/// The same on devices that are not the processor's: those that `devices`, connected in this process alone,
/// has for `plan`, whose `units` are one. Kernels run several times in a row on the first device, as steps
/// that are alike (so they are launched as a run's are), and are timed by the device itself. Collectives are
/// those of the first group of several devices; where there is none, nothing is said of them. `oneEach` is
/// the caller's to set.
Result<void> calibrate(MachineProfile &profile, const ExecutionPlan &plan, RunDevices &devices,
    const CalibrateOptions &options, std::stop_token stop = {});

/// What `runOnCpu` of `plan` will take on the machine of `profile`, whose cores its devices share: rehearsed
/// with its times (rehearsal.h). Of all devices, where the plan has scale units.
/// @param sharesValues  all its devices are in one process, and `RunOptions::shareValues` is set
/// @return as `rehearse`
Result<Timeline> predictRun(const ExecutionPlan &plan, const MachineProfile &profile,
    bool sharesValues = true, const SimulateOptions &options = {}, std::stop_token stop = {});

/// Seconds that cores work, together, on the step that `predictRun` tells the time of.
Result<double> predictCores(const ExecutionPlan &plan, const MachineProfile &profile,
    bool sharesValues = true, std::stop_token stop = {});

/// What a run of `plan` on GPUs of a machine will take, by what was measured on one of them. Collectives that
/// were not are those of the machine's links, as far as it has the GPUs.
Result<Timeline> predictOnGpus(const ExecutionPlan &plan, const MachineProfile &profile, const Probe &probe,
    const SimulateOptions &options = {}, std::stop_token stop = {});

/// The profile kept at `path`, if it is one of a GPU of this machine.
std::optional<MachineProfile> gpuProfile(const std::string &path, const Probe &probe);

} // namespace planloom
