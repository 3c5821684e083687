#pragma once

#include "engine/hardware/cluster.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// The levels of links, from the inside out: a device's port inside its node, its network card, the ways out
/// of its rack, site ...
constexpr std::size_t kPortLevel = 0;
constexpr std::size_t kNetworkLevel = 1;
constexpr std::size_t kOuterLevel = 2;
constexpr std::size_t kLinkLevels = kOuterLevel + kMostOuterLevels;

/// The links of one level that several devices use.
struct SharedLevel {
    std::size_t level = kNetworkLevel;
    std::vector<std::int32_t> linkOf{}; ///< By device of the unit.
    /// By link: the devices that use it, as devices of the unit, one for each unit that uses it.
    std::vector<std::vector<std::int32_t>> users{};
};

/// Levels whose links several of the devices 0 to `devices` - 1 of every unit share. None where each device
/// has a card of its own and nothing lies above the nodes.
std::vector<SharedLevel> sharedLevels(const Cluster &unit, std::size_t devices);

} // namespace planloom
