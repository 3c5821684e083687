#include "engine/design/suggestions.h"

#include "engine/analyse/limits.h"
#include "engine/base/words.h"
#include "engine/gallery/usual_rows.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

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
    const auto start = std::chrono::steady_clock::now();
    const ConstraintTable rows = answer.table.table();
    const std::vector<std::int32_t> lines = answer.table.rowLines();
    const bool fits = fitsAll(answer);
    for (const CandidateRow &candidate : candidatesFor(answer)) {
        if (stop.stop_requested())
            return cancelled();
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > mostSeconds)
            break;
        if (isSaid(rows, candidate.rule, false))
            continue;
        TableDocument with = answer.table;
        std::vector<std::int32_t> chosen;
        for (std::size_t row = 0; row < rows.rows.size(); ++row)
            if (rows.rows[row].enabled && rows.rows[row].origin == RowOrigin::Solver
                && rows.rows[row].rule.index() == candidate.rule.index())
                chosen.push_back(lines[row]);
        if (!chosen.empty() && !with.apply(removeLines(with, chosen)))
            continue;
        const auto own = parseRow(candidate.text);
        if (!own || !with.apply(appendRows(with, {*own})))
            continue;
        PlanRequest tried = request;
        tried.table = with;
        tried.gallery.clear(); // its rows stand in the answer's table
        tried.search = false;
        tried.explains = false;
        tried.onBetter = {};
        tried.begin.reset();
        tried.upTo = PlanGrade::Timed;
        auto outcome = answerOf(tried, stop);
        if (!outcome && outcome.error().code == ErrorCode::Cancelled)
            return outcome.error();
        if (!outcome || !(*outcome)->isTimed())
            continue;
        const PlanAnswer &timed = **outcome;
        HelpfulRow helpful{candidate.text, difference(answer.table, with), timed.summary.stepSeconds,
            timed.summary.largestPeak.count, fitsAll(timed)};
        const bool smaller = static_cast<double>(helpful.peakBytes)
            < static_cast<double>(answer.summary.largestPeak.count) * (1 - kLeastSaving);
        const bool faster = helpful.stepSeconds < answer.summary.stepSeconds * (1 - kLeastGain);
        if (fits ? faster && helpful.fits : helpful.fits || smaller)
            found.push_back(std::move(helpful));
    }
    std::stable_sort(found.begin(), found.end(), [&](const HelpfulRow &a, const HelpfulRow &b) {
        if (a.fits != b.fits)
            return a.fits;
        return a.fits ? a.stepSeconds < b.stepSeconds : a.peakBytes < b.peakBytes;
    });
    found.resize(std::min(found.size(), kMostSuggested));
    return found;
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
