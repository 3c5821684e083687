#include "engine/design/explain/suggestions.h"

#include "engine/analyse/limits.h"
#include "engine/base/words.h"
#include "engine/gallery/usual_rows.h"
#include "engine/simulate/link_traffic.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace planloom {

namespace {

/// Less is noise of the model.
constexpr double kLeastGain = 0.005;
constexpr double kLeastSaving = 0.02;
constexpr std::size_t kMostSuggested = 6;

struct CandidateRow {
    std::string text{};
    Rule rule{};
};

/// What the answer's table has: rules of a person, which candidates must not meet, and of the search.
bool isSaid(const ConstraintTable &rows, const Rule &rule, bool bySearch)
{
    return std::any_of(rows.rows.begin(), rows.rows.end(), [&](const Row &row) {
        return row.enabled && row.rule.index() == rule.index()
            && (row.origin == RowOrigin::Solver) == bySearch;
    });
}

std::vector<CandidateRow> candidatesFor(const PlanAnswer &answer)
{
    const Model &model = *answer.model;
    const Plan &plan = *answer.plan;
    std::vector<std::string> texts;
    for (const char *word : {"selective", "full"})
        if (const auto row = recomputeRow(model, word); row && !row->empty())
            texts.push_back(*row);
    for (const char *row : {"zero1 all", "zero2 all", "zero3 all", "offload all : states",
             "offload all : activations", "overlap tensor", "split-backward all"})
        texts.emplace_back(row);
    const std::int32_t cuts = plan.microBatches;
    for (const std::int32_t count : {cuts * 2, cuts * 4, cuts / 2})
        if (count >= 1 && !plan.wholeBatches)
            texts.push_back("micro-batches " + std::to_string(count));
    if (plan.stageCount > 1)
        for (const char *row : {"schedule 1f1b", "schedule gpipe", "schedule zb-h1", "schedule eager-1f1b"})
            texts.emplace_back(row);
    std::vector<CandidateRow> candidates;
    for (std::string &text : texts)
        if (auto row = parseRow(text))
            candidates.push_back({std::move(text), std::move(row->rule)});
    return candidates;
}

/// Whether all of a step's devices have room for what they hold.
bool fitsAll(const PlanAnswer &answer)
{
    const MemoryUse use = memoryUse(answer.summary, answer.cluster, answer.plan->units);
    return use.over == 0 && !answer.firstError();
}

/// A candidate in its place.
struct Tried {
    TableEdit edit{}; ///< Of the answer's table.
    RowId row{}; ///< In whose place it stands; invalid for one that is added.
    PlanAnswerSnapshot answer{}; ///< Timed.
};

/// The table with a candidate: behind its rows, without what the search chose of the kind; or in the place of
/// a person's row of its kind. Nothing where that is not allowed, or there are several.
std::optional<std::pair<TableDocument, RowId>> withCandidate(
    const PlanAnswer &answer, const CandidateRow &candidate, bool replaces)
{
    const ConstraintTable rows = answer.table.table();
    TableDocument with = answer.table;
    const auto own = parseRow(candidate.text);
    if (!own)
        return std::nullopt;
    if (isSaid(rows, candidate.rule, false)) {
        RowId only;
        std::int32_t count = 0;
        for (std::size_t row = 0; row < rows.rows.size(); ++row)
            if (rows.rows[row].enabled && rows.rows[row].rule.index() == candidate.rule.index()) {
                only = RowId{static_cast<std::int32_t>(row)};
                ++count;
            }
        if (!replaces || count != 1 || hasSelector(candidate.rule)
            || !with.apply(replaceRow(with, answer.rows[at(only)].line, *own)))
            return std::nullopt;
        return std::pair{std::move(with), only};
    }
    const std::vector<std::int32_t> lines = answer.table.rowLines();
    std::vector<std::int32_t> chosen;
    for (std::size_t row = 0; row < rows.rows.size(); ++row)
        if (rows.rows[row].enabled && rows.rows[row].origin == RowOrigin::Solver
            && rows.rows[row].rule.index() == candidate.rule.index())
            chosen.push_back(lines[row]);
    if ((!chosen.empty() && !with.apply(removeLines(with, chosen))) || !with.apply(appendRows(with, {*own})))
        return std::nullopt;
    return std::pair{std::move(with), RowId{}};
}

/// Plans every candidate beside the rows of `answer`, and takes those that have a plan.
/// @return Cancelled if stopped
Result<void> tryRows(const PlanRequest &request, const PlanAnswer &answer, bool replaces, double mostSeconds,
    const std::stop_token &stop, const std::function<void(const CandidateRow &, Tried)> &take)
{
    const auto start = std::chrono::steady_clock::now();
    for (const CandidateRow &candidate : candidatesFor(answer)) {
        if (stop.stop_requested())
            return cancelled();
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > mostSeconds)
            break;
        const auto with = withCandidate(answer, candidate, replaces);
        if (!with)
            continue;
        PlanRequest tried = request;
        tried.table = with->first;
        tried.gallery.clear(); // its rows stand in the answer's table
        tried.search = false;
        tried.explains = false;
        tried.onBetter = {};
        tried.begin.reset();
        tried.upTo = PlanGrade::Timed;
        auto outcome = answerOf(tried, stop);
        if (!outcome && outcome.error().code == ErrorCode::Cancelled)
            return outcome.error();
        if (outcome && (*outcome)->isTimed())
            take(candidate, {difference(answer.table, with->first), with->second, *std::move(outcome)});
    }
    return {};
}

