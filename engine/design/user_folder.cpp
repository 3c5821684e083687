#include "engine/design/user_folder.h"

#include <algorithm>
#include <cstdlib>

namespace planloom {

namespace fs = std::filesystem;

fs::path userFolder(std::string_view name)
{
    if (const char *config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && config[0] == '/')
        return fs::path(config) / "planloom" / name;
    if (const char *home = std::getenv("HOME"); home != nullptr && home[0] == '/')
        return fs::path(home) / ".config" / "planloom" / name;
    return {};
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
