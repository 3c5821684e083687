#pragma once

#include "engine/base/result.h"
#include "engine/graph/precision.h"
#include "engine/hardware/cluster.h"

#include <cstdint>
#include <string>

namespace planloom {

/// What a plan is for, as people say it.
struct TargetChoice {
    /// A profile without a size ("dgx-a100"), which takes `deviceCount`; one with a size ("dgx-a100:8"); the
    /// path of a cluster file; or, with `clusterJson`, a name of one's own. Each with a framework behind it,
    /// where there is one: "dgx-a100:8+fsdp" (framework.h).
    std::string cluster{};
    /// A cluster that is no profile; or what that file held, should it be gone; may be empty.
    std::string clusterJson{};
    std::int32_t deviceCount = 0; ///< How many of its devices are used; 0 takes all.
    friend bool operator==(const TargetChoice &, const TargetChoice &) = default;
};

/// A cluster and how many of its devices, the first ones, are used.
struct Target {
    Cluster cluster{};
    std::int32_t deviceCount = 1; ///< At most `cluster.deviceCount`.
};

/// What operators work in where no row says: bfloat16 on accelerators, float16 on those that have no bfloat16
/// (Volta), Float32 on devices that are threads of the host.
PrecisionPreset usualPrecision(const Cluster &cluster);

/// The one place where a name, a file or a description becomes a cluster.
/// @return as `clusterNamed` and `clusterFromJson`; InvalidInput, `where` "--devices", if the cluster has
/// fewer devices Waits for the disk, if `cluster` is a path.
Result<Target> resolve(const TargetChoice &choice);

} // namespace planloom
