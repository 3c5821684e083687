#include "engine/cuda/backend/cuda_plugin.h"

#include "engine/cuda/nccl/nccl_functions.h"

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
    if (const fs::path program = fs::read_symlink("/proc/self/exe", ignored); !program.empty()) {
        paths.push_back((program.parent_path() / kCudaPluginFile).string());
        // Installed, programs are in bin, and what they open or start is in lib beside it.
        paths.push_back((program.parent_path().parent_path() / "lib/planloom" / kCudaPluginFile).string());
    }
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

namespace {

Error pluginRefused(const std::string &reason, const std::string &path)
{
    return {ErrorCode::NotSupported, "the CUDA plugin cannot be used: " + reason,
        "build Planloom anew on this machine, with the CUDA toolkit", path};
}

/// An entry point of the plugin, and the file that has it.
struct PluginEntry {
    void *function = nullptr;
    std::string path{};
};

Result<PluginEntry> findEntry(const std::vector<std::string> &paths, const char *name)
{
    std::string tried;
    for (const std::string &path : paths) {
        std::error_code ignored;
        if (!std::filesystem::exists(path, ignored)) {
            tried += (tried.empty() ? "" : ", ") + path;
            continue;
        }
        // It stays: kernels and host functions of it may be anywhere until the process ends.
        void *const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char *const reason = ::dlerror();
            return pluginRefused(reason == nullptr ? "it was not loaded" : reason, path);
        }
        void *const function = ::dlsym(library, name);
        if (function == nullptr)
            return pluginRefused(std::string{"it has no "} + name, path);
        return PluginEntry{function, path};
    }
    return Error{ErrorCode::NotFound,
        "the CUDA plugin was not found: there is no " + (tried.empty() ? kCudaPluginFile : tried),
        "install the package planloom-cuda, build Planloom where the CUDA toolkit is installed, or name its "
        "folder in PLANLOOM_PLUGIN_PATH",
        {}};
}

} // namespace

Result<std::shared_ptr<CudaFunctions>> openCudaPlugin(const std::vector<std::string> &paths)
{
    TRY(const auto entry, findEntry(paths, kCudaPluginEntry));
    using Entry = CudaFunctions *(*)(std::uint32_t);
    CudaFunctions *const functions = reinterpret_cast<Entry>(entry.function)(kCudaPluginVersion);
    if (functions == nullptr)
        return pluginRefused(
            "it is of another version than this program (" + std::to_string(kCudaPluginVersion) + ")",
            entry.path);
    return std::shared_ptr<CudaFunctions>{functions, [](CudaFunctions *) {}}; // the plugin's own
}

Result<std::shared_ptr<NcclFunctions>> openNcclPlugin(const std::vector<std::string> &paths)
{
    TRY(const auto entry, findEntry(paths, kNcclPluginEntry));
    using Entry = NcclFunctions *(*)(std::uint32_t, const char **);
    const char *why = nullptr;
    NcclFunctions *const functions = reinterpret_cast<Entry>(entry.function)(kNcclPluginVersion, &why);
    if (functions == nullptr)
        return Error{ErrorCode::NotFound, std::string{"NCCL cannot be used: "} + why,
            "install NCCL 2.18 or later (Python's package nvidia-nccl has one), name its folder in "
            "PLANLOOM_LIBRARY_PATH, or run with --backend cuda-emulated",
            {}};
    return std::shared_ptr<NcclFunctions>{functions, [](NcclFunctions *) {}}; // the plugin's own
}

} // namespace planloom
