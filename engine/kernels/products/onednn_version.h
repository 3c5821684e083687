#pragma once

#include <string>

namespace planloom {

/// Version of the oneDNN that products on the CPU are computed by: "2.7.3"; empty in a build without it,
/// where portable loops do the same.
std::string oneDnnVersion();

} // namespace planloom
