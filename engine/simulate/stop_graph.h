#pragma once

#include "engine/simulate/compiled_program.h"
#include "engine/simulate/meetings.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// A meeting of one step.
struct PlannedMeeting {
    std::int32_t place = 0; ///< Channel class.
    std::int32_t missing = 0; ///< Ends that have yet to come.
    std::int64_t duration = 0; ///< Alone.
    std::int64_t latency = 0; ///< Of that, when no link is used.
    std::int32_t load = -1;
};

/// What must wait for something else than the instruction before it in its queue, and how long that takes.
///
/// A stop is an instruction that communicates, or that waits for another queue: all other instructions of a
/// queue follow one another without a gap, so a queue of thousands is a few stops and the time between them.
///
///     compute   [a][b][c]  [d][e]     stops: a, d (waits for the all-reduce)
///     tensor             [AR]         stop:  AR (waits for c: a's start + the durations of a, b, c)
///
/// The time of a stop is when it starts, or, if it communicates, when the meeting is over.
struct StopGraph {
    /// `to` starts no sooner than `offset` after the time of the stop that the edge belongs to.
    struct Edge {
        std::int32_t to = 0;
        std::int64_t offset = 0;
    };
    std::vector<std::int32_t>
        meeting{}; ///< By stop: index into `meetings`; -1 for what one device does alone.
    std::vector<std::int32_t> needs{}; ///< By stop: how many edges lead to it.
    std::vector<std::int32_t> edgeBegin{}; ///< By stop, and one more.
    std::vector<Edge> edges{};
    std::vector<PlannedMeeting> meetings{};
    std::vector<std::vector<std::int32_t>> meetingsAt{}; ///< By point (`MeetingPlace`), in order.

    std::size_t size() const { return meeting.size(); }
};

/// @return nothing where a program reads what is not there (`runPrograms` says so)
/// O(instructions of the unrolled schedules)
std::optional<StopGraph> findStops(
    const std::vector<CompiledProgram> &programs, const MeetingPlaces &places, std::int32_t microBatches);

} // namespace planloom
