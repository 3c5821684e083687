#pragma once

#include "engine/simulate/timeline.h"
#include "engine/traces/trace.h"

#include <array>
#include <cstdint>
#include <vector>

namespace planloom {

/// Why a rank computes nothing, as far as traces show it. Each moment has one reason.
enum class TraceIdle : std::uint8_t {
    LatePeer, ///< It is in a collective that another rank has not come to yet.
    Communication, ///< It communicates, and all who take part are there.
    Host, ///< Nothing runs, and the host has not launched yet what runs next. Without a device: no operator
          ///< runs.
    Other, ///< Nothing runs although it was launched: it waits for another stream, or the trace does not say.
};
constexpr std::size_t kTraceIdleCount = 4;
const char *nameOf(TraceIdle reason); ///< "late peer"
const char *sentenceOf(TraceIdle reason); ///< "waits for a rank that comes later"

/// A training step of a rank, as the program marked it.
struct TraceStep {
    std::uint32_t number = 0;
    std::int64_t begin = 0; ///< Nanoseconds, on the rank's clock.
    std::int64_t end = 0;
    friend bool operator==(const TraceStep &, const TraceStep &) = default;
};

/// Where the time of a rank goes between its first step's begin and its last one's end; without steps, in the
/// whole trace. All in nanoseconds. compute + the idle parts = window.
struct RankTimes {
    std::int64_t begin = 0;
    std::int64_t window = 0;
    std::int64_t compute = 0; ///< Something is computed, or copied beside that in the same stream.
    std::int64_t exposed =
        0; ///< Communication, or copies in streams of their own, while nothing is computed.
    std::int64_t hidden = 0; ///< The same while something is computed.
    std::array<std::int64_t, kTraceIdleCount> idle{}; ///< By TraceIdle; the first two make up `exposed`.
    std::int64_t madeWait =
        0; ///< What others waited for it in collectives that it came last to, summed over them.
    std::int64_t cameLast = 0; ///< To how many.
    std::vector<TraceStep> steps{}; ///< In order; one of each number.

    std::int64_t operator[](TraceIdle reason) const { return idle[static_cast<std::size_t>(reason)]; }
    friend bool operator==(const RankTimes &, const RankTimes &) = default;
};

/// The steps of a rank by their begin; of one number the longest. O(events)
std::vector<TraceStep> stepsIn(const RankTrace &rank);

/// @param waits  stretches in which the rank is in a collective and somebody else is not, on its own clock
/// O(events log events). Thread-safe.
RankTimes timesOf(const RankTrace &rank, std::vector<Stretch> waits);

} // namespace planloom
