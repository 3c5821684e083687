#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Groups of hosts, or of groups: switches of one depth.
struct SwitchLevel {
    std::string name{}; ///< Of a group: "switch", "block", "spine".
    std::int32_t size = 1; ///< Groups of the level below in one: most of them have so many.
    bool isEven = true; ///< All of them have.
    friend bool operator==(const SwitchLevel &, const SwitchLevel &) = default;
};

/// Hosts as switches join them.
struct SwitchTree {
    std::vector<std::string> hosts{}; ///< Those of one switch beside one another.
    std::vector<SwitchLevel> levels{}; ///< From the inside out, without the one group that has all.
    friend bool operator==(const SwitchTree &, const SwitchTree &) = default;
};

/// Slurm's topology.conf, of trees or of blocks.
/// @return InvalidInput with its place: switches and hosts twice, switches that are not there, cycles, parts
/// that
///   nothing joins, leaves of different depths; ResourceLimit
Result<SwitchTree> readTopologyConf(std::string_view text);

/// Slurm's topology.yaml: of several topologies the one with `cluster_default`, or else the first that is no
/// flat one. @return as `readTopologyConf`
Result<SwitchTree> readTopologyYaml(std::string_view text);

} // namespace planloom
