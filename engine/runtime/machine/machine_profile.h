#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cost_model.h"

#include <cstdint>
#include <map>
#include <string>

namespace planloom {

/// How long one kernel took here. Both times are of the whole kernel, with all threads of a run to help it.
struct MeasuredKernel {
    OperatorCategory category = OperatorCategory::Other;
    double flops = 0;
    double bytes = 0;
    double seconds = 0; ///< From its start to its end, on an idle machine.
    double coreSeconds = 0; ///< That cores worked on it, together.
    double spread = 0; ///< How much longer the median of its runs was, as a share of `seconds`.
    friend bool operator==(const MeasuredKernel &, const MeasuredKernel &) = default;
};

/// What was measured on one machine, as a source of costs. Kept in a file, so that each kernel is measured
/// once.
struct MachineProfile {
    std::string machine{}; ///< "Intel(R) Xeon(R) Processor, 2 cores": `machineName` where it was measured.
    std::int32_t cores = 1; ///< That kernels share; 1 for a GPU, which each kernel has to itself.
    bool oneEach = false; ///< Each device of a plan has such a machine; else all of them share it.
    double taskSeconds = 0; ///< What issuing and ending one instruction takes.
    double exchangeSeconds = 0; ///< What a collective of nothing takes; 0, with the next: was not measured.
    double exchangeRate = 0; ///< Bytes/s that collectives read and write, all members together.
    double copyRate = 0; ///< Bytes/s that a copy within a device reads and writes.
    std::map<std::string, MeasuredKernel> kernels{}; ///< By `kernelKey`.
    friend bool operator==(const MachineProfile &, const MachineProfile &) = default;
};

/// This machine and what of it this process may use.
std::string machineName();

/// What tells kernels apart that take different times: kind, direction, local types, arithmetic.
std::string kernelKey(const KernelQuery &query);

/// What a figure of a profile stands for.
enum class ProfileTime : std::uint8_t {
    Elapsed, ///< On an idle machine.
    Work, ///< The share of all cores that it keeps busy: what devices that share them have to wait for.
};

/// Costs by what was measured. Kernels that were not are between the measured ones of their category that do
/// nearly as much work; those of categories without any cost what `otherwise` says.
CostModel costModelOf(
    const MachineProfile &profile, const CostModel &otherwise, ProfileTime time = ProfileTime::Elapsed);

/// Where profiles are kept: planloom/<backend>-profile.json in XDG_CACHE_HOME, or else in ~/.cache. Empty
/// without a home.
std::string profilePath(const std::string &backend = "cpu");

/// @return NotFound, Io; InvalidInput for a file that is none, or of another version
Result<MachineProfile> readProfile(const std::string &path);
/// Replaces the file at once. @return Io
Result<void> writeProfile(const std::string &path, const MachineProfile &profile);

} // namespace planloom
