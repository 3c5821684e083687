#pragma once

#include "engine/analyse/dependencies.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// The chain of spans that explains the makespan, first span first, as columns. Durations and gaps add up to
/// the makespan exactly; gaps of a predicted timeline are 0.
struct CriticalPath {
    std::vector<std::int32_t> span{}; ///< Rows of the timeline: the end of a communication that came last.
    std::vector<std::int32_t>
        leaves{}; ///< The same span, or that end of its communication by which the path goes on.
    std::vector<std::int64_t>
        gap{}; ///< Nanoseconds between the end of the one before (or the step's begin) and this one.
    std::vector<WaitKind> kind{}; ///< Why it waits for the one before; Order for the first.

    std::size_t size() const { return span.size(); }
    friend bool operator==(const CriticalPath &, const CriticalPath &) = default;
};

/// Walks back from the span that ends last, always to what was waited for longest.
/// @return empty if stopped, or without spans. O(spans + needs of the path)
CriticalPath criticalPath(
    const Timeline &timeline, const TimelineDependencies &dependencies, std::stop_token stop = {});

/// By span, nanoseconds: how much longer it could take without moving the makespan. Of a communication, all
/// ends have the same. 0 at least, so that measured spans that overlap count as critical.
/// @return empty if stopped. O(spans + dependencies)
std::vector<std::int64_t> slackOf(
    const Timeline &timeline, const TimelineDependencies &dependencies, std::stop_token stop = {});

/// One link of the chain behind a bubble.
struct Wait {
    std::int32_t span = -1; ///< What runs or waits next.
    std::int32_t on = -1; ///< What it waits for, which ended last; -1 for nothing.
    std::int32_t member = -1; ///< The end of its communication that waits for it: `span`, or who came last.
    WaitKind kind = WaitKind::Order;
    RowId row{}; ///< The order or in-flight row that puts `on` before `span`; invalid if none does.
    friend bool operator==(const Wait &, const Wait &) = default;
};

/// What `span` waited for longest, what that waited for, and so on back to something that ran at `begin`, or
/// waited for nothing. Without rows. O(chain + its needs)
std::vector<Wait> waitsBehind(const Timeline &timeline, const TimelineDependencies &dependencies,
    std::int32_t span, std::int64_t begin);

/// The span that ends last; -1 without spans. O(spans)
std::int32_t lastSpan(const Timeline &timeline);

/// Why a device computes nothing at some time.
struct Bubble {
    std::int64_t begin = 0; ///< Nanoseconds: the end of the span before, or the step's begin.
    std::int64_t end = 0; ///< The start of the span behind, or the step's end.
    DeviceId device{};
    std::int32_t behind = -1; ///< The span of the device behind the bubble; -1 at its end.
    /// From the span behind the bubble (or, at its end, the last of the step) back to one that ran when it
    /// began.
    std::vector<Wait> waits{};
    /// A later span of the device that could have run at that time, but for the order of its queue; -1 if
    /// none could.
    std::int32_t heldBack = -1;
    RowId heldBackRow{}; ///< The row that holds it back; invalid if the schedule does.
};

/// The bubble of the compute queue of `device` at `time`, with its chain of waits but without rows and what
/// is held back: cheap enough for a pointer that moves.
/// @return as `whyIdle`. O(log spans + chain), at the end of the step O(spans)
std::optional<Bubble> bubbleAt(
    const Timeline &timeline, const TimelineDependencies &dependencies, DeviceId device, Nanoseconds time);

/// The bubble of the compute queue of `device` at `time`, and its cause.
/// @param plan  names the rows; null leaves them out
/// @return nothing if the device computes at that time, or either is out of range
/// O(log spans + chain + spans of the device behind the bubble)
std::optional<Bubble> whyIdle(const ExecutionPlan &execution, const Plan *plan, const Timeline &timeline,
    const TimelineDependencies &dependencies, DeviceId device, Nanoseconds time);

} // namespace planloom
