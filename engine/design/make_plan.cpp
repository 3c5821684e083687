#include "engine/design/make_plan.h"

#include "engine/analyse/limits.h"
#include "engine/analyse/statistics.h"
#include "engine/base/background_disposal.h"
#include "engine/conflict/order_cycle.h"
#include "engine/design/explain/explain.h"
#include "engine/design/gallery_folder.h"
#include "engine/design/remembered.h"
#include "engine/design/solved_store.h"
#include "engine/gallery/gallery.h"
#include "engine/lowering/lower.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/plan/plan_degrees.h"
#include "engine/search/space_probe.h"
#include "engine/search/steps_seen.h"
#include "engine/simulate/simulate.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

/// True for rows that cut the batch over an axis of several devices.
bool hasReplicas(const ConstraintTable &table)
{
    std::vector<MeshAxis> mesh;
    for (const Row &row : table.rows)
        if (const auto *rule = std::get_if<MeshRule>(&row.rule))
            mesh = rule->axes;
    return std::any_of(table.rows.begin(), table.rows.end(), [&](const Row &row) {
        const auto *rule = std::get_if<OpTransRule>(&row.rule);
        return rule != nullptr
            && std::any_of(rule->steps.begin(), rule->steps.end(), [&](const SplitStep &step) {
                   const MeshAxis *axis = findAxis(mesh, step.axis);
                   return isBatch(step) && axis != nullptr && axis->size > 1;
               });
    });
}

/// Operators that rows that are off are bound to, one by one; further such rows are not counted: a plan is
/// waited for.
constexpr std::int64_t kMostLookedAt = 2'000'000;
/// How long plans are simulated for the search's answer, on up to 8 devices, and on more.
constexpr double kSecondsForFew = 1.5;
constexpr double kSecondsForMany = 5;

/// Takes an answer from grade to grade.
class Planner
{
public:
    Planner(const PlanRequest &request, const std::stop_token &stop,
        const std::function<void(const PlanAnswer &)> &report)
        : m_request(request)
        , m_stop(stop)
        , m_report(report)
    {
        m_answer.revision = request.revision;
        m_answer.model = request.model;
        m_answer.table = request.table;
    }

    void run()
    {
        if (auto done = work(); !done && done.error().code != ErrorCode::Cancelled) {
            m_answer.error = std::move(done).error();
            finish(m_answer.grade);
        }
    }

    /// What was remembered of a search did not hold: it is forgotten, and there is no answer.
    bool forgetsOutdated() const
    {
        if (m_outdated)
            m_request.solved->forget(m_key);
        return m_outdated;
    }

private:
    Result<void> work()
    {
        const auto start = std::chrono::steady_clock::now();
        if (m_request.begin && m_request.begin->plan) {
            m_answer = *m_request.begin;
            m_answer.revision = m_request.revision;
            m_answer.final = false;
            m_costs = costModelOf(m_answer.cluster);
            return carryOut(start);
        }
        if (m_request.model->planProblem)
            return *m_request.model->planProblem;
        if (m_request.needsTraining)
            TRY_VOID(requireTrainingStep(*m_request.model));
        TRY(Target target, resolve(m_request.target));
        m_answer.cluster = std::move(target.cluster);
        m_costs = costModelOf(m_answer.cluster);
        m_answer.deviceCount = target.deviceCount;
        TRY_VOID(addGallery());
        TRY_VOID(search());
        TRY(const bool holds, complete());
        if (holds)
            return carryOut(start);
        finish(m_answer.grade);
        return {};
    }

