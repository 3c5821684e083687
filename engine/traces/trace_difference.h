#pragma once

#include "engine/traces/trace.h"
#include "engine/traces/trace_analysis.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// How two traces differ in events of one kind, or of one kind and name.
struct NameDifference {
    std::string name{}; ///< Empty: all of the kind.
    TraceKind kind{};
    std::int64_t countA = 0;
    std::int64_t countB = 0;
    double a = 0; ///< Seconds, of all events together; of a step and rank (`TraceDifference`).
    double b = 0;
    double delta() const { return b - a; }
    friend bool operator==(const NameDifference &, const NameDifference &) = default;
};

/// One event of both: the n-th of its name on a rank in one, and the n-th in the other.
struct EventDifference {
    std::string name{};
    TraceKind kind{};
    std::int32_t rankA = 0;
    std::int32_t rankB = 0;
    std::int64_t ordinal = 0; ///< Of its name, from 0.
    std::int64_t a = 0; ///< Nanoseconds.
    std::int64_t b = 0;
    friend bool operator==(const EventDifference &, const EventDifference &) = default;
};

/// Two traces, or two ranks of one, against each other. Times by kind and name are those of one step on one
/// rank where both have steps, so that traces of different lengths can be compared; else of one rank.
struct TraceDifference {
    bool isPerStep = false;
    std::vector<NameDifference> kinds{}; ///< By how far they are apart, the furthest first.
    std::vector<NameDifference> names{}; ///< The same.
    std::vector<EventDifference> events{}; ///< Single events that are furthest apart.
    std::int64_t aligned = 0; ///< Events that have a counterpart,
    std::int64_t onlyA = 0; ///< and that have none.
    std::int64_t onlyB = 0;
};

/// Aligns events by name and order within a rank, as plans' operators of one name are; the i-th of `a` is
/// held against the i-th of `b`. O(events log events)
/// @param most  how many single events are wanted
TraceDifference differenceOf(
    const std::vector<const RankTrace *> &a, const std::vector<const RankTrace *> &b, std::size_t most = 10);

} // namespace planloom
