#pragma once

#include "engine/runtime/devices/memory_plan.h"
#include "engine/runtime/run.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace planloom {

/// What a device has done of the step that it runs: how far it is, and when its instructions ran.
class StepLog
{
public:
    using Clock = std::chrono::steady_clock;

    /// @param progress  is kept up to date, without locks; outlives this
    explicit StepLog(DeviceProgress &progress)
        : m_progress(progress)
    {
    }

    /// @param step      0-based, of as many instructions as all steps before it
    /// @param origin    start of the step
    /// @param measures  spans are kept
    void begin(std::int32_t step, std::size_t instructions, Clock::time_point origin, bool measures);
    /// Instruction `index` of the step has ended. By any thread, for each one once.
    void ended(std::size_t index, const StepInstruction &instruction, Clock::time_point start,
        Clock::time_point end);

    /// Spans are told as they end from now on, see `takeLive`.
    void setLive(bool live) { m_isLive = live; }
    /// What has ended since the last call. By any thread.
    std::vector<LiveSpan> takeLive();
    /// In the order of the program; empty where they are not measured. Not while the step runs.
    const std::vector<LiveSpan> &spans() const { return m_spans; }

private:
    DeviceProgress &m_progress;
    std::int32_t m_step = 0;
    Clock::time_point m_origin{};
    std::vector<LiveSpan> m_spans{};
    bool m_isLive = false;
    std::mutex m_mutex{}; ///< Of what follows.
    std::vector<bool> m_done{}; ///< By instruction.
    std::size_t m_doneUpTo = 0; ///< All before it are done.
    std::int64_t m_doneBefore = 0; ///< Instructions of earlier steps.
    std::vector<LiveSpan> m_liveSpans{};
};

} // namespace planloom
