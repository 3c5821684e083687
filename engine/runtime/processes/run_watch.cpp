#include "engine/runtime/processes/run_watch.h"

namespace planloom {

RunWatch::Report RunWatch::due(const std::vector<std::int64_t> &issued, Clock::time_point now)
{
    constexpr auto kReportInterval = std::chrono::milliseconds{200};
    constexpr auto kAliveInterval = std::chrono::milliseconds{1000};
    const bool isFurther = issued != m_issued;
    if (isFurther)
        m_lastChange = now;
    if (isFurther && now - m_lastReport >= kReportInterval) {
        m_lastReport = now;
        m_lastAlive = now;
        m_issued = issued;
        return Report::Progress;
    }
    if (now - m_lastAlive < kAliveInterval)
        return Report::None;
    m_lastAlive = now;
    return Report::Alive;
}

bool RunEnding::beginBehindStep()
{
    return !m_begun && !std::exchange(m_behindStep, true);
}

bool RunEnding::begin(Clock::time_point now)
{
    if (m_begun)
        return false;
    m_begun = now;
    return true;
}

std::optional<RunEnding::Stage> RunEnding::next(Clock::time_point now)
{
    constexpr auto kTerminateAfter = std::chrono::milliseconds{1000};
    constexpr auto kKillAfter = std::chrono::milliseconds{1500};
    if (!m_begun)
        return std::nullopt;
    const auto waited = now - *m_begun;
    const Stage stage = waited >= kKillAfter ? Stage::Kill
        : waited >= kTerminateAfter          ? Stage::Terminate
                                             : Stage::Ask;
    if (stage <= m_stage)
        return std::nullopt;
    return m_stage = stage;
}

} // namespace planloom
