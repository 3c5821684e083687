#pragma once

#include "engine/design/make_plan.h"
#include "engine/design/schedules/stage_layout.h"
#include "engine/schedule/search/find_schedule.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// The request with this schedule in place of those that rows of its gallery plan and of its table give: rows
/// of its table alone. Where the schedule is not for the stages as they lie, they are laid out anew
/// (stage_layout.h). A request without any rows gets those of a pipeline over all devices for a schedule that
/// the search does not know.
/// @return what is wrong with the gallery's rows; Cancelled if stopped
Result<PlanRequest> withSchedule(
    PlanRequest request, const ScheduleRule &rule, const std::stop_token &stop = {});

/// A schedule that was tried on a plan.
struct TriedSchedule {
    std::string name{}; ///< "1f1b", or "best" for one that was searched.
    ScheduleRule rule{};
    StageShape shape = StageShape::AsTheyAre; ///< Of the stages that it is for.
    std::vector<Row> stageRows{}; ///< That lay them out so; empty: they stay as they are.
    std::vector<Row> memoryRows{}; ///< That it needs beside the others; see `chooseSchedule`.
    double stepSeconds = 0; ///< Simulated; 0 where there is no plan.
    double bubble = 0;
    Bytes peak{}; ///< Of one device.
    std::int32_t inFlight = 0; ///< The most micro-batches that a stage holds on a device.
    bool fits = false; ///< Into the devices' memory, and into the limits of rows.
    std::optional<Error> problem{}; ///< Why there is no plan.
};

/// A search for the best schedule of a plan's blocks, as they take in its simulation.
struct ScheduleSearch : ScheduleAnswer {
    bool splits = false; ///< Gradients of weights are blocks of their own.
    StageShape shape = StageShape::AsTheyAre; ///< Of the stages whose blocks they are.
    std::string proof{}; ///< See `proofOf`.

    /// No schedule of these blocks, updates and what is left of reductions among them, makes a step that is
    /// shorter, in nanoseconds.
    std::int64_t stepBound() const { return makespan.bound; }
};

struct ScheduleChoice {
    PlanAnswerSnapshot
        best{}; ///< The shortest simulated step that fits, or of all where none does; never null at the end.
    std::string bestName{}; ///< As in `tried`.
    std::vector<TriedSchedule> tried{}; ///< By step, those that fit first, those without a plan last.
    /// With whole backward passes, then with split ones; then those of stages in other shapes.
    std::vector<ScheduleSearch> searches{};
    /// Rows of the request's table, that of its gallery plan before it, that the searches did not look at:
    /// they hold for a single micro-batch, or pair blocks. Schedules are bent to them afterwards.
    std::vector<RowId> bentTo{};
};

/// What a search for a schedule takes at most, if nobody says otherwise: with templates that are played
/// behind it, for 16 stages and 64 micro-batches, less than a second.
constexpr double kScheduleSeconds = 0.6;

/// How schedules are tried.
struct ScheduleTrial {
    double seconds = kScheduleSeconds; ///< For each search; 0 tries those with a name alone.
    bool spans = false; ///< Answers have timelines.
    /// Called on the calling thread whenever more is known: with the answer for the schedule that was tried
    /// last, at the end of `tried`, or with null while one is searched. May be empty.
    std::function<void(const ScheduleChoice &, const PlanAnswerSnapshot &)> report{};
};

/// Plans with every named schedule that fits the stages, as they lie or laid out anew, and with the best
/// schedules that a search finds for their blocks' durations and memory: the one with the shortest simulated
/// step. All else is as the request has it; schedule rows of its table give way to the chosen one, which is a
/// row in `best`, and so do those that lay stages out where it needs them otherwise. Where a schedule does
/// not fit the devices and rows leave open what is recomputed or offloaded, searches choose that, too, stage
/// by stage. Rows that order blocks or limit what is in flight are kept by all of them, those for all
/// micro-batches as dependencies of the searches.
/// @return what keeps the request from being planned with any schedule; Cancelled if stopped
Result<ScheduleChoice> chooseSchedule(
    const PlanRequest &request, const ScheduleTrial &trial, const std::stop_token &stop = {});

} // namespace planloom