    /// From the plan to what was asked for, by way of what is not there yet.
    Result<void> carryOut(std::chrono::steady_clock::time_point start)
    {
        if (m_request.upTo > PlanGrade::Planned && !m_answer.execution) {
            TRY_VOID(lowerPlan());
            const auto now = std::chrono::steady_clock::now();
            m_answer.solveSeconds += std::chrono::duration<double>(now - start).count();
        }
        if (m_request.upTo > PlanGrade::Lowered && !m_answer.timeline)
            TRY_VOID(time());
        if (m_request.upTo > PlanGrade::Simulated) {
            TRY(m_answer.verdict, verify(*m_answer.execution, m_stop));
            m_answer.grade = PlanGrade::Verified;
        }
        if (m_request.explains && isSearched() && m_answer.isTimed() && !m_answer.conflicts.empty()) {
            publish(m_answer.grade);
            std::vector<RowConflict> conflicts = m_answer.conflicts;
            TRY_VOID(searchWithoutLimits(m_request, m_answer, conflicts, m_stop));
            m_answer.conflicts = std::move(conflicts);
        }
        finish(m_answer.grade);
        return {};
    }

    Result<void> addGallery()
    {
        if (m_request.gallery.empty())
            return {};
        TRY(const GalleryPlan plan,
            galleryPlan(m_request.gallery, findGallery(), *m_request.model, m_answer.deviceCount, m_costs,
                usualPrecision(m_answer.cluster)));
        if (m_answer.table.lineCount() == 0)
            m_answer.table = TableDocument(print(plan.table));
        else
            TRY_VOID(m_answer.table.apply(insertText(m_answer.table, 0, print(plan.table))));
        m_solvesGallery = !plan.solved.empty();
        m_hasReplicas = hasReplicas(plan.table);
        return {};
    }

    bool isSearched() const { return m_request.search || m_solvesGallery; }

    /// Lets the search decide what the rows leave open, and what it chose before. Rows that do not hold are
    /// told of by `complete`.
    Result<void> search()
    {
        const bool searches = isSearched();
        if (!(searches || m_request.solved) || !m_answer.table.errors().empty())
            return {};
        std::vector<std::int32_t> chosen; // lines
        ConstraintTable before; // what they hold
        for (std::int32_t line = 0; line < m_answer.table.lineCount(); ++line)
            if (const auto &row = m_answer.table.lines()[static_cast<std::size_t>(line)]->row;
                row && row->origin == RowOrigin::Solver) {
                chosen.push_back(line);
                before.rows.push_back(*row);
            }
        if (!searches && chosen.empty())
            return {};
        TableDocument asked = m_answer.table;
        if (!chosen.empty())
            TRY_VOID(asked.apply(removeLines(asked, chosen)));
        const ConstraintTable rows = asked.table();
        const PrecisionPreset precision = usualPrecision(m_answer.cluster);
        if (m_request.solved)
            m_key = m_request.solved->keyOf(
                *m_request.model, m_answer.cluster, m_answer.deviceCount, precision, rows);
        std::optional<SearchResult> known = m_request.solved ? m_request.solved->find(m_key) : std::nullopt;
        m_isRemembered = known.has_value();
        if (!searches) { // the rows of a search that was made before: how good they are is known
            if (known && print(known->rows) == print(before))
                m_answer.search = std::make_shared<const SearchResult>(*std::move(known));
            return {};
        }
        if (auto nothing = nothingToSearch(*m_request.model, rows)) {
            m_answer.searchProblem =
                Error{ErrorCode::InvalidInput, "there is nothing to search: " + *std::move(nothing),
                    "switch off what decides it, or go on by hand", {}};
            return {};
        }
        if (known) {
            if (m_request.onBetter)
                m_request.onBetter(*known);
        } else {
            TRY(known, searched(rows, precision));
            if (!known)
                return {};
        }
        m_answer.table = std::move(asked);
        m_answer.searchedRow = static_cast<std::int32_t>(rows.rows.size());
        TRY_VOID(
            m_answer.table.apply(insertText(m_answer.table, m_answer.table.lineCount(), print(known->rows))));
        m_figures = std::move(known->figures);
        m_answer.search = std::make_shared<const SearchResult>(*std::move(known));
        return {};
    }

