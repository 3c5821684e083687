#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cluster.h"
#include "engine/runtime/machine/machine_profile.h"
#include "engine/runtime/machine/probe.h"

#include <optional>

namespace planloom {

/// What a machine is called as a cluster.
constexpr const char *kThisMachine = "this machine";

/// A machine as a cluster, to plan for: its GPUs that can be used, of the first one's kind, or without any
/// the cores of its processor, a device each. Memory, number and links are those that were found; other
/// figures are those of the profile of that GPU, or of one with the same compute capability (which the
/// figure's source says), and for a processor what was measured on it, if something was.
/// @param measured  of the processor of this machine
Result<Cluster> machineCluster(const Probe &probe, const std::optional<MachineProfile> &measured = {});

} // namespace planloom