/// What a limit is held against; the fullest device's share of its memory without one.
double measureOf(const PlanAnswer &answer, const LimitRule *limit)
{
    if (limit && limit->kind == LimitRule::Kind::Time)
        return answer.summary.stepSeconds;
    if (limit && limit->kind == LimitRule::Kind::Traffic)
        return static_cast<double>(mostCarried(mostSent(answer.summary), answer.summary.links, limit->links)
                                       .value_or(Bytes{})
                                       .count);
    return static_cast<double>(answer.summary.largestPeak.count);
}

} // namespace

StepLimits limitsOf(const PlanAnswer &answer)
{
    StepLimits limits;
    const MemoryUse use = memoryUse(answer.summary, answer.cluster, answer.plan->units);
    limits.memory = use.over > 0;
    limits.peakBytes = use.peak.count;
    limits.memoryBytes = use.memory.count;
    const auto devices = static_cast<double>(std::max<std::size_t>(answer.summary.devices.size(), 1));
    for (const DeviceSummary &device : answer.summary.devices) {
        limits.computing += device.busySeconds / devices;
        limits.communication += device.exposedCommunicationSeconds / devices;
    }
    const double step = std::max(answer.summary.stepSeconds, 1e-12);
    limits.computing /= step;
    limits.communication = std::min(limits.communication / step, 1 - limits.computing);
    limits.idle = std::max(0.0, 1 - limits.computing - limits.communication);
    return limits;
}

std::string wordsOf(const StepLimits &limits)
{
    const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + "%"; };
    if (limits.memory)
        return "the fullest device needs " + formatBytes(Bytes{limits.peakBytes}) + " of "
            + formatBytes(Bytes{limits.memoryBytes});
    return percent(limits.computing) + " of the step is computing, " + percent(limits.communication)
        + " waiting for communication, " + percent(limits.idle) + " idle otherwise";
}

Result<std::vector<HelpfulRow>> helpfulRows(
    const PlanRequest &request, const PlanAnswer &answer, double mostSeconds, const std::stop_token &stop)
{
    std::vector<HelpfulRow> found;
    if (!answer.plan || !answer.isTimed())
        return found;
    const bool fits = fitsAll(answer);
    TRY_VOID(
        tryRows(request, answer, false, mostSeconds, stop, [&](const CandidateRow &candidate, Tried tried) {
            const PlanAnswer &timed = *tried.answer;
            HelpfulRow helpful{candidate.text, std::move(tried.edit), timed.summary.stepSeconds,
                timed.summary.largestPeak.count, fitsAll(timed)};
            const bool smaller = static_cast<double>(helpful.peakBytes)
                < static_cast<double>(answer.summary.largestPeak.count) * (1 - kLeastSaving);
            const bool faster = helpful.stepSeconds < answer.summary.stepSeconds * (1 - kLeastGain);
            if (fits ? faster && helpful.fits : helpful.fits || smaller)
                found.push_back(std::move(helpful));
        }));
    std::stable_sort(found.begin(), found.end(), [&](const HelpfulRow &a, const HelpfulRow &b) {
        if (a.fits != b.fits)
            return a.fits;
        return a.fits ? a.stepSeconds < b.stepSeconds : a.peakBytes < b.peakBytes;
    });
    found.resize(std::min(found.size(), kMostSuggested));
    return found;
}