    /// @return nothing, and `PlanAnswer::searchProblem`, where nothing was found
    Result<std::optional<SearchResult>> searched(const ConstraintTable &rows, PrecisionPreset precision)
    {
        // It ends early with the request, or where it is told that it is enough.
        std::stop_source end;
        const std::stop_callback ofRequest(m_stop, [&end] { end.request_stop(); });
        const std::stop_callback ofSearch(m_request.enough, [&end] { end.request_stop(); });
        SearchOptions options;
        options.precision = precision;
        options.memory = m_request.memory;
        options.onBetter = m_request.onBetter;
        options.threads = m_request.searchThreads;
        // Plans of many devices take longer to simulate.
        options.mostSeconds = m_answer.deviceCount > 8 ? kSecondsForMany : kSecondsForFew;
        auto found = searchPlan(*m_request.model, m_answer.cluster, m_answer.deviceCount, rows, m_costs,
            options, end.get_token());
        if (m_stop.stop_requested())
            return cancelled();
        if (found) {
            if (m_request.solved && !end.stop_requested())
                m_request.solved->remember(m_key, *found);
            return std::optional<SearchResult>(*std::move(found));
        }
        m_leavesNoPlan = found.error().code != ErrorCode::Cancelled;
        m_answer.searchProblem = found.error().code == ErrorCode::Cancelled
            ? Error{ErrorCode::Cancelled, "the search was stopped before it had found a plan",
                "the rows stay as they are", {}}
            : std::move(found).error();
        return std::optional<SearchResult>{};
    }

    /// Whether what was remembered is not what comes of it: it was found with other costs.
    bool isOutdated(const TimelineSummary &summary) const
    {
        constexpr double kSameStep = 1e-3;
        const SearchResult *search = m_answer.search.get();
        return m_isRemembered && search
            && std::abs(summary.stepSeconds - search->best.simulatedSeconds)
            > kSameStep * search->best.simulatedSeconds;
    }

    /// @return whether there is a plan
    Result<bool> complete()
    {
        ConstraintTable table = m_answer.table.table();
        m_answer.textErrors = m_answer.table.errors();
        Cluster planned = m_answer.cluster;
        planned.deviceCount = m_answer.deviceCount;
        const CompletionOptions options{.precision = usualPrecision(m_answer.cluster),
            .alike = [&planned](const ScaleUnits &units) { return unitsAlike(planned, units); }};
        TRY(Completion completion, completePlan(*m_request.model, m_answer.deviceCount, table, options));
        if (m_leavesNoPlan && firstError(completion)) { // what a search before chose gives way
            table = rowsWithoutFound(m_answer.table);
            TRY(completion, completePlan(*m_request.model, m_answer.deviceCount, table, options));
        }
        if (completion.plan.graph)
            refuseCycles(completion);
        if (completion.plan.graph && m_leavesNoPlan)
            refuseBrokenDegrees(completion, table);
        const ConstraintTable shown = m_answer.table.table();
        const std::vector<std::int32_t> lines = m_answer.table.rowLines();
        for (std::size_t row = 0; row < table.rows.size(); ++row) {
            m_answer.rows.push_back({RowId{static_cast<std::int32_t>(row)}, lines[row],
                print(shown.rows[row]), completion.rows[row]});
            if (!completion.rows[row].warning.empty())
                m_answer.warnings.push_back({m_answer.rows.back().row, completion.rows[row].warning});
        }
        countRowsOff(table);
        m_outdated = m_isRemembered && m_answer.searchedRow >= 0 && firstError(completion);
        if (m_outdated)
            return cancelled();
        if (m_answer.errorCount() > 0 || !completion.plan.graph) {
            GestureContext context = gestureContextOf(*m_request.model, m_answer.table, m_answer.deviceCount);
            context.cluster = m_answer.cluster;
            m_answer.conflicts = findConflicts(context, completion);
            if (!m_brokenDegrees.empty())
                m_answer.conflicts = {noPlanLeft(m_answer, m_brokenDegrees, *m_answer.searchProblem)};
            if (m_request.explains && firstError(completion))
                TRY_VOID(explain(options));
            return false;
        }
        publish(PlanGrade::Checked);
        m_answer.plan = sharedInBackground(std::move(completion.plan));
        if (m_request.upTo > PlanGrade::Planned)
            publish(PlanGrade::Planned);
        m_answer.grade = PlanGrade::Planned;
        return true;
    }

