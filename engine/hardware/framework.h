#pragma once

#include "engine/hardware/cluster.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

// What trains a model is a part of the machine: the same device is slower where every operator is a launch by
// itself, or where attention is an older kernel. A framework's profile says so (resources/frameworks), and
// the cluster that it is put on has its figures.

/// Of all profiles, sorted: "fsdp", "megatron" ...
std::vector<std::string> frameworkNames();

/// A sentence on what the framework does, for people; empty for names that are none.
std::string meaningOfFramework(std::string_view name);

/// What a framework's profile has a cluster take for granted, and where that comes from.
struct FrameworkAssumption {
    std::string words{}; ///< "a launch takes the host 8 us"
    std::string source{}; ///< Empty where the profile leaves it as timings of kernels have it.
    friend bool operator==(const FrameworkAssumption &, const FrameworkAssumption &) = default;
};

/// Of launches, element-wise operators, operators of several kernels, attention by architecture, and what is
/// computed beside collectives, in this order; nothing for names that are no framework's.
std::vector<FrameworkAssumption> assumptionsOfFramework(std::string_view name);

/// `cluster` as a framework uses it: how long its host takes to launch a kernel, whether element-wise
/// operators are launched together, what its attention reaches on this kind of device.
/// @param name  empty, and `cluster` stays as it is: kernels as timings have them, launched without a host
/// @return NotFound with the names there are; InvalidInput if `cluster` has the figures of another one
Result<Cluster> withFramework(Cluster cluster, std::string_view name);

/// "dgx-h100:8+fsdp" is the cluster "dgx-h100:8" and the framework "fsdp", as is "dgx-h100+fsdp:8".
std::pair<std::string, std::string> splitFramework(std::string_view word);

/// The word that splits into these: "dgx-h100:8+fsdp"; the cluster's own without a framework.
std::string joinFramework(std::string_view cluster, std::string_view framework);

} // namespace planloom
