#include "engine/base/processor_time.h"

#include <algorithm>
#include <ctime>

namespace planloom {

double processorSeconds()
{
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
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