    /// Orders that run in a circle are refused as other rows are, before lowering finds one of them.
    void refuseCycles(Completion &completion) const
    {
        const Plan &plan = completion.plan;
        const auto cycle = orderCycle(plan, *m_request.model->index, *batchOf(plan));
        for (const RowId row : cycle)
            completion.rows[at(row)].error = orderCycleError(plan, row, cycle.size() > 1);
        if (!cycle.empty())
            completion.plan = {};
    }

    /// The search was to keep to what rows say of degrees, and has no plan with them; nor does what they are
    /// completed to.
    void refuseBrokenDegrees(Completion &completion, const ConstraintTable &table)
    {
        m_brokenDegrees = brokenDegrees(completion.plan, table);
        for (const RowId row : m_brokenDegrees)
            completion.rows[at(row)].error = conflictAt(row, *m_answer.searchProblem);
        if (!m_brokenDegrees.empty())
            completion.plan = {};
    }

    static Error conflictAt(RowId row, const Error &reason)
    {
        return {ErrorCode::Conflict, reason.message, reason.advice, placeOf(row, "rule")};
    }

    /// Marks the rows that leave the search no plan together, in place of those about degrees that their
    /// completion alone would break.
    void markConflicts()
    {
        for (const RowId row : m_brokenDegrees)
            m_answer.rows[at(row)].report.error.reset();
        const ConstraintTable table = m_answer.table.table();
        const auto isDegree = [&](RowId row) {
            return std::holds_alternative<DegreeRule>(table.rows[at(row)].rule);
        };
        for (const RowConflict &conflict : m_answer.conflicts)
            for (const RowId row : conflict.rows)
                if (auto &error = m_answer.rows[at(row)].report.error;
                    !error && std::any_of(conflict.rows.begin(), conflict.rows.end(), isDegree))
                    error = conflictAt(row, conflict.reason);
    }

    /// From rows that meet to minimal sets of rows with ways out, in the order of their use.
    Result<void> explain(const CompletionOptions &options)
    {
        publish(PlanGrade::Checked);
        ExplainOptions explained{.completion = options, .withoutFound = m_leavesNoPlan};
        const SpaceProbe probe(
            *m_request.model, m_answer.cluster, m_answer.deviceCount, m_costs, options.precision);
        if (isSearched() && !nothingToSearch(*m_request.model, rowsWithoutFound(m_answer.table)))
            explained.space = {.holds = [&probe](const ConstraintTable &rows,
                                            const auto &isOver) { return probe.findsPlan(rows, isOver); },
                .valuesOf = [&probe](Degree degree) { return probe.valuesOf(degree); }};
        TRY(m_answer.conflicts, explainConflicts(m_answer, explained, m_stop));
        if (m_leavesNoPlan)
            markConflicts();
        publish(PlanGrade::Checked);
        std::vector<RowConflict> ranked = m_answer.conflicts;
        return rankWaysOut(m_request, m_answer, ranked, m_stop, [&] {
            m_answer.conflicts = ranked;
            publish(PlanGrade::Checked);
        });
    }

    /// What rows that are off would act on, so that they say the same switched on and off.
    void countRowsOff(const ConstraintTable &table)
    {
        const auto isOff = [](const Row &row) { return !row.enabled && hasSelector(row.rule); };
        if (std::none_of(table.rows.begin(), table.rows.end(), isOff))
            return;
        const Model &model = *m_request.model;
        const PlanMeaning plan = planMeaning(model, m_answer.deviceCount, table);
        const RowSetting setting{model, m_answer.deviceCount, plan.mesh};
        const auto operators = static_cast<std::int64_t>(model.graph->operators.size());
        std::int64_t looked = 0;
        for (std::size_t row = 0; row < table.rows.size(); ++row) {
            if (!isOff(table.rows[row]))
                continue;
            looked += operators;
            const bool known = looked <= std::max(kMostLookedAt, operators) && !m_stop.stop_requested();
            m_answer.rows[row].report.bound =
                known ? boundAlone(setting, plan.microBatches, table.rows[row]) : -1;
        }
    }

