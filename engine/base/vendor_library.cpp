#include "engine/base/vendor_library.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace planloom {

namespace {

namespace fs = std::filesystem;

void addFromVariable(std::vector<fs::path> &folders, const char *variable, const char *below)
{
    const char *const given = std::getenv(variable);
    if (given == nullptr)
        return;
    const std::string all = given;
    for (std::size_t begin = 0; begin <= all.size();) {
        std::size_t end = all.find(':', begin);
        end = end == std::string::npos ? all.size() : end;
        if (end > begin)
            folders.push_back(fs::path{all.substr(begin, end - begin)} / below);
        begin = end + 1;
    }
}

/// lib/python3*/site-packages/nvidia/*/lib below `root`: where pip puts them.
void addFromPython(std::vector<fs::path> &folders, const fs::path &root)
{
    std::error_code ignored;
    for (const auto &python : fs::directory_iterator(root / "lib", ignored))
        for (const char *const packages : {"site-packages", "dist-packages"})
            for (const auto &package : fs::directory_iterator(python.path() / packages / "nvidia", ignored))
                folders.push_back(package.path() / "lib");
}

std::vector<fs::path> foldersToSearch()
{
    std::vector<fs::path> folders;
    addFromVariable(folders, "PLANLOOM_LIBRARY_PATH", "");
    addFromVariable(folders, "CUDA_HOME", "lib64");
    addFromVariable(folders, "CUDA_PATH", "lib64");
    folders.emplace_back("/usr/local/cuda/lib64");
    folders.emplace_back("/opt/cuda/lib64");
    for (const char *const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const char *const root = std::getenv(variable))
            addFromPython(folders, root);
    addFromPython(folders, "/usr/local");
    addFromPython(folders, "/usr");
    return folders;
}

} // namespace

void *openVendorLibrary(const std::vector<std::string> &names, std::string &why)
{
    for (const std::string &name : names)
        if (void *const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
            return library;
    std::string last;
    for (const fs::path &folder : foldersToSearch()) {
        for (const std::string &name : names) {
            std::error_code ignored;
            if (!fs::exists(folder / name, ignored))
                continue;
            if (void *const library = ::dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL))
                return library;
            const char *const reason = ::dlerror();
            last = reason == nullptr ? std::string{} : reason;
        }
    }
    why = names.front()
        + (last.empty()
                ? " was not found beside the toolkit, in PLANLOOM_LIBRARY_PATH or among Python's packages"
                : " cannot be loaded: " + last);
    return nullptr;
}

} // namespace planloom
