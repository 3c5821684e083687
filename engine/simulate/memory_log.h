#pragma once

#include "engine/simulate/timeline.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// Memory that buffers of a kind take or give back at a time.
struct MemoryEvent {
    std::int64_t time = 0;
    std::int64_t bytes = 0;
    MemoryKind kind{};
};

/// What the instructions of one queue take and give back. They run one behind the other, so that what one
/// gives back and the next one takes is noted in the order of time, and as one where both are of a kind. What
/// another queue still uses is given back later than that.
class MemoryLog
{
public:
    void reserve(std::size_t events) { m_inOrder.reserve(events); }

    void add(const MemoryEvent &event)
    {
        for (auto last = m_inOrder.rbegin(); last != m_inOrder.rend(); ++last) { // one of each kind at most
            if (last->time < event.time)
                break;
            if (last->time > event.time) {
                m_late.push_back(event);
                return;
            }
            if (last->kind == event.kind) {
                last->bytes += event.bytes;
                return;
            }
        }
        m_inOrder.push_back(event);
    }

    /// Adds what lies in order of time `behind` what is said of it.
    void add(const std::vector<MemoryEvent> &events, std::int64_t behind)
    {
        std::size_t i = 0; // one by one what may be told of the same moment as the last, or of one before it
        for (; i < events.size() && !m_inOrder.empty() && m_inOrder.back().time >= behind + events[i].time; ++i)
            add({behind + events[i].time, events[i].bytes, events[i].kind});
        for (; i < events.size(); ++i)
            m_inOrder.push_back({behind + events[i].time, events[i].bytes, events[i].kind});
    }

    const std::vector<MemoryEvent> &inOrder() const { return m_inOrder; }
    const std::vector<MemoryEvent> &late() const { return m_late; } ///< In no order.

private:
    std::vector<MemoryEvent> m_inOrder{};
    std::vector<MemoryEvent> m_late{};
};

/// What a device holds over time, of what its queues note. What happens at one time is netted out: a buffer
/// that lives for no time takes no memory. O(events log(those that are late))
/// @param points  whether the curve has its points, beside its peak
MemoryCurve memoryCurve(const std::array<MemoryLog, kQueueCount> &queues, bool points);
/// The same of events in no order.
MemoryCurve memoryCurve(std::vector<MemoryEvent> events, bool points);

} // namespace planloom
