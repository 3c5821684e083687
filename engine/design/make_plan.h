#pragma once

#include "engine/analyse/copied_work.h"
#include "engine/base/result.h"
#include "engine/design/models/opened_model.h"
#include "engine/design/models/target.h"
#include "engine/gesture/conflicts.h"
#include "engine/gesture/gesture.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/order/sequence.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/plan/complete.h"
#include "engine/plan/plan.h"
#include "engine/search/solver.h"
#include "engine/simulate/summary.h"
#include "engine/simulate/timeline.h"
#include "engine/table/table_document.h"
#include "engine/verify/verify.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

struct KnownPrograms;

/// How far an answer is.
enum class PlanGrade : std::uint8_t {
    Checked, ///< Rows are read and bound.
    Planned, ///< Every operator has its decision.
    Lowered, ///< There is an execution plan. Reported only where no more is asked for.
    Timed, ///< Step time, peaks and traffic are known: see `summary`. Limits are held against them.
    Simulated, ///< There is a timeline with its spans.
    Verified, ///< Proven, or refuted: see `verdict`.
};

class SolvedStore;
struct PlanAnswer;

/// What to plan: a snapshot of everything a plan follows from.
struct PlanRequest {
    std::uint64_t revision = 0; ///< Given back in every answer.
    ModelSnapshot model{}; ///< Not null.
    TableDocument table{};
    /// If not empty, its rows come before those of `table` ("3d:dp=2,tp=2,pp=2"); what they leave to the
    /// solver is searched.
    std::string gallery{};
    TargetChoice target{};
    /// What the rows leave open is searched for the best (engine/search), where they leave something open
    /// that the search decides (`nothingToSearch`); else the default rule decides it.
    bool search = false;
    std::shared_ptr<SearchMemory> memory{}; ///< Of earlier searches of the model; may be null.
    std::function<void(const SearchResult &)> onBetter{}; ///< As `SearchOptions::onBetter`; may be empty.
    /// A live solver answers plans that the search finds on its way, too (better_plans.h), one in this time
    /// at most; 0: it tells of them alone.
    std::chrono::milliseconds betterEvery{0};
    /// Rows that a live solver plans beside the search, as they are: with what a search before it chose, they
    /// are shown until this one has an answer. Nothing: none are planned.
    std::optional<TableDocument> meanwhile{};
    std::int32_t searchThreads = 1; ///< As `SearchOptions::threads`.
    std::stop_token enough{}; ///< Requested: the search ends with the best plan it has; the request goes on.
    /// What searches found before, also in other programs; may be null. Where it knows the answer nothing is
    /// searched, and a table that holds the rows of a search has `PlanAnswer::search` without one.
    std::shared_ptr<SolvedStore> solved{};
    PlanGrade upTo =
        PlanGrade::Verified; ///< The last grade: previews need no proof, the command line no spans.
    /// Rows that cannot hold together are looked into (explain.h), for seconds if need be: minimal sets of
    /// them, ways out, and what these would give. Each is reported as it comes. Else they are pairs that
    /// meet.
    bool explains = false;
    /// A gallery plan that cuts the batch over an axis is a plan although over `kMostCopies` of the computing
    /// is the same on all replicas.
    bool allowsCopies = false;
    bool needsTraining =
        false; ///< A model whose training step cannot be made is an error: see `requireTrainingStep`.
    /// An earlier answer for the same model, rows and target, to go on from where it has a plan; may be null.
    std::shared_ptr<const PlanAnswer> begin{};
    /// An earlier answer, for whatever rows; may be null. Where the new plan differs from its plan in the
    /// order alone, the first half of lowering is taken over from it.
    std::shared_ptr<const PlanAnswer> last{};
};

/// What is known of one row.
struct RowLine {
    RowId row{}; ///< In `PlanAnswer::table`, switched-off rows counted.
    std::int32_t line = 0; ///< 0-based, in the document.
    std::string text{}; ///< The row without its note, as printed.
    RowReport
        report{}; ///< `bound` of a row that is off is what it would act on if it were on; -1 if not counted.
    std::string remark{}; ///< What a limit that holds was measured at: "peak 31.0 GiB of 40.0 GiB"; empty for
                          ///< other rows.
    friend bool operator==(const RowLine &, const RowLine &) = default;
};

/// A row that does not do all it says.
struct RowWarning {
    RowId row{};
    std::string sentence{};
    friend bool operator==(const RowWarning &, const RowWarning &) = default;
};

