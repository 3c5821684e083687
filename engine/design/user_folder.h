#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace planloom {

/// The user's folder `name` of what Planloom reads: "planloom/NAME" in $XDG_CONFIG_HOME, or in ~/.config.
/// Empty where neither is known. It need not exist.
std::filesystem::path userFolder(std::string_view name);

/// The regular files of a folder whose names end so, in the order of their names; none if it does not exist.
std::vector<std::filesystem::path> filesIn(const std::filesystem::path &folder, std::string_view ending);

} // namespace planloom
