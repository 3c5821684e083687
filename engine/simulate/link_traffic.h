#pragma once

#include "engine/hardware/cluster.h"
#include "engine/simulate/timeline.h"

#include <optional>
#include <string_view>
#include <vector>

namespace planloom {

/// What the links of each level carry in one step, from the inside out: "device" (to others of its node),
/// "card" (a network card, used by the devices of a node that share it), "node" (to other nodes), then the
/// cluster's outer levels by their names (out of a rack, a site). Collectives send to the next member of
/// their group, as rings do, an all-to-all to all others alike; what goes to other scale units goes to the
/// next of them.
/// @param traffic  of `plan`'s devices; cluster  the whole one, as `simulate` takes it
/// O(rows of traffic x members of their groups)
std::vector<LevelTraffic> levelTraffic(
    const std::vector<Traffic> &traffic, const ExecutionPlan &plan, const Cluster &cluster);

/// The most that one of the links carries that a limit on traffic names (`LimitRule::links`): of all that a
/// device sends, of any link, or of one level's. Nothing where there is no such level.
/// @param mostSent  by one device, whatever the way
std::optional<Bytes> mostCarried(
    Bytes mostSent, const std::vector<LevelTraffic> &levels, std::string_view links);

} // namespace planloom
