#pragma once

#include "engine/hardware/cluster.h"

#include <optional>
#include <string>
#include <string_view>

namespace planloom {

constexpr std::int32_t kMostDevices = 16384;

/// A cluster file or profile (resources/schema/cluster.json): strict, unknown and missing fields are errors.
///
/// @param deviceCount  the number of devices; if missing, the file must give it in `deviceCount`
/// @return InvalidInput with the JSON pointer of what is wrong in `where`
Result<Cluster> clusterFromJson(std::string_view text, std::optional<std::int32_t> deviceCount = {});

/// The file that `clusterFromJson` reads back as `cluster`.
std::string toJson(const Cluster &cluster);

} // namespace planloom
