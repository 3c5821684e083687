#pragma once

#include "engine/design/make_plan.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What a step is short of.
struct StepLimits {
    bool memory = false; ///< The plan does not fit its devices.
    std::int64_t peakBytes = 0; ///< Of the fullest device, for its memory.
    std::int64_t memoryBytes = 0;
    /// Shares of the step, of all devices together: computing, waiting for communication, and idle for
    /// anything else.
    double computing = 0;
    double communication = 0;
    double idle = 0;
};
/// @param answer  timed
StepLimits limitsOf(const PlanAnswer &answer);
/// "device 3 needs 92.1 GiB of 80.0 GiB" or "61% of the step is computing, 25% waiting for communication,
/// ..."
std::string wordsOf(const StepLimits &limits);

/// A row that would make a plan faster or smaller, as simulated.
struct HelpfulRow {
    std::string row{}; ///< As printed.
    TableEdit edit{}; ///< Of the answer's table: adds it, and takes out what the search chose in its place.
    double stepSeconds = 0; ///< With it.
    std::int64_t peakBytes = 0;
    bool fits = false;
};

/// Rows of the kinds that no row of a person's decides, each tried beside all others of `answer`:
/// recomputation, sharding of updates, offloading, micro-batches, schedules, overlap. Those that help, best
/// first: where the plan does not fit, those that make it fit and then those that need less; else those that
/// are faster and fit.
/// @param request  of the answer; @param answer  timed
/// @return Cancelled if stopped
/// One simulation for each of about a dozen, until `mostSeconds` are over.
Result<std::vector<HelpfulRow>> helpfulRows(const PlanRequest &request, const PlanAnswer &answer,
    double mostSeconds, const std::stop_token &stop = {});

/// Whether a plan breaks a limit, or needs more memory than its devices have, and nothing else is wrong with
/// it.
/// @param answer  false if it is not timed
bool exceedsLimits(const PlanAnswer &answer);

/// Ways out for a plan that `exceedsLimits`: the rows of `helpfulRows`, and others in the place of rows that
/// say a number or a schedule (twice the micro-batches). Those that end it first, the fastest of them first;
/// then those that come nearer, the nearest first, which say what is still too much.
/// @param request  of the answer
/// @return Cancelled if stopped
/// As `helpfulRows`.
Result<std::vector<RowWayOut>> waysWithinLimits(const PlanRequest &request, const PlanAnswer &answer,
    double mostSeconds, const std::stop_token &stop = {});

/// A row that keeps one choice of the best plan found, and how many configurations it leaves to a search.
struct ShrinkingRow {
    std::string row{};
    std::int64_t left = 0;
    std::int64_t of = 0;
};

/// Rows that would leave a search the least, the least first: each keeps what `answer`'s search found, so
/// that its plan is still there. Empty where nothing was searched. O(configurations x rows).
std::vector<ShrinkingRow> shrinkingRows(const PlanAnswer &answer);

} // namespace planloom
