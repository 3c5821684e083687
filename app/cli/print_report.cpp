#include "app/cli/print_report.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace planloom::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char *kHelper = "planloom-report";

fs::path findHelper()
{
    std::error_code failure;
    const fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path();
    for (const fs::path &place : {folder, folder.parent_path() / "lib/planloom"})
        if (!failure && fs::is_regular_file(place / kHelper, failure))
            return place / kHelper;
    return {};
}

} // namespace

Result<void> printReport(
    const std::string &out, const std::string &cluster, const std::string &path, const std::string &other)
{
    const std::string program = findHelper().string();
    if (program.empty())
        return Error{ErrorCode::NotSupported,
            std::string(kHelper) + ", which comes with the window, is not installed",
            "write HTML, which prints as a PDF from any browser", "--out"};
    std::vector<std::string> words{program, out, cluster, path};
    if (!other.empty())
        words.push_back(other);
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::pid_t child = 0;
    if (const int failure =
            ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ))
        return Error{ErrorCode::Io, program + " cannot be started: " + std::strerror(failure), {}, program};
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return Error{ErrorCode::Io, program + " is lost: " + std::strerror(errno), {}, program};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return {};
    return Error{ErrorCode::CheckFailed, "the report was not written", "the reason stands above", out};
}

} // namespace planloom::cli
