// Opens arbitrary bytes as a session: no crash, no hang, and what is refused is left as it is.

#include "sessions/session_file.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

/// One folder a process, so that parallel fuzzing jobs do not meet.
const std::filesystem::path &folder()
{
    static const std::filesystem::path kFolder = [] {
        const auto path
            = std::filesystem::temp_directory_path() / ("planloom_session_fuzz_" + std::to_string(getpid()));
        std::filesystem::create_directories(path);
        std::atexit([] {
            std::error_code ignored;
            std::filesystem::remove_all(std::filesystem::temp_directory_path()
                    / ("planloom_session_fuzz_" + std::to_string(getpid())),
                ignored);
        });
        return path;
    }();
    return kFolder;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::filesystem::path path = folder() / "session";
    std::error_code ignored;
    std::filesystem::remove(path.string() + "-wal", ignored);
    std::filesystem::remove(path.string() + "-shm", ignored);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char *>(data), static_cast<std::streamsize>(size));
    const auto file = planloom::SessionFile::open(path);
    if (file)
        static_cast<void>(file->load().has_value());
    return 0;
}
