#pragma once

#include "engine/hardware/kernel_fit.h"

#include <cstdint>
#include <map>
#include <string>

namespace planloom {

/// Files of times, and what of them a cluster is made of.
struct Measurements {
    std::string kernels{}; ///< Path of times of kernels (kernel_timings.h); may be empty.
    std::string collectives{}; ///< Path of what nccl-tests printed, in place of the collectives of `kernels`.
    std::string device{}; ///< Whose times count; empty: the only one that the files have.
    /// Profile or path of a cluster file that says what times can't; a profile without a size is one node of
    /// it. Empty: the profile of the device.
    std::string base{};
    friend bool operator==(const Measurements &, const Measurements &) = default;
};

/// The cluster of measurements.
struct MeasuredCluster {
    std::string device{}; ///< As the file calls it; may be empty.
    FittedCluster fitted{};
    std::map<std::string, std::int32_t> unknown{}; ///< Times left out, by formats that Planloom doesn't have.
};

/// Reads the files and fits the base to their times. Waits for the disk; O(times), about 0.1 ms each.
/// @return as `kernelTimings`, `addNcclTests`, `clusterNamed` and `fittedCluster`, `where` with the file;
/// NotFound, `where` "--base", if no profile is of the device
Result<MeasuredCluster> measuredCluster(const Measurements &measurements);

/// The devices of which a file of times of kernels has some, sorted; none where it names none. Waits for the
/// disk.
Result<std::vector<std::string>> timedDevicesOf(const std::string &kernels);

} // namespace planloom