/// One answer. Later ones hold all that earlier ones did.
struct PlanAnswer {
    std::uint64_t revision = 0;
    PlanGrade grade = PlanGrade::Checked;
    bool final = false; ///< No better answer follows.
    ModelSnapshot model{};
    /// As requested, behind the gallery's rows and before the search's, which begin at `searchedRow`.
    TableDocument table{};
    std::int32_t searchedRow = -1; ///< Row of `table`; -1 where nothing was searched.
    std::shared_ptr<const SearchResult> search{}; ///< Null where nothing was.
    /// Why nothing was, though it was asked for. Where the rows leave no plan that keeps to their degrees,
    /// they are in conflict, and there is none: the default would break them.
    std::optional<Error> searchProblem{};
    std::vector<RowLine> rows{}; ///< By row of `table`.
    std::vector<Error> textErrors{}; ///< Lines that are no rows; `where` is "line:LINE:COLUMN", from 1.
    std::vector<RowConflict> conflicts{}; ///< Rows that can't hold together, with ways out.
    /// Preferences that do not hold, rows that bind to nothing, in the order of rows; then in-flight rows
    /// that could not be kept. Also in the reports of `rows`.
    std::vector<RowWarning> warnings{};
    std::optional<Error> error{}; ///< Why there is no plan, apart from errors of rows.
    Cluster cluster{};
    std::int32_t deviceCount = 0; ///< Of `cluster`'s, those that the plan is for.
    std::shared_ptr<const Plan> plan{}; ///< From `PlanGrade::Planned` on.
    /// From `PlanGrade::Lowered` on, and with where it comes from: see remembered.h.
    std::shared_ptr<const ExecutionPlan> execution{};
    /// With `execution`, where it was lowered here: what it was sequenced from.
    std::shared_ptr<const MaterializedPlan> materialized{};
    /// From `PlanGrade::Timed` on: what later answers with the same programs need not find out again.
    std::shared_ptr<const KnownPrograms> programs{};
    double solveSeconds = 0; ///< From the request to the execution plan.
    TimelineSummary summary{}; ///< From `PlanGrade::Timed` on.
    CopiedWork copied{}; ///< From `PlanGrade::Timed` on: what replicas compute alike.
    TimelineSnapshot timeline{}; ///< From `PlanGrade::Simulated` on.
    std::vector<std::int64_t>
        operatorNanoseconds{}; ///< With `timeline`, by operator: compute time of all devices in one step.
    std::optional<VerifyReport> verdict{};

    bool isTimed() const { return grade >= PlanGrade::Timed; }
    /// Lines and rows that keep the table from being carried out.
    std::size_t errorCount() const;
    /// Of these, limits that the plan breaks: there is a plan, and all other rows hold.
    std::size_t brokenLimitCount() const;
    /// The first reason why there is no plan, or why it does not hold: lines, then `error`, then rows; limits
    /// included.
    std::optional<Error> firstError() const;
};
using PlanAnswerSnapshot = std::shared_ptr<const PlanAnswer>;

/// From a request to a plan: the one way there. Completes, lowers, simulates and verifies as far as
/// `request.upTo`, and reports an answer at every grade; the last report is final, unless `stop` is
/// requested. What fails is part of the answer, never lost: `PlanAnswer::error`, or the reports of rows.
///
/// Rows are bound anew each time; what follows from the model alone was worked out by `openModel`.
/// @param report  called on the calling thread; its argument lives as long as the call
/// O(rows x operators + instructions). Thread-safe.
void makePlan(const PlanRequest &request, const std::stop_token &stop,
    const std::function<void(const PlanAnswer &)> &report);

/// The last answer, whatever it says. @return Cancelled if stopped
Result<PlanAnswerSnapshot> answerOf(const PlanRequest &request, const std::stop_token &stop = {});

/// The last answer, for those who wait for it anyway.
/// @return `PlanAnswer::firstError`; Cancelled if stopped
Result<PlanAnswerSnapshot> planOf(const PlanRequest &request, const std::stop_token &stop = {});

/// What gestures and conflicts act on, without a plan: `plan` and `cluster` are left to the caller. The mesh
/// is that of the first row that gives one and is on, as for the plan.
GestureContext gestureContextOf(const Model &model, const TableDocument &table, std::int32_t deviceCount);

} // namespace planloom