    Result<void> lowerPlan()
    {
        if (m_stop.stop_requested())
            return cancelled();
        TRY(ExecutionPlan lowered, sequenced());
        lowered.origin = originOf(*m_request.model, m_answer.cluster, m_answer.table.text());
        for (auto &[row, sentence] : liftedLimits(*m_answer.plan, lowered)) {
            m_answer.warnings.push_back({row, sentence});
            m_answer.rows[static_cast<std::size_t>(row.index)].report.warning = std::move(sentence);
        }
        m_answer.execution = sharedInBackground(std::move(lowered));
        m_answer.grade = PlanGrade::Lowered;
        return {};
    }

    /// The execution plan: of the first half of lowering that the last answer had, where it is that of this
    /// plan.
    Result<ExecutionPlan> sequenced()
    {
        if (const SearchResult *found = m_answer.search.get();
            found && found->plan && found->materialized && isSameButForOrder(*found->plan, *m_answer.plan)) {
            TRY(auto again, sequence(*found->materialized, *m_answer.plan));
            if (again) {
                m_answer.materialized = found->materialized;
                m_isSimulated = m_figures && isSameOrder(*found->plan, *m_answer.plan);
                return *std::move(again);
            }
        }
        const PlanAnswer *last = m_request.last.get();
        if (last && last->materialized && last->cluster == m_answer.cluster
            && isSameButForOrder(*last->plan, *m_answer.plan)) {
            TRY(auto again, sequence(*last->materialized, *m_answer.plan));
            if (again) {
                m_answer.materialized = last->materialized;
                return *std::move(again);
            }
        }
        TRY(auto materialized, materialize(*m_answer.plan, m_answer.cluster, m_costs, m_stop));
        m_answer.materialized = sharedInBackground(std::move(materialized));
        return sequenceAsMade(*m_answer.materialized, *m_answer.plan);
    }

    /// Takes down what a simulation came to; spans may follow.
    void takeFigures(const Timeline &figures)
    {
        m_answer.summary = summaryOf(figures);
        m_outdated = isOutdated(m_answer.summary);
        if (m_outdated)
            return;
        m_answer.copied = copiedWork(*m_answer.execution, m_costs);
        holdAgainstCopies();
        holdAgainstLimits(figures);
        if (m_request.upTo > PlanGrade::Timed)
            publish(PlanGrade::Timed);
        m_answer.grade = PlanGrade::Timed;
    }

    Result<void> time()
    {
        SimulateOptions options;
        options.spans = m_request.upTo > PlanGrade::Timed;
        if (m_isSimulated) {
            takeFigures(*m_figures);
            m_figures = nullptr;
            if (!options.spans)
                return {};
        } else {
            options.onFigures = [&](const Timeline &figures) { takeFigures(figures); };
        }
        // Of the same cluster, as the programs are.
        if (const PlanAnswer *last = m_request.last.get();
            last && last->materialized == m_answer.materialized && last->cluster == m_answer.cluster)
            m_answer.programs = last->programs;
        options.programs = &m_answer.programs;
        TRY(Timeline timeline, simulate(*m_answer.execution, m_answer.cluster, m_costs, options, m_stop));
        if (m_outdated)
            return cancelled();
        if (m_request.upTo <= PlanGrade::Timed)
            return {};
        m_answer.operatorNanoseconds = kernelTimesOf(*m_answer.execution, timeline);
        m_answer.timeline = sharedInBackground(std::move(timeline));
        if (m_request.upTo > PlanGrade::Simulated)
            publish(PlanGrade::Simulated);
        m_answer.grade = PlanGrade::Simulated;
        return {};
    }

    /// A gallery plan of replicas that all compute the same is not what was asked for.
    void holdAgainstCopies()
    {
        if (m_answer.copied.share <= kMostCopies || !m_hasReplicas || m_request.allowsCopies)
            return;
        m_answer.error =
            Error{ErrorCode::CheckFailed, copiedWords(m_answer.copied, *m_answer.execution->graph),
                "share the work out in another way, or allow copies", "gallery"};
    }

