#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

// Kernels that are compiled while a plan runs, by the compiler that has built the tests: in place of NVRTC.

using HostKernel = void (*)(const std::uint64_t *words, std::int64_t items);

/// Why there is no such compiler; empty where there is.
std::string whyNoHostCompiler();

/// @param headers  as NVRTC takes them; those of the standard are the compiler's own
/// @param code  what `loadOnHost` takes @param log  what the compiler says
/// @return false if it refuses. Thread-safe, as are the others
bool compileOnHost(const std::string &source, const std::vector<std::pair<std::string, std::string>> &headers,
    std::string &code, std::string &log);
/// Null for what `compileOnHost` did not make. It stays loaded.
void *loadOnHost(const std::string &code, const char *name);

} // namespace planloom
