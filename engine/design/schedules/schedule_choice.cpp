#include "engine/design/schedules/schedule_choice.h"

#include "engine/base/words.h"
#include "engine/design/explain/memory_options.h"
#include "engine/design/fullness.h"
#include "engine/design/schedules/simulated_blocks.h"
#include "engine/hardware/device_word.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/lowering/order/order_rows.h"
#include "engine/schedule/search/schedule_proof.h"
#include "engine/simulate/simulate.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// It gives the schedule of plans with so many micro-batches, or would without the others.
bool givesSchedule(const Row &row, std::int32_t microBatches)
{
    const auto *rule = std::get_if<ScheduleRule>(&row.rule);
    return rule && row.enabled && rule->holdsAt(microBatches);
}

/// Those for other numbers of micro-batches stay.
Result<void> dropScheduleRows(TableDocument &document, std::int32_t microBatches)
{
    std::vector<std::int32_t> lines;
    const ConstraintTable table = document.table();
    const auto rowLines = document.rowLines();
    for (std::size_t r = 0; r < table.rows.size(); ++r)
        if (givesSchedule(table.rows[r], microBatches))
            lines.push_back(rowLines[r]);
    return document.apply(removeLines(document, lines));
}

/// Of an answer's rows.
std::int32_t microBatchesOf(const PlanAnswer &answer)
{
    return answer.plan ? answer.plan->microBatches : givenMicroBatches(answer.table.table()).value_or(1);
}

/// Gives the rows this schedule, and these in place of those that lay the stages out.
Result<void> setSchedule(PlanRequest &request, std::int32_t deviceCount, const ScheduleRule &rule,
    const std::vector<Row> &stageRows, const std::vector<Row> &moreRows = {})
{
    const GestureContext context = gestureContextOf(*request.model, request.table, deviceCount);
    return request.table.apply(proposeSchedule(context, rule, {}, stageRows, moreRows).edit);
}

/// A schedule by name is one of a pipeline. Without rows the search decides which, under schedules that it
/// knows; under others it has a stage on every device.
void makePipeline(PlanRequest &request, ScheduleKind kind)
{
    const bool searched = kind == ScheduleKind::Interleaved || kind == ScheduleKind::ZeroBubbleH1
        || kind == ScheduleKind::Listed || !scheduleTemplates()[static_cast<std::size_t>(kind)].make;
    if (!searched && request.gallery.empty() && request.table.rowLines().empty())
        request.gallery = "pipeline";
}

/// What rows want of a plan's blocks, as dependencies that hold for every micro-batch, and the rows that say
/// something else.
struct RowDependencies {
    std::vector<BlockDependency> kept{};
    std::set<RowId> others{};
};

Result<RowDependencies> rowDependencies(const Plan &plan, const MaterializedPlan &materialized)
{
    RowDependencies found;
    TRY(const SortedOrders orders, sortOrders(plan, materialized.blocks, materialized.blocksOf));
    for (const BlockDependency &order : orders.between) {
        if (order.offset >= 0 && order.microBatch < 0)
            found.kept.push_back(order);
        else
            found.others.insert(order.row);
    }
    for (const InterleavedBlocks &pair : plan.interleaved)
        found.others.insert(pair.row);
    // No more than n micro-batches are held: a forward block waits for the last backward block of the one n
    // before it.
    std::map<std::tuple<StageId, std::int32_t>, std::pair<std::int32_t, std::int32_t>> ends; // by lane
    for (std::size_t b = 0; b < materialized.blocks.size(); ++b) {
        const BlockInfo &block = materialized.blocks[b];
        if (!isPass(block.kind) || block.devices.empty() || block.slice != 0)
            continue;
        auto &[first, last] = ends.try_emplace({block.stage, block.lane}, -1, -1).first->second;
        if (block.kind == SegmentKind::Forward)
            first = static_cast<std::int32_t>(b);
        else if (last < 0 || block.kind == SegmentKind::WeightGradient)
            last = static_cast<std::int32_t>(b);
    }
    for (const auto &[stage, block] : ends) {
        const auto s = at(std::get<0>(stage));
        if (block.first >= 0 && block.second >= 0 && s < plan.inFlight.size() && plan.inFlight[s] > 0)
            found.kept.push_back({block.second, block.first, plan.inFlight[s]});
    }
    return found;
}

