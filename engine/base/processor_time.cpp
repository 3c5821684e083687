#include "engine/base/processor_time.h"

#include <algorithm>
#include <ctime>

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
