#include "engine/runtime/machine/kernel_times.h"

#include "engine/base/processor_time.h"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace planloom {

namespace {

/// Seconds; what is shorter runs undisturbed once in a few times, and waking threads counts in it.
constexpr double kShort = 1e-3;
/// Pieces are not quite equal, and cores wait for each other at the end of loops.
constexpr double kUneven = 1.15;
/// Runs so near are of the same time.
constexpr double kAlike = 1.05;

} // namespace

BenchClock machineClock()
{
    return {
        [] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        },
        threadsSeconds, threadSeconds};
}

void KernelTimes::add(double elapsed, double cores)
{
    m_cores = m_elapsed.empty() ? cores : std::min(m_cores, cores);
    m_elapsed.insert(std::upper_bound(m_elapsed.begin(), m_elapsed.end(), elapsed), elapsed);
}

double KernelTimes::fastest() const
{
    assert(!empty());
    return m_elapsed.front();
}

bool KernelTimes::needShare() const
{
    return fastest() > kShort && !m_share;
}

bool KernelTimes::wereDisturbed() const
{
    return m_share && fastest() > kShort && fastest() > kUneven * *m_share * m_cores;
}

bool KernelTimes::areSettled() const
{
    return m_elapsed.size() > 1 && m_elapsed[1] <= kAlike * m_elapsed[0] && !needShare() && !wereDisturbed();
}

double KernelTimes::seconds() const
{
    return wereDisturbed() ? *m_share * m_cores : fastest();
}

double KernelTimes::coreSeconds() const
{
    return std::max(m_cores, seconds());
}

double KernelTimes::spread() const
{
    const double kept = seconds();
    return kept > 0 ? m_elapsed[m_elapsed.size() / 2] / kept - 1 : 0;
}

} // namespace planloom
