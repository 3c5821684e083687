#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <optional>

namespace planloom {

/// Some of a device's queues.
class QueueSet
{
public:
    void add(QueueKind queue) { m_bits = static_cast<std::uint8_t>(m_bits | bitOf(queue)); }
    bool has(QueueKind queue) const { return (m_bits & bitOf(queue)) != 0; }
    int count() const;
    /// How many of them come before `queue`.
    int placeOf(QueueKind queue) const;

    friend QueueSet operator|(QueueSet a, QueueSet b)
    {
        QueueSet both;
        both.m_bits = static_cast<std::uint8_t>(a.m_bits | b.m_bits);
        return both;
    }
    friend bool operator==(const QueueSet &, const QueueSet &) = default;

private:
    static std::uint8_t bitOf(QueueKind queue)
    {
        return static_cast<std::uint8_t>(1U << static_cast<unsigned>(queue));
    }
    std::uint8_t m_bits = 0; ///< One for each queue, the lowest for compute.
};

/// A part of a strip, in pixels.
struct TrackPlace {
    int top = 0;
    int height = 0;
    friend bool operator==(const TrackPlace &, const TrackPlace &) = default;
};

/// Where the track of `queue` is in a strip that `queues` share, one below the other in their order:
///
///     top     +---------------+
///             | tensor        |   each as high as the others, a pixel of air below each
///             | data          |   where there are several; a lone one has the whole strip
///             | pipeline      |
///     + height+---------------+
///
/// A strip too thin for that is all of theirs at once.
/// @return nothing if `queue` is none of them, or the strip is hidden (of no height)
std::optional<TrackPlace> trackIn(QueueSet queues, QueueKind queue, int top, int height);

/// Whose track is `y` pixels below the upper edge of a strip; nothing outside of it, if nobody shares it, or
/// if it is too thin for tracks.
std::optional<QueueKind> queueAt(QueueSet queues, int y, int height);

} // namespace planloom
