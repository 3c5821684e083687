#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace planloom {

/// The user's folder `name` of what Planloom reads: "planloom/NAME" in $XDG_CONFIG_HOME, or in ~/.config.
/// Empty where neither is known. It need not exist.
std::filesystem::path userFolder(std::string_view name);

/// Where what can be made again is kept: "planloom" in $XDG_CACHE_HOME, or in ~/.cache. Empty where neither
/// is known. It need not exist.
std::filesystem::path userCacheFolder();

/// The regular files of a folder whose names end so, in the order of their names; none if it does not exist.
std::vector<std::filesystem::path> filesIn(const std::filesystem::path &folder, std::string_view ending);

} // namespace planloom