class ScheduleChooser
{
public:
    ScheduleChooser(const PlanRequest &request, const ScheduleTrial &trial, const std::stop_token &stop)
        : m_request(request)
        , m_trial(trial)
        , m_stop(stop)
    {
        m_request.upTo = trial.spans ? PlanGrade::Simulated : PlanGrade::Timed;
    }

    Result<ScheduleChoice> choose()
    {
        // Rows of the gallery and of the search become rows of the table, of which the schedule is one.
        TRY(const PlanAnswerSnapshot base, answerOf(m_request, m_stop));
        if (!base->plan && base->table.rowLines().empty())
            return *base->firstError();
        m_request.gallery.clear();
        m_request.search = false;
        m_request.table = base->table;
        noteRows(m_request.table, microBatchesOf(*base));
        for (Row &row : m_request.table.table().rows)
            if (const auto *rule = std::get_if<ScheduleRule>(&row.rule);
                rule && row.enabled && !rule->chosen && rule->microBatches == 0)
                m_forAnyNumber.push_back(std::move(row));
        TRY_VOID(dropScheduleRows(m_request.table, microBatchesOf(*base)));
        m_deviceCount = base->deviceCount;
        // Shape by shape: plans that differ in the order of blocks alone share the first half of lowering.
        const std::vector<TemplateFit> fits = fitTemplates(*base);
        for (const StageShape shape : kShapes)
            for (std::size_t i = 0; i < fits.size(); ++i)
                if (fits[i].shape == shape) {
                    const ScheduleKind kind = scheduleTemplates()[i].kind;
                    TRY_VOID(attempt(nameOf(kind), {kind, {}}, shape, fits[i].stageRows));
                }
        for (const StageShape shape : kShapes)
            for (const bool split : {false, true})
                if (m_trial.seconds > 0)
                    TRY_VOID(search(shape, split));
        if (!m_choice.best) {
            for (const TriedSchedule &each : m_choice.tried)
                if (each.problem && each.name == nameOf(ScheduleKind::OneFOneB))
                    return *each.problem;
            return m_choice.tried.front().problem.value_or(
                Error{ErrorCode::Internal, "no schedule was tried", {}, "schedule"});
        }
        std::stable_sort(
            m_choice.tried.begin(), m_choice.tried.end(), [](const TriedSchedule &a, const TriedSchedule &b) {
                return std::tuple(a.problem.has_value(), !a.fits, a.stepSeconds)
                    < std::tuple(b.problem.has_value(), !b.fits, b.stepSeconds);
            });
        return std::move(m_choice);
    }

private:
    static constexpr std::array kShapes{StageShape::AsTheyAre, StageShape::OneEach, StageShape::Wave};

    /// Timed answers that share their blocks.
    struct Seen {
        std::vector<PlanAnswerSnapshot> answers{};
        std::vector<ScheduleRule> rules{}; ///< By answer.
        std::vector<Row> stageRows{};
        bool overfull = false; ///< One of them does not fit its devices.
    };

    /// Plans with a schedule; what fails is noted.
    Result<void> attempt(const std::string &name, const ScheduleRule &rule, StageShape shape,
        const std::vector<Row> &stageRows, const std::vector<Row> &memoryRows = {})
    {
        PlanRequest request = m_request;
        request.last = m_last;
        TRY_VOID(setSchedule(request, m_deviceCount, rule, stageRows, memoryRows));
        if (rule.microBatches > 0)
            TRY_VOID(request.table.apply(appendRows(request.table, m_forAnyNumber)));
        TRY(const PlanAnswerSnapshot answer, answerOf(request, m_stop));
        TriedSchedule &tried = m_choice.tried.emplace_back(TriedSchedule{
            .name = name, .rule = rule, .shape = shape, .stageRows = stageRows, .memoryRows = memoryRows});
        if (!answer->isTimed()) {
            tried.problem = answer->firstError().value_or(Error{ErrorCode::Internal, "there is no plan"});
            report(answer);
            return {};
        }
        m_last = answer;
        tried.stepSeconds = answer->summary.stepSeconds;
        tried.bubble = answer->summary.bubble;
        tried.peak = answer->summary.largestPeak;
        for (const std::int32_t held : mostInFlight(*answer->execution))
            tried.inFlight = std::max(tried.inFlight, held);
        tried.fits = fullnessOf(*answer) <= 1 && !answer->firstError();
        const std::pair worth{!tried.fits, tried.stepSeconds};
        if (!m_choice.best || worth < m_worth) {
            m_choice.best = answer;
            m_choice.bestName = name;
            m_worth = worth;
        }
        const bool split =
            std::any_of(answer->materialized->blocks.begin(), answer->materialized->blocks.end(),
                [](const BlockInfo &block) { return block.kind == SegmentKind::WeightGradient; });
        if (!memoryRows.empty()) {

            report(answer); // its blocks are others
            return {};
        }
        Seen &seen = m_seen[{shape, split}];
        seen.answers.push_back(answer);
        seen.rules.push_back(rule);
        seen.overfull = seen.overfull || fullnessOf(*answer) > 1;
        seen.stageRows = stageRows;
        report(answer);
        return {};
    }

