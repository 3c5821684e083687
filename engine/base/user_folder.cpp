#include "engine/base/user_folder.h"

#include <algorithm>
#include <cstdlib>

namespace planloom {

namespace fs = std::filesystem;

namespace {

/// `variable` if it names a folder, else `inHome` in the home folder; empty where neither is known.
fs::path baseFolder(const char *variable, std::string_view inHome)
{
    if (const char *own = std::getenv(variable); own != nullptr && own[0] == '/')
        return own;
    if (const char *home = std::getenv("HOME"); home != nullptr && home[0] == '/')
        return fs::path(home) / inHome;
    return {};
}

} // namespace

fs::path userFolder(std::string_view name)
{
    const fs::path config = baseFolder("XDG_CONFIG_HOME", ".config");
    return config.empty() ? fs::path{} : config / "planloom" / name;
}

fs::path userCacheFolder()
{
    const fs::path cache = baseFolder("XDG_CACHE_HOME", ".cache");
    return cache.empty() ? fs::path{} : cache / "planloom";
}

std::vector<fs::path> filesIn(const fs::path &folder, std::string_view ending)
{
    std::vector<fs::path> files;
    std::error_code failure;
    if (folder.empty() || !fs::is_directory(folder, failure))
        return files;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure))
        if (entry->path().extension() == ending && fs::is_regular_file(entry->path(), failure))
            files.push_back(entry->path());
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace planloom
