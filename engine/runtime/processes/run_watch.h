#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

/// When something of a supervised run was last seen, and what is to be reported of it. Times are given by the
/// caller, and must not go back.
class RunWatch
{
public:
    using Clock = std::chrono::steady_clock;

    /// @param now  from when on silence counts
    RunWatch(std::size_t devices, Clock::time_point now)
        : m_issued(devices, 0)
        , m_lastChange(now)
    {
    }

    enum class Report { None, Progress, Alive };
    /// What is due now: how far devices are, 5 times a second while that changes; a sign of life once a
    /// second where nothing else was reported. @param issued  how far devices are, by device
    Report due(const std::vector<std::int64_t> &issued, Clock::time_point now);

    void changed(Clock::time_point now) { m_lastChange = now; } ///< Something else of the run was seen.
    double quietSeconds(Clock::time_point now) const
    {
        return std::chrono::duration<double>(now - m_lastChange).count();
    }
    /// @return true where a stall begins, which is told once
    bool stalls(bool isStalled) { return !std::exchange(m_isStalled, isStalled) && isStalled; }

private:
    std::vector<std::int64_t> m_issued; ///< As last reported, by device.
    Clock::time_point m_lastChange;
    Clock::time_point m_lastReport{};
    Clock::time_point m_lastAlive{};
    bool m_isStalled = false;
};

/// How a run is ended before its time: behind the step it is in, or at once, where it is asked to, then told
/// to, then killed.
class RunEnding
{
public:
    using Clock = RunWatch::Clock;
    enum class Stage { Ask, Terminate, Kill };

    /// The run is to end behind the step it is in. @return false if it was asked to end before
    bool beginBehindStep();
    bool isBehindStep() const { return m_behindStep; }
    /// The run is to end at once. @return false if that had begun before
    bool begin(Clock::time_point now);
    bool hasBegun() const { return m_begun.has_value(); }
    /// The stage that has been reached since the last call, if a later one has: 1 s after `begin` the run is
    /// terminated, 1.5 s after it killed.
    std::optional<Stage> next(Clock::time_point now);

private:
    bool m_behindStep = false;
    std::optional<Clock::time_point> m_begun{};
    Stage m_stage = Stage::Ask;
};

} // namespace planloom
