#pragma once

#include "engine/traces/trace.h"

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace planloom {

/// Bounds of what a trace may say, which keep every sum of times within 64 bits. A rank's events begin within
/// 11 days, and take no more than 11 days together.
constexpr std::int64_t kMostTraceTime = 2'000'000'000'000'000'000; ///< Nanoseconds since any epoch: 63 years.
constexpr std::int64_t kMostTraceExtent = 1'000'000'000'000'000; ///< Nanoseconds.
constexpr std::int64_t kMostTraceBytes = std::int64_t{1} << 40; ///< Of a collective.
constexpr std::size_t kMostTraceLanes = 4096; ///< Of a rank.
constexpr std::size_t kMostTraceName = 4096; ///< Bytes of a name; what is longer is cut.

/// Puts the events of one rank together as a reader finds them. Not thread-safe.
class RankTraceBuilder
{
public:
    /// @param file  named by remarks
    explicit RankTraceBuilder(std::string file);

    std::uint32_t name(std::string_view text);
    /// A lane by its name, which is made where there is none yet; kNoLink beyond `kMostTraceLanes`.
    std::uint32_t lane(const std::string &name, bool isHost);
    std::uint32_t group(const TraceGroup &group);
    std::uint32_t collective(const TraceCollective &collective);
    std::uint32_t instruction(const TraceInstruction &instruction);

    /// Takes an event, or remarks at `place` (a byte, a row) why it can't be one.
    void add(const TraceEvent &event, std::uint64_t place);
    /// One more of what was not read for this reason.
    void remark(const std::string &text, std::uint64_t place);

    std::size_t eventCount() const { return m_trace.events.size(); }
    RankTrace &trace() { return m_trace; }

    /// All that was taken, sorted. O(events log events)
    RankTrace finish() &&;

private:
    RankTrace m_trace;
    std::deque<std::string> m_texts; ///< Stable places for the keys of m_names.
    std::unordered_map<std::string_view, std::uint32_t> m_names;
    std::map<std::string, std::uint32_t, std::less<>> m_lanes;
    std::map<std::string, std::uint32_t, std::less<>> m_groups;
    std::map<std::string, std::size_t, std::less<>> m_remarks;
    std::int64_t m_first = 0; ///< Start of the first event that was taken.
    std::int64_t m_total = 0; ///< Nanoseconds of all.
};

/// Why an event can't be one: null if it can.
/// @param first  start of the first event of its rank, or its own
/// @param total  nanoseconds of those before it
const char *refusalOf(const TraceEvent &event, std::int64_t first, std::int64_t total);

/// By lane, start and, the longest first, duration; makes `laneBegin`. O(events log events)
void sortEvents(RankTrace &trace);
/// Makes `laneBegin` of events in order. O(events)
void markLanes(RankTrace &trace);

} // namespace planloom
