#pragma once

#include "engine/simulate/timeline.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
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
    /// Events that follow one another, `behind` after what is said of them.
    struct Piece {
        const MemoryEvent *events = nullptr; ///< Null: of `own`.
        std::size_t begin = 0;
        std::size_t count = 0;
        std::int64_t behind = 0;
    };

    void add(const MemoryEvent &event);
    /// Adds events in order of time, `behind` after what is said of them. They are referred to: they must
    /// outlive this.
    void add(const std::vector<MemoryEvent> &events, std::int64_t behind);

    const std::vector<Piece> &pieces() const { return m_pieces; } ///< In order of time.
    const std::vector<MemoryEvent> &own() const { return m_own; }
    const std::vector<MemoryEvent> &late() const { return m_late; } ///< In no order.

private:
    std::vector<Piece> m_pieces{};
    std::vector<MemoryEvent> m_own{};
    std::vector<MemoryEvent> m_late{};
    std::int64_t m_last = std::numeric_limits<std::int64_t>::min(); ///< Time of the last in order.
};

/// What a device holds over time, of what its queues note. What happens at one time is netted out: a buffer
/// that lives for no time takes no memory. O(events log(those that are late))
/// @param points  whether the curve has its points, beside its peak
MemoryCurve memoryCurve(const std::array<MemoryLog, kQueueCount> &queues, bool points);
/// The same of events in no order.
MemoryCurve memoryCurve(std::vector<MemoryEvent> events, bool points);

} // namespace planloom
