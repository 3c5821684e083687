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

/// What a file of at most 1 MiB holds.
/// @return NotFound, Io; InvalidInput for what is no regular file; ResourceLimit
Result<std::string> clusterFileText(const std::string &path);

/// The file that `clusterFromJson` reads back as `cluster`.
std::string toJson(const Cluster &cluster);

} // namespace planloom