bool exceedsLimits(const PlanAnswer &answer)
{
    return answer.isTimed() && answer.plan && !answer.error
        && answer.errorCount() == answer.brokenLimitCount() && !fitsAll(answer);
}

Result<std::vector<RowWayOut>> waysWithinLimits(
    const PlanRequest &request, const PlanAnswer &answer, double mostSeconds, const std::stop_token &stop)
{
    std::vector<std::pair<double, RowWayOut>> found; // with how much is left of what is too much
    if (!exceedsLimits(answer))
        return std::vector<RowWayOut>{};
    const auto broken = std::find_if(answer.rows.begin(), answer.rows.end(),
        [](const RowLine &row) { return row.report.error.has_value(); });
    const ConstraintTable rows = answer.table.table();
    const auto *limit =
        broken == answer.rows.end() ? nullptr : std::get_if<LimitRule>(&rows.rows[at(broken->row)].rule);
    const double now = measureOf(answer, limit);
    TRY_VOID(
        tryRows(request, answer, true, mostSeconds, stop, [&](const CandidateRow &candidate, Tried tried) {
            const PlanAnswer &timed = *tried.answer;
            const double then = measureOf(timed, limit);
            const bool holds = fitsAll(timed);
            if (!holds && then >= now * (1 - kLeastSaving))
                return;
            RowWayOut way{.edit = std::move(tried.edit),
                .row = tried.row,
                .text = candidate.text,
                .holds = holds,
                .stepSeconds = timed.summary.stepSeconds,
                .peak = timed.summary.largestPeak,
                .overMemory = memoryUse(timed.summary, timed.cluster, timed.plan->units).over};
            way.words = tried.row.valid()
                ? "make row " + std::to_string(answer.rows[at(tried.row)].line + 1) + ": " + candidate.text
                : "add " + candidate.text;
            if (limit && timed.errorCount() > 0)
                way.left = effectOf(way) + "; not enough yet";
            found.emplace_back(then / now, std::move(way));
        }));
    std::stable_sort(found.begin(), found.end(), [](const auto &a, const auto &b) {
        if (a.second.holds != b.second.holds)
            return a.second.holds;
        return a.second.holds ? a.second.stepSeconds < b.second.stepSeconds : a.first < b.first;
    });
    std::vector<RowWayOut> ways;
    for (std::size_t i = 0; i < std::min(found.size(), kMostSuggested); ++i)
        ways.push_back(std::move(found[i].second));
    return ways;
}

std::vector<ShrinkingRow> shrinkingRows(const PlanAnswer &answer)
{
    std::vector<ShrinkingRow> found;
    if (!answer.search || answer.searchedRow < 0)
        return found;
    ConstraintTable asked = answer.table.table();
    asked.rows.resize(static_cast<std::size_t>(answer.searchedRow));
    const auto space = searchSpaceOf(*answer.model, answer.cluster, answer.deviceCount, asked);
    if (!space)
        return found;
    const Configuration &best = answer.search->best.configuration;
    if (best.isUnequal()) // no row about degrees leaves it
        return found;
    const auto all = static_cast<std::int64_t>(space->configurations.size());
    for (const auto &[degree, value] : {std::pair{Degree::Data, best.replicas}, {Degree::Tensor, best.shards},
             {Degree::Pipeline, best.ranks}, {Degree::Stages, best.stages()},
             {Degree::MicroBatches, best.microBatches}}) {
        const Row row{.rule = DegreeRule{degree, {CountBound::Kind::OneOf, {value}}}};
        ConstraintTable more = asked;
        more.rows.push_back(row);
        const auto left = searchSpaceOf(*answer.model, answer.cluster, answer.deviceCount, more);
        if (left && static_cast<std::int64_t>(left->configurations.size()) < all)
            found.push_back({print(row), static_cast<std::int64_t>(left->configurations.size()), all});
    }
    std::stable_sort(found.begin(), found.end(),
        [](const ShrinkingRow &a, const ShrinkingRow &b) { return a.left < b.left; });
    return found;
}

} // namespace planloom