    void report(const PlanAnswerSnapshot &answer) const
    {
        if (m_trial.report)
            m_trial.report(m_choice, answer);
    }

    /// Rows of the table as it was, by row of the table without its schedule rows.
    void noteRows(const TableDocument &document, std::int32_t microBatches)
    {
        const ConstraintTable table = document.table();
        for (std::size_t r = 0; r < table.rows.size(); ++r)
            if (!givesSchedule(table.rows[r], microBatches))
                m_rowOf.push_back({static_cast<std::int32_t>(r)});
    }

    /// Micro-batches that each device holds at most, over its stages.
    static std::vector<std::int64_t> heldBy(const PlanAnswer &answer)
    {
        const auto stages = mostInFlight(*answer.execution);
        std::vector<std::int64_t> held(answer.summary.devices.size(), 0);
        std::set<std::tuple<DeviceId, StageId>> seen;
        for (const BlockInfo &block : answer.materialized->blocks)
            if (block.kind == SegmentKind::Forward)
                for (const DeviceId device : block.devices)
                    if (at(device) < held.size() && seen.insert({device, block.stage}).second)
                        held[at(device)] += stages[at(block.stage)];
        return held;
    }

    /// The best schedule for the blocks of the plans that were made so: with what a micro-batch takes of a
    /// device worked out from the two that hold the most and the least.
    Result<void> search(StageShape shape, bool split)
    {
        const Seen seen = m_seen[{shape, split}];
        const auto &answers = seen.answers;
        if (answers.empty())
            return {};
        const PlanAnswer &plan = *answers.front();
        std::vector<std::int64_t> held(plan.summary.devices.size(), 0);
        std::vector<std::int64_t> limit(held.size(), kMostPlacementTime);
        for (std::size_t d = 0; d < held.size(); ++d) {
            std::pair<std::int64_t, std::int64_t> least{std::numeric_limits<std::int64_t>::max(), 0};
            std::pair<std::int64_t, std::int64_t> most{-1, 0};
            for (const PlanAnswerSnapshot &each : answers) {
                const std::pair own{heldBy(*each)[d], each->summary.devices[d].peak.count};
                least = std::min(least, own);
                most = std::max(most, own);
            }
            const double room = memoryOf(plan.cluster, plan.execution->units, static_cast<std::int32_t>(d));
            if (most.first <= least.first || most.second <= least.second || room <= 0)
                continue; // as far as can be told, it holds nothing
            const std::int64_t stages = countStages(*plan.materialized, d);
            const std::int64_t each = (most.second - least.second) / (most.first - least.first);
            held[d] = each * stages;
            limit[d] = static_cast<std::int64_t>(room) - (least.second - each * least.first);
        }
        SimulateOptions options;
        options.spans = true;
        TRY(const Timeline timeline,
            simulate(*plan.execution, plan.cluster, costModelOf(plan.cluster), options, m_stop));
        TRY(const RowDependencies rows, rowDependencies(*plan.plan, *plan.materialized));
        for (const RowId row : rows.others)
            if (shape == StageShape::AsTheyAre && row.valid() && at(row) < m_rowOf.size()
                && std::find(m_choice.bentTo.begin(), m_choice.bentTo.end(), m_rowOf[at(row)])
                    == m_choice.bentTo.end())
                m_choice.bentTo.push_back(m_rowOf[at(row)]);
        std::vector<BlockDependency> dependencies = plan.materialized->dataFlow;
        dependencies.insert(dependencies.end(), rows.kept.begin(), rows.kept.end());
        StagePlacement stages = placementOfBlocks(simulatedBlocks(plan, timeline), dependencies, held, limit);
        std::vector<MemorySaving> savings;
        if (seen.overfull) {
            TRY(const auto lighter, lighterStages(seen, held, limit));
            savings = offerSavings(stages, lighter, kPlacementCopies);
        }
        const std::vector<std::string> names = placementDevices(plan, stages.placement.devices);
        const std::size_t own = m_choice.searches.size();
        const auto note = [&](const ScheduleAnswer &answer) {
            m_choice.searches.resize(own);
            ScheduleSearch &known = m_choice.searches.emplace_back();
            static_cast<ScheduleAnswer &>(known) = answer;
            known.splits = split;
            known.shape = shape;
            known.proof = proofOf(stages.placement, answer, names,
                [](std::int64_t time) { return formatSeconds(static_cast<double>(time) / 1e9); });
        };
        const auto found = findSchedule(stages.placement,
            {.microBatches = plan.execution->microBatches,
                .seconds = m_trial.seconds,
                .stop = m_stop,
                .report = [&](const ScheduleAnswer &answer) {
                    note(answer);
                    report(nullptr);
                }});
        if (!found) {
            if (found.error().code == ErrorCode::Cancelled)
                return found.error();
            m_choice.tried.push_back({.name = "best", .problem = found.error()});
            report(nullptr);
            return {};
        }
        note(*found);
        if (found->makespan.starts.empty())
            return {};
        m_last = answers.front();
        TRY(const std::vector<Row> rowsToAdd,
            rowsOfOptions(*m_request.model, m_request.table.table(), *plan.plan, stages,
                found->makespan.choices, savings));
        return attempt("best",
            {ScheduleKind::Listed, scheduleOf(stages, found->makespan.starts), plan.execution->microBatches},
            shape, seen.stageRows, rowsToAdd);
    }

