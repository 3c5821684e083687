#pragma once

#include "engine/base/result.h"
#include "engine/cuda/backend/cuda_functions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// Of what stands between the program and the plugin: of CudaFunctions and of all kernels' arguments. A
/// plugin of another version is refused.
constexpr std::uint32_t kCudaPluginVersion = 3;
/// The file, and its one entry point: `CudaFunctions *planloomCudaFunctions(std::uint32_t version)`, null for
/// another version.
constexpr const char *kCudaPluginFile = "planloom-cuda.so";
constexpr const char *kCudaPluginEntry = "planloomCudaFunctions";

/// Where the plugin may be, first to last: beside the program, in ../lib/planloom of its folder, and in the
/// folders of PLANLOOM_PLUGIN_PATH (":" between them).
std::vector<std::string> cudaPluginPaths();

/// Loads it from the first of these files that is there.
/// @return NotFound naming all of them; NotSupported with the loader's reason
Result<std::shared_ptr<CudaFunctions>> openCudaPlugin(
    const std::vector<std::string> &paths = cudaPluginPaths());

} // namespace planloom
