#pragma once

#include "engine/design/make_plan.h"
#include "engine/search/schedule/find_schedule.h"
#include "engine/search/schedule/stage_blocks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// The blocks of a plan as a placement: their durations in nanoseconds, transfers on a queue of their own.
/// What a stage holds between its passes is its share of what its devices hold.
/// @param blocks    of a `MaterializedPlan`, with durations that are to be believed
/// @param dataFlow  between them
/// @param held      by device of the plan: bytes of one micro-batch of all stages there; empty: not looked at
/// @param limit     by device: what there is room for beside all else; as long as `held`
StagePlacement placementOfBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dataFlow, const std::vector<std::int64_t> &held,
    const std::vector<std::int64_t> &limit);

/// The request with this schedule in place of those that rows of its gallery plan and of its table give, as a
/// row at the end of the table.
/// @return what is wrong with the gallery's rows; Cancelled if stopped
Result<PlanRequest> withSchedule(
    PlanRequest request, const ScheduleRule &rule, const std::stop_token &stop = {});

/// A schedule that was tried on a plan.
struct TriedSchedule {
    std::string name{}; ///< "1f1b", or "best" for one that was searched.
    double stepSeconds = 0; ///< Simulated; 0 where there is no plan.
    double bubble = 0;
    Bytes peak{}; ///< Of one device.
    bool fits = false; ///< Into the devices' memory, and into the limits of rows.
    std::optional<Error> problem{}; ///< Why there is no plan.
};

struct ScheduleChoice {
    PlanAnswerSnapshot
        best{}; ///< The shortest simulated step that fits, or of all where none does; never null.
    std::vector<TriedSchedule> tried{}; ///< By step, those that fit first, those without a plan last.
    std::vector<ScheduleAnswer> searches{}; ///< With whole backward passes, then with split ones.
};

/// Plans with every named schedule that fits the stages, and with the best schedules that a search finds for
/// their blocks' durations and memory: the one with the shortest simulated step. All else is as the request
/// has it; schedule rows of its table give way to the chosen one, which is a row of its own in `best`.
/// @param seconds  for each search
/// @return what keeps the request from being planned with any schedule; Cancelled if stopped
Result<ScheduleChoice> chooseSchedule(
    const PlanRequest &request, double seconds, const std::stop_token &stop = {});

} // namespace planloom
