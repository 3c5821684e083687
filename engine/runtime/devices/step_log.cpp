#include "engine/runtime/devices/step_log.h"

#include <algorithm>
#include <utility>

namespace planloom {

void StepLog::begin(std::int32_t step, std::size_t instructions, Clock::time_point origin, bool measures)
{
    m_step = step;
    m_origin = origin;
    m_spans.assign(measures ? instructions : 0, {});
    const std::lock_guard lock{m_mutex};
    m_doneBefore = std::int64_t{step} * static_cast<std::int64_t>(instructions);
    m_done.assign(instructions, false);
    m_doneUpTo = 0;
    if (instructions > 0)
        m_progress.issued.store(m_doneBefore + 1, std::memory_order_relaxed);
}

void StepLog::ended(
    std::size_t index, const StepInstruction &instruction, Clock::time_point start, Clock::time_point end)
{
    const auto since = [this](Clock::time_point time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time - m_origin).count();
    };
    const bool measures = !m_spans.empty();
    if (measures)
        m_spans[index] = {m_step, instruction.segment, instruction.instruction, instruction.microBatch,
            since(start), since(end) - since(start)};
    const std::lock_guard lock{m_mutex};
    if (measures && m_isLive)
        m_liveSpans.push_back(m_spans[index]);
    m_done[index] = true;
    while (m_doneUpTo < m_done.size() && m_done[m_doneUpTo])
        ++m_doneUpTo;
    const auto done = static_cast<std::int64_t>(m_doneUpTo);
    const auto begun = static_cast<std::int64_t>(std::min(m_doneUpTo + 1, m_done.size()));
    m_progress.issued.store(m_doneBefore + begun, std::memory_order_relaxed);
    m_progress.finished.store(m_doneBefore + done, std::memory_order_relaxed);
}

std::vector<LiveSpan> StepLog::takeLive()
{
    const std::lock_guard lock{m_mutex};
    return std::exchange(m_liveSpans, {});
}

} // namespace planloom
