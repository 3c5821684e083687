#include "engine/cuda/cuda_plugin.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace planloom {

std::vector<std::string> cudaPluginPaths()
{
    namespace fs = std::filesystem;
    std::vector<std::string> paths;
    std::error_code ignored;
    if (const fs::path program = fs::read_symlink("/proc/self/exe", ignored); !program.empty())
        paths.push_back((program.parent_path() / kCudaPluginFile).string());
    if (const char *const given = std::getenv("PLANLOOM_PLUGIN_PATH")) {
        const std::string folders = given;
        for (std::size_t begin = 0; begin <= folders.size();) {
            const std::size_t end = std::min(folders.find(':', begin), folders.size());
            if (end > begin)
                paths.push_back((fs::path{folders.substr(begin, end - begin)} / kCudaPluginFile).string());
            begin = end + 1;
        }
    }
    return paths;
}

Result<std::shared_ptr<CudaFunctions>> openCudaPlugin(const std::vector<std::string> &paths)
{
    std::string tried;
    for (const std::string &path : paths) {
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored)) {
            tried += (tried.empty() ? "" : ", ") + path;
            continue;
        }
        const auto refused = [&](const std::string &reason) {
            return Error{ErrorCode::NotSupported, "the CUDA plugin cannot be used: " + reason,
                "build Planloom anew on this machine, with the CUDA toolkit", path};
        };
        // It stays: kernels and host functions of it may be anywhere until the process ends.
        void *const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char *const reason = ::dlerror();
            return refused(reason == nullptr ? "it was not loaded" : reason);
        }
        void *const entry = ::dlsym(library, kCudaPluginEntry);
        if (entry == nullptr)
            return refused(std::string{"it has no "} + kCudaPluginEntry);
        using Entry = CudaFunctions *(*)(std::uint32_t);
        CudaFunctions *const functions = reinterpret_cast<Entry>(entry)(kCudaPluginVersion);
        if (functions == nullptr)
            return refused(
                "it is of another version than this program (" + std::to_string(kCudaPluginVersion) + ")");
        return std::shared_ptr<CudaFunctions>{functions, [](CudaFunctions *) {}}; // the plugin's own
    }
    return Error{ErrorCode::NotFound,
        "the CUDA plugin was not found: there is no " + (tried.empty() ? kCudaPluginFile : tried),
        "build Planloom where the CUDA toolkit is installed, or name its folder in PLANLOOM_PLUGIN_PATH", {}};
}

} // namespace planloom
