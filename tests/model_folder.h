#pragma once

// Models that are too large for the repository: tests that need them are skipped where they are not.

#include "planloom_paths.h"

#include <cstdlib>
#include <filesystem>

namespace planloom {

/// The folder that the environment variable PLANLOOM_MODELS names, else the one beside the checkout.
inline std::filesystem::path modelFolder()
{
    if (const char *const models = std::getenv("PLANLOOM_MODELS"); models && *models != '\0')
        return models;
    return std::filesystem::path(PLANLOOM_SOURCE_DIR).parent_path() / "shared" / "models";
}

/// That of what today's exporters write, beside the other one.
inline std::filesystem::path modernModelFolder()
{
    return modelFolder().parent_path() / "models-modern";
}

} // namespace planloom