    /// The fullest of the plans again, with memory saved wherever the rows leave that open: what that takes,
    /// and saves of a micro-batch where it holds the most.
    Result<std::vector<LighterStages>> lighterStages(
        const Seen &seen, const std::vector<std::int64_t> &held, const std::vector<std::int64_t> &limit)
    {
        const auto fullest = std::max_element(seen.answers.begin(), seen.answers.end(),
            [](const PlanAnswerSnapshot &a, const PlanAnswerSnapshot &b) {
                return a->summary.largestPeak < b->summary.largestPeak;
            });
        const auto which = static_cast<std::size_t>(fullest - seen.answers.begin());
        const std::vector<std::int64_t> counts = heldBy(**fullest);
        std::vector<LighterStages> all;
        for (const MemorySaving saving : kAllMemorySavings) {
            const auto rows = savingRows(*m_request.model, m_request.table.table(), saving);
            if (!rows || rows->empty())
                continue;
            PlanRequest request = m_request;
            request.last = *fullest;
            TRY_VOID(setSchedule(request, m_deviceCount, seen.rules[which], seen.stageRows, *rows));
            TRY(const PlanAnswerSnapshot answer, answerOf(request, m_stop));
            if (!answer->isTimed() || !answer->materialized)
                continue; // it cannot be
            SimulateOptions options;
            options.spans = true;
            TRY(const Timeline timeline,
                simulate(*answer->execution, answer->cluster, costModelOf(answer->cluster), options, m_stop));
            LighterStages &own = all.emplace_back();
            own.saving = saving;
            const std::vector<BlockInfo> blocks = simulatedBlocks(*answer, timeline);
            own.stages = placementOfBlocks(blocks, answer->materialized->dataFlow, held, limit);
            own.copies = copiesOf(own.stages, blocks, simulatedCopies(*answer, timeline));
            own.saved.assign(at(own.stages.placement.devices), kMostPlacementTime);
            for (const auto &[device, group] : placementDevicesOf(answer->materialized->blocks)) {
                const std::int64_t less = (*fullest)->summary.devices[at(device)].peak.count
                    - answer->summary.devices[at(device)].peak.count;
                own.saved[at(group)] =
                    std::min(own.saved[at(group)], less / std::max<std::int64_t>(counts[at(device)], 1));
            }
        }
        return all;
    }

