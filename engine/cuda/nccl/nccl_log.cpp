#include "engine/cuda/nccl/nccl_log.h"

#include <array>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

namespace planloom {

NcclLog::NcclLog()
{
    ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
    ::setenv("NCCL_DEBUG", "WARN", 0);
    if (std::getenv("NCCL_DEBUG_FILE") != nullptr)
        return;
    m_file = ::memfd_create("nccl-log", MFD_CLOEXEC);
    if (m_file >= 0)
        ::setenv("NCCL_DEBUG_FILE", ("/proc/self/fd/" + std::to_string(m_file)).c_str(), 0);
}

NcclLog::~NcclLog()
{
    if (m_file < 0)
        return;
    ::unsetenv("NCCL_DEBUG_FILE");
    ::close(m_file);
}

std::string NcclLog::warnings() const
{
    if (m_file < 0)
        return {};
    std::string text;
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0;
         (got = ::pread(m_file, bytes.data(), bytes.size(), static_cast<off_t>(text.size()))) > 0;)
        text.append(bytes.data(), static_cast<std::size_t>(got));
    constexpr std::string_view kMark = "NCCL WARN ";
    constexpr std::size_t kMost = 5;
    std::deque<std::string> last;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find(kMark);
        if (at == std::string::npos)
            continue;
        last.push_back(line.substr(at + kMark.size()));
        if (last.size() > kMost)
            last.pop_front();
    }
    std::string all;
    for (const std::string &line : last)
        all += (all.empty() ? "" : "\n") + line;
    return all;
}

} // namespace planloom