    /// Limits are rows about the plan's figures: what is broken is an error of its row, what holds is said
    /// beside it.
    void holdAgainstLimits(const Timeline &timeline)
    {
        const ConstraintTable table = m_answer.table.table();
        for (BrokenLimit &broken : brokenLimits(table, timeline)) {
            if (broken.needed > 0)
                m_answer.conflicts.push_back(brokenLimit(m_answer, broken));
            m_answer.rows[at(broken.row)].report.error = std::move(broken.error);
        }
        std::vector<std::string> remarks = limitRemarks(table, timeline);
        for (std::size_t row = 0; row < remarks.size(); ++row)
            m_answer.rows[row].remark = std::move(remarks[row]);
    }

    void publish(PlanGrade grade)
    {
        m_answer.grade = grade;
        if (!m_stop.stop_requested())
            m_report(m_answer);
    }

    void finish(PlanGrade grade)
    {
        m_answer.final = true;
        publish(grade);
    }

    const PlanRequest &m_request;
    const std::stop_token &m_stop;
    const std::function<void(const PlanAnswer &)> &m_report;
    PlanAnswer m_answer;
    CostModel m_costs{}; ///< Of the cluster of the answer.
    bool m_leavesNoPlan = false; ///< The search found none, and was not stopped.
    std::vector<RowId> m_brokenDegrees{}; ///< That there is none with: see `refuseBrokenDegrees`.
    bool m_solvesGallery = false; ///< Its plan leaves something to the search.
    bool m_hasReplicas = false; ///< Its plan cuts the batch over an axis.
    std::string m_key{}; ///< Of the rows in `PlanRequest::solved`.
    bool m_isRemembered = false; ///< What is known of a search comes from there,
    bool m_outdated = false; ///< and is wrong.
    TimelineSnapshot m_figures{}; ///< Of the plan that the search simulated last;
    bool m_isSimulated = false; ///< it is the answer's.
};

} // namespace

std::size_t PlanAnswer::errorCount() const
{
    return textErrors.size()
        + static_cast<std::size_t>(std::count_if(
            rows.begin(), rows.end(), [](const RowLine &row) { return row.report.error.has_value(); }));
}

std::size_t PlanAnswer::brokenLimitCount() const
{
    if (!isTimed())
        return 0;
    return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [](const RowLine &row) {
        return row.report.error && row.report.error->code == ErrorCode::ResourceLimit;
    }));
}

std::optional<Error> PlanAnswer::firstError() const
{
    if (!textErrors.empty())
        return textErrors.front();
    if (error)
        return error;
    const auto failed = std::find_if(
        rows.begin(), rows.end(), [](const RowLine &row) { return row.report.error.has_value(); });
    if (failed != rows.end())
        return failed->report.error;
    return std::nullopt;
}

void makePlan(const PlanRequest &request, const std::stop_token &stop,
    const std::function<void(const PlanAnswer &)> &report)
{
    Planner planner(request, stop, report);
    planner.run();
    if (planner.forgetsOutdated())
        Planner(request, stop, report).run();
}

Result<PlanAnswerSnapshot> answerOf(const PlanRequest &request, const std::stop_token &stop)
{
    PlanAnswerSnapshot last;
    makePlan(request, stop, [&last](const PlanAnswer &answer) {
        if (answer.final)
            last = sharedInBackground(PlanAnswer(answer));
    });
    if (!last)
        return cancelled();
    return last;
}

Result<PlanAnswerSnapshot> planOf(const PlanRequest &request, const std::stop_token &stop)
{
    TRY(PlanAnswerSnapshot last, answerOf(request, stop));
    if (auto error = last->firstError())
        return *std::move(error);
    return last;
}

GestureContext gestureContextOf(const Model &model, const TableDocument &table, std::int32_t deviceCount)
{
    GestureContext context;
    static_cast<RowSetting &>(context) = settingOf(model, deviceCount, table.table());
    context.document = table;
    return context;
}

} // namespace planloom
