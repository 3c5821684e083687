#pragma once

#include <span>
#include <string_view>

namespace planloom {

/// A file of resources/clusters or resources/frameworks, as text.
struct EmbeddedProfile {
    std::string_view name; ///< The file's name without ".json".
    std::string_view json;
};

/// All of them, sorted by name.
std::span<const EmbeddedProfile> embeddedProfiles();
/// Those of frameworks, likewise.
std::span<const EmbeddedProfile> embeddedFrameworks();

} // namespace planloom
