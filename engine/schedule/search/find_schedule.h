#pragma once

#include "engine/schedule/search/makespan_search.h"
#include "engine/schedule/search/period_search.h"
#include "engine/schedule/search/placement.h"
#include "engine/schedule/search/unit_search.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

namespace planloom {

/// How good a schedule is known to be.
enum class ScheduleStatus : std::uint8_t {
    Optimal, ///< Proven to be the best.
    Feasible, ///< Valid; a better one may exist, within the bound.
    Infeasible, ///< Proven that there is none.
    Unknown, ///< The time was over before there was one.
};
const char *nameOf(ScheduleStatus status); ///< "optimal", "feasible", "infeasible", "unknown"

struct ScheduleAnswer;

struct ScheduleRequest {
    /// How many are to be scheduled; nothing leaves it to the steady state: twice as many as it holds at
    /// once, so that it is seen, and without a search for the best schedule of so many.
    std::optional<std::int32_t> microBatches{};
    double seconds = 5; ///< For all of it.
    std::stop_token stop{};
    /// Called on the calling thread whenever more is known, before the answer is there; may be empty.
    std::function<void(const ScheduleAnswer &)> report{};
};

struct ScheduleAnswer {
    /// Of the period; of the makespan where there is no steady state.
    ScheduleStatus status = ScheduleStatus::Unknown;
    PeriodAnswer period{}; ///< Of schedules that repeat with every micro-batch.
    std::optional<RepeatingUnit> unit{}; ///< Several micro-batches that take less each, if any were found.
    std::int32_t microBatches = 0;
    MakespanAnswer makespan{}; ///< Of so many.
    ScheduleFigures figures{}; ///< Of its schedule, with its options, where there is one.
    double periodSeconds = 0; ///< Until the period was found, and proven where it is.
    double seconds = 0; ///< In all.
};

/// The best schedule of a placement: the shortest period first, which decides the makespan of many
/// micro-batches; then the shortest makespan of the micro-batches asked for; then the least peak memory over
/// all devices, then the fewest micro-batches in flight, as far as a short search finds them. What is decided
/// on options may differ between the period and the makespan; the bounds of both hold for every choice.
/// Indices of blocks are those of the placement `withOptions`.
/// @return InvalidInput for a placement that `validate` refuses, or no micro-batches; Cancelled
Result<ScheduleAnswer> findSchedule(const Placement &placement, const ScheduleRequest &request);

} // namespace planloom
