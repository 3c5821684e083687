#pragma once

#include "widgets/scene/timeline_scene.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// A span that both plans run, at another time or on another device.
struct SpanMove {
    std::size_t a = 0; ///< Row of the first plan's spans.
    std::size_t b = 0;
    friend bool operator==(const SpanMove &, const SpanMove &) = default;
};

/// Some spans of a timeline, prepared for drawing as if they were all.
struct SpanSubset {
    SpanColumns spans{}; ///< Copies, in the timeline's order.
    std::vector<std::size_t> rows{}; ///< Of each, in the timeline.
    std::vector<BusyBefore> before{};
    std::vector<std::array<LaneRows, kQueueCount>> queues{}; ///< By device, by queue.

    /// Those of one queue, in order of time; none for a device that is not there.
    LaneRows rowsOf(std::size_t device, QueueKind queue) const
    {
        return device < queues.size() ? queues[device][static_cast<std::size_t>(queue)] : LaneRows{};
    }
};

/// What is not at its place: spans matched by operator, part, direction and micro-batch, of several such ones
/// those of one queue first.
struct SpanMoves {
    std::vector<SpanMove> moved{}; ///< Longest first; further equal ones by row.
    std::vector<std::size_t> onlyA{}; ///< Rows, ascending.
    std::vector<std::size_t> onlyB{};
    std::int64_t same = 0; ///< Matched spans that are where they were.
    SpanSubset fromA{}; ///< Those of A that moved or are gone.
    SpanSubset toB{}; ///< Those of B that moved or are new.
    bool empty() const { return moved.empty() && onlyA.empty() && onlyB.empty(); }
};

/// Spans on another device or in another queue, or whose start or length changed by more than `tick`, count
/// as moved. Operators
/// are those of one model, or matched by name. @return nothing if stopped. O(spans log spans)
std::optional<SpanMoves> movesOf(
    const TimelineScene &a, const TimelineScene &b, std::int64_t tick, std::stop_token stop = {});

/// Rows, ascending, as a subset of `timeline`.
SpanSubset subsetOf(const Timeline &timeline, std::vector<std::size_t> rows);

} // namespace planloom