    /// By block of a placement: what the plan's blocks copy, in nanoseconds.
    static std::vector<std::int64_t> copiesOf(const StagePlacement &stages,
        const std::vector<BlockInfo> &blocks, const std::vector<double> &seconds)
    {
        std::map<BlockKey, double> byKey;
        for (std::size_t b = 0; b < blocks.size(); ++b)
            if (isPass(blocks[b].kind))
                byKey[keyOf(blocks[b])] = seconds[b];
        std::vector<std::int64_t> copies(stages.keys.size(), 0);
        for (std::size_t b = 0; b < copies.size(); ++b)
            if (stages.keys[b])
                copies[b] = std::llround(byKey[*stages.keys[b]] * 1e9);
        return copies;
    }

    /// What the devices of a plan's placement are called.
    static std::vector<std::string> placementDevices(const PlanAnswer &plan, std::int32_t count)
    {
        std::vector<std::string> names(at(count));
        for (const auto &[device, group] : placementDevicesOf(plan.materialized->blocks))
            if (names[at(group)].empty())
                names[at(group)] = deviceWord(plan.cluster) + " " + std::to_string(device.index);
        return names;
    }

    static std::int64_t countStages(const MaterializedPlan &materialized, std::size_t device)
    {
        std::set<std::pair<StageId, std::int32_t>> stages;
        for (const BlockInfo &block : materialized.blocks)
            if (block.kind == SegmentKind::Forward
                && std::find(block.devices.begin(), block.devices.end(),
                       DeviceId{static_cast<std::int32_t>(device)})
                    != block.devices.end())
                stages.insert({block.stage, block.lane});
        return static_cast<std::int64_t>(std::max<std::size_t>(stages.size(), 1));
    }

    PlanRequest m_request{};
    ScheduleTrial m_trial{};
    std::stop_token m_stop{};
    std::vector<RowId> m_rowOf{}; ///< See `noteRows`.
    std::vector<Row> m_forAnyNumber{}; ///< Schedule rows that one for this number comes before.
    std::shared_ptr<const PlanAnswer> m_last{};
    std::int32_t m_deviceCount = 1;
    std::map<std::pair<StageShape, bool>, Seen> m_seen{}; ///< By shape, and whether passes are split.
    std::pair<bool, double> m_worth{};
    ScheduleChoice m_choice{};
};

} // namespace

Result<PlanRequest> withSchedule(PlanRequest request, const ScheduleRule &rule, const std::stop_token &stop)
{
    makePipeline(request, rule.kind);
    PlanRequest rows = request;
    rows.search = false;
    rows.upTo = PlanGrade::Checked;
    TRY(const PlanAnswerSnapshot checked, answerOf(rows, stop));
    if (!request.gallery.empty()) {
        if (checked->error)
            return *checked->error;
        request.table = checked->table;
        request.gallery.clear();
    }
    // How the stages lie: blocks are the same under any schedule that is for them.
    rows.upTo = PlanGrade::Lowered;
    rows.gallery.clear();
    rows.table = request.table;
    TRY_VOID(dropScheduleRows(rows.table, microBatchesOf(*checked)));
    TRY_VOID(setSchedule(rows, checked->deviceCount, {ScheduleKind::OneFOneB, {}}, {}));
    std::vector<Row> stageRows;
    if (rule.kind != ScheduleKind::Listed) {
        TRY(const PlanAnswerSnapshot plain, answerOf(rows, stop));
        stageRows = fitTemplates(*plain)[static_cast<std::size_t>(rule.kind)].stageRows;
    }
    TRY_VOID(setSchedule(request, checked->deviceCount, rule, stageRows));
    return request;
}

Result<ScheduleChoice> chooseSchedule(
    const PlanRequest &request, const ScheduleTrial &trial, const std::stop_token &stop)
{
    return ScheduleChooser(request, trial, stop).choose();
}

} // namespace planloom
