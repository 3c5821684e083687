#include "engine/base/processor_time.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <system_error>

namespace planloom {

namespace {

double secondsOn(clockid_t clock)
{
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

double processorSeconds()
{
    return secondsOn(CLOCK_PROCESS_CPUTIME_ID);
}

double threadsSeconds()
{
#ifdef __linux__
    double seconds = 0;
    std::error_code problem;
    for (std::filesystem::directory_iterator each("/proc/self/task", problem), end; !problem && each != end;
         each.increment(problem)) {
        const std::string name = each->path().filename().string();
        pid_t thread = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), thread).ec != std::errc{})
            continue;
        timespec
            time{}; // clock_getcpuclockid(3) gives one for processes only; as glibc makes that of a thread
        if (clock_gettime(static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3U | 6U), &time) == 0)
            seconds += static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    if (seconds > 0)
        return seconds;
#endif
    return processorSeconds();
}

double threadSeconds()
{
    return secondsOn(CLOCK_THREAD_CPUTIME_ID);
}

WorkClock::WorkClock()
    : m_start(std::chrono::steady_clock::now())
    , m_worked(processorSeconds())
{
}

double WorkClock::seconds() const
{
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - m_start).count();
    return std::min(passed, processorSeconds() - m_worked);
}

} // namespace planloom
