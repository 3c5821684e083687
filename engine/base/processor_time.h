#pragma once

#include <chrono>

namespace planloom {

/// Seconds that all threads of this process have worked so far. Thread-safe.
double processorSeconds();

/// Likewise of the threads that it has now, and to the moment: of threads that work beside the calling one
/// `processorSeconds` does not count what they have worked since the system's last tick, up to 4 ms each.
/// Tens of microseconds a call.
double threadsSeconds();

/// Seconds that the calling thread has worked so far.
double threadSeconds();

/// How long something has worked: of the time that has passed no more than what the process had of the
/// processors, so that other programs beside it do not count.
class WorkClock
{
public:
    WorkClock();
    double seconds() const; ///< Since it was made; does not grow faster than time passes.

private:
    std::chrono::steady_clock::time_point m_start{};
    double m_worked = 0; ///< `processorSeconds` at the start.
};

} // namespace planloom
