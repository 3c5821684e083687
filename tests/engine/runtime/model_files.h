#pragma once

#include "planloom_paths.h"

#include <filesystem>

namespace planloom {

/// Where models that are too large for the repository lie, if they do.
inline const std::filesystem::path kModelFiles =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / ".." / "shared" / "models";

} // namespace planloom
