#include "engine/design/schedule_choice.h"

#include "engine/base/words.h"
#include "engine/design/recompute_options.h"
#include "engine/hardware/device_word.h"
#include "engine/lowering/block_setting.h"
#include "engine/lowering/in_flight.h"
#include "engine/lowering/listed_schedule.h"
#include "engine/lowering/order_rows.h"
#include "engine/search/schedule/schedule_proof.h"
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

constexpr std::int32_t kTransfers =
    1; ///< Queue of sends and receives, as devices have it (QueueKind::Pipeline).

std::int64_t nanosecondsOf(double seconds)
{
    return std::max<std::int64_t>(std::llround(seconds * 1e9), 1);
}

/// Devices that run the same blocks are one: what a placement calls a device.
std::map<DeviceId, std::int32_t> groupsOf(const std::vector<BlockInfo> &blocks)
{
    std::map<DeviceId, std::vector<std::size_t>> signatures;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (isPass(blocks[b].kind))
            for (const DeviceId device : blocks[b].devices)
                signatures[device].push_back(b);
    std::map<std::vector<std::size_t>, std::int32_t> numbers;
    std::map<DeviceId, std::int32_t> groups;
    for (const auto &[device, signature] : signatures)
        groups[device] =
            numbers.try_emplace(signature, static_cast<std::int32_t>(numbers.size())).first->second;
    return groups;
}

} // namespace

StagePlacement placementOfBlocks(const std::vector<BlockInfo> &blocks,
    const std::vector<BlockDependency> &dataFlow, const std::vector<std::int64_t> &held,
    const std::vector<std::int64_t> &limit)
{
    const auto groups = groupsOf(blocks);
    StagePlacement built;
    Placement &placement = built.placement;
    placement.devices = 1;
    for (const auto &[device, group] : groups)
        placement.devices = std::max(placement.devices, group + 1);
    // By group: what its stages hold; the least room of its devices.
    std::vector<std::int64_t> most(at(placement.devices), 0);
    std::vector<std::set<std::pair<StageId, std::int32_t>>> stagesOf(at(placement.devices));
    if (!held.empty())
        placement.memoryLimit.assign(at(placement.devices), kMostPlacementTime);
    for (const auto &[device, group] : groups)
        if (at(device) < held.size()) {
            most[at(group)] = std::max(most[at(group)], held[at(device)]);
            placement.memoryLimit[at(group)] =
                std::clamp<std::int64_t>(limit[at(device)], 0, placement.memoryLimit[at(group)]);
        }
    std::map<std::tuple<StageId, std::int32_t, std::int32_t>, bool> splits; // by stage, lane, slice
    for (const BlockInfo &block : blocks) {
        splits[{block.stage, block.lane, block.slice}] |= block.kind == SegmentKind::WeightGradient;
        if (block.kind == SegmentKind::Forward)
            for (const DeviceId device : block.devices)
                stagesOf[at(groups.at(device))].insert({block.stage, block.lane});
    }
    std::vector<std::int32_t> indexOf(blocks.size(), -1);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const BlockInfo &block = blocks[b];
        const bool transfer = block.kind == SegmentKind::Transfer;
        std::set<std::int32_t> devices;
        for (const DeviceId device : block.devices)
            if (const auto found = groups.find(device); found != groups.end())
                devices.insert(found->second);
        if ((!isPass(block.kind) && !transfer) || devices.empty() || (transfer && block.seconds <= 0))
            continue;
        indexOf[b] = static_cast<std::int32_t>(placement.blocks.size());
        PlacementBlock own{.id = indexOf[b],
            .kind = nameOf(block.kind),
            .devices = {devices.begin(), devices.end()},
            .time = nanosecondsOf(block.seconds)};
        if (transfer) {
            own.queue = kTransfers;
            placement.blocks.push_back(std::move(own));
            built.keys.emplace_back();
            continue;
        }
        const std::int32_t group = *devices.begin();
        const auto share = static_cast<std::int64_t>(
            std::max<std::size_t>(stagesOf[at(group)].size(), 1) * static_cast<std::size_t>(block.slices));
        const bool last = splits[{block.stage, block.lane, block.slice}]
            ? block.kind == SegmentKind::WeightGradient
            : block.kind != SegmentKind::Forward;
        own.memory = most[at(group)] / share * (block.kind == SegmentKind::Forward ? 1 : last ? -1 : 0);
        placement.blocks.push_back(std::move(own));
        built.keys.push_back(BlockKey{block.stage, passOf(block.kind), block.slice, block.lane});
    }
    std::set<PlacementEdge> edges;
    const auto link = [&](std::int32_t earlier, std::int32_t later, std::int32_t distance) {
        // What comes without time is there with its source.
        while (earlier >= 0 && indexOf[at(earlier)] < 0)
            earlier = blocks[at(earlier)].kind == SegmentKind::Transfer ? blocks[at(earlier)].source : -1;
        if (earlier < 0 || later < 0 || indexOf[at(later)] < 0 || distance < 0
            || (earlier == later && distance == 0))
            return;
        edges.insert({indexOf[at(earlier)], indexOf[at(later)], distance});
    };
    for (std::size_t b = 0; b < blocks.size(); ++b)
        if (blocks[b].kind == SegmentKind::Transfer) {
            link(blocks[b].source, static_cast<std::int32_t>(b), 0);
            link(static_cast<std::int32_t>(b), blocks[b].target, 0);
        }
    for (const BlockDependency &dependency : dataFlow)
        if (dependency.groupSize == 0 && dependency.microBatch < 0)
            link(dependency.earlier, dependency.later, dependency.offset);
    placement.edges.assign(edges.begin(), edges.end());
    return built;
}

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

/// When a block of one micro-batch ran on a device.
struct BlockExtent {
    std::vector<std::pair<std::int64_t, std::int64_t>> runs{}; ///< Of what it computes, and waits for inside.
    std::int64_t computed = 0; ///< End of its last computation.
    std::int64_t last = 0; ///< End of all that it does.

    /// What it takes up to its last computation. What needs nothing of other blocks may have run long before
    /// the rest: the time between is none of the block's.
    std::int64_t busy()
    {
        std::sort(runs.begin(), runs.end());
        std::int64_t sum = 0;
        std::int64_t until = 0;
        for (const auto &[begin, end] : runs) {
            const std::int64_t to = std::min(end, computed);
            sum += std::max<std::int64_t>(to - std::max(begin, until), 0);
            until = std::max(until, to);
        }
        return sum;
    }
};

/// The extents of all blocks on one device, by block and micro-batch; none for blocks that it does not run.
std::vector<std::vector<BlockExtent>> extentsOn(
    std::size_t device, const PlanAnswer &answer, const Timeline &timeline)
{
    const auto &segmentOf = answer.materialized->segmentOf[device];
    std::vector<std::int32_t> blockOf(answer.execution->devices[device].segments.size(), -1);
    for (std::size_t b = 0; b < segmentOf.size(); ++b)
        if (segmentOf[b] >= 0)
            blockOf[at(segmentOf[b])] = static_cast<std::int32_t>(b);
    std::vector<std::vector<BlockExtent>> extents(answer.materialized->blocks.size());
    const SpanColumns &spans = timeline.spans;
    for (std::size_t row = timeline.deviceBegin[device]; row < timeline.deviceBegin[device + 1]; ++row) {
        const std::int32_t block = blockOf[at(spans.segment[row])];
        const std::int32_t microBatch = spans.microBatch[row];
        if (block < 0 || microBatch < 0 || microBatch >= answer.execution->microBatches)
            continue;
        const bool transfer = answer.materialized->blocks[at(block)].kind == SegmentKind::Transfer;
        auto &own = extents[at(block)];
        own.resize(at(answer.execution->microBatches));
        BlockExtent &extent = own[at(microBatch)];
        const std::int64_t end = spans.start[row] + spans.duration[row];
        extent.last = std::max(extent.last, end);
        const QueueKind queue = spans.queue[row];
        if (transfer || queue == QueueKind::Compute || queue == QueueKind::Tensor)
            extent.runs.emplace_back(spans.start[row], end);
        if (transfer || queue == QueueKind::Compute)
            extent.computed = std::max(extent.computed, end);
    }
    return extents;
}

/// The blocks of a plan with the durations that its simulation shows: what a block computes, and waits for
/// inside, to the end of its last computation, the median of its micro-batches and the longest of its
/// devices. What it communicates behind that runs beside the next block and makes what is sent late.
/// Transfers may wait for their other end: the shortest counts.
std::vector<BlockInfo> simulatedBlocks(const PlanAnswer &answer, const Timeline &timeline)
{
    std::vector<BlockInfo> blocks = answer.materialized->blocks;
    std::vector<double> late(blocks.size(), 0);
    for (BlockInfo &block : blocks)
        block.seconds = 0;
    std::set<std::int32_t> seen; // classes of devices that do the same
    for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d) {
        if (d < timeline.symmetryClass.size() && !seen.insert(timeline.symmetryClass[d]).second)
            continue;
        auto extents = extentsOn(d, answer, timeline);
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            std::vector<std::pair<std::int64_t, std::int64_t>> durations; // and how late what is sent is
            for (BlockExtent &extent : extents[b])
                if (extent.computed > 0)
                    durations.emplace_back(extent.busy(), extent.last - extent.computed);
            if (durations.empty())
                continue;
            std::sort(durations.begin(), durations.end());
            const auto [nanoseconds, behind] =
                durations[blocks[b].kind == SegmentKind::Transfer ? 0 : durations.size() / 2];
            blocks[b].seconds = std::max(blocks[b].seconds, static_cast<double>(nanoseconds) / 1e9);
            late[b] = std::max(late[b], static_cast<double>(behind) / 1e9);
        }
    }
    for (BlockInfo &block : blocks)
        if (block.kind == SegmentKind::Transfer && block.seconds > 0)
            block.seconds += late[at(block.source)];
    return blocks;
}

/// What the updates of a step take of every device at least; 0 where they come between its blocks.
std::int64_t leastUpdate(const ExecutionPlan &plan, const Timeline &timeline)
{
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d) {
        std::int64_t own = 0;
        for (std::size_t row = timeline.deviceBegin[d]; row < timeline.deviceBegin[d + 1]; ++row)
            if (timeline.spans.queue[row] == QueueKind::Compute
                && plan.devices[d].segments[at(timeline.spans.segment[row])].kind == SegmentKind::Optimizer)
                own += timeline.spans.duration[row];
        least = std::min(least, own);
    }
    return plan.updates == 1 && timeline.deviceBegin.size() > 1 ? least : 0;
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
        const std::vector<Row> &stageRows, const std::vector<Row> &recomputeRows = {})
    {
        PlanRequest request = m_request;
        request.last = m_last;
        TRY_VOID(setSchedule(request, m_deviceCount, rule, stageRows, recomputeRows));
        if (rule.microBatches > 0)
            TRY_VOID(request.table.apply(appendRows(request.table, m_forAnyNumber)));
        TRY(const PlanAnswerSnapshot answer, answerOf(request, m_stop));
        TriedSchedule &tried = m_choice.tried.emplace_back(TriedSchedule{.name = name,
            .rule = rule,
            .shape = shape,
            .stageRows = stageRows,
            .recomputeRows = recomputeRows});
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
        tried.fits = fits(*answer) && !answer->firstError();
        const std::pair worth{!tried.fits, tried.stepSeconds};
        if (!m_choice.best || worth < m_worth) {
            m_choice.best = answer;
            m_choice.bestName = name;
            m_worth = worth;
        }
        const bool split =
            std::any_of(answer->materialized->blocks.begin(), answer->materialized->blocks.end(),
                [](const BlockInfo &block) { return block.kind == SegmentKind::WeightGradient; });
        if (!recomputeRows.empty()) {

            report(answer); // its blocks are others
            return {};
        }
        Seen &seen = m_seen[{shape, split}];
        seen.answers.push_back(answer);
        seen.rules.push_back(rule);
        seen.overfull = seen.overfull || !fits(*answer);
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

    static bool fits(const PlanAnswer &answer)
    {
        for (std::size_t d = 0; d < answer.summary.devices.size(); ++d) {
            const double room =
                memoryOf(answer.cluster, answer.execution->units, static_cast<std::int32_t>(d));
            if (room > 0 && static_cast<double>(answer.summary.devices[d].peak.count) > room)
                return false;
        }
        return true;
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
        std::vector<RecomputeWord> words;
        if (seen.overfull && leavesRecomputation(m_request.table.table())) {
            TRY(const auto recomputed, recomputedStages(seen, held, limit));
            words = offerRecomputation(stages, recomputed);
        }
        const std::vector<std::string> names = placementDevices(plan, stages.placement.devices);
        const std::int64_t update = leastUpdate(*plan.execution, timeline);
        const std::size_t own = m_choice.searches.size();
        const auto note = [&](const ScheduleAnswer &answer) {
            m_choice.searches.resize(own);
            ScheduleSearch &known = m_choice.searches.emplace_back();
            static_cast<ScheduleAnswer &>(known) = answer;
            known.splits = split;
            known.shape = shape;
            known.update = update;
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
                found->makespan.choices, words));
        return attempt("best",
            {ScheduleKind::Listed, scheduleOf(stages, found->makespan.starts), plan.execution->microBatches},
            shape, seen.stageRows, rowsToAdd);
    }

    /// The fullest of the plans again, with all that the rows leave open recomputed: what that takes, and
    /// saves of a micro-batch where it holds the most.
    Result<std::vector<RecomputedStages>> recomputedStages(
        const Seen &seen, const std::vector<std::int64_t> &held, const std::vector<std::int64_t> &limit)
    {
        const auto fullest = std::max_element(seen.answers.begin(), seen.answers.end(),
            [](const PlanAnswerSnapshot &a, const PlanAnswerSnapshot &b) {
                return a->summary.largestPeak < b->summary.largestPeak;
            });
        const auto which = static_cast<std::size_t>(fullest - seen.answers.begin());
        const std::vector<std::int64_t> counts = heldBy(**fullest);
        std::vector<RecomputedStages> all;
        for (const RecomputeWord word : {RecomputeWord::Selective, RecomputeWord::Full}) {
            const auto rows = recomputeChoice(*m_request.model, m_request.table.table(), word);
            if (!rows || rows->rows.empty())
                continue;
            PlanRequest request = m_request;
            request.last = *fullest;
            TRY_VOID(setSchedule(request, m_deviceCount, seen.rules[which], seen.stageRows, rows->rows));
            TRY(const PlanAnswerSnapshot answer, answerOf(request, m_stop));
            if (!answer->isTimed() || !answer->materialized)
                continue; // it cannot be
            SimulateOptions options;
            options.spans = true;
            TRY(const Timeline timeline,
                simulate(*answer->execution, answer->cluster, costModelOf(answer->cluster), options, m_stop));
            RecomputedStages &own = all.emplace_back();
            own.word = word;
            own.stages = placementOfBlocks(
                simulatedBlocks(*answer, timeline), answer->materialized->dataFlow, held, limit);
            own.saved.assign(at(own.stages.placement.devices), kMostPlacementTime);
            for (const auto &[device, group] : groupsOf(answer->materialized->blocks)) {
                const std::int64_t less = (*fullest)->summary.devices[at(device)].peak.count
                    - answer->summary.devices[at(device)].peak.count;
                own.saved[at(group)] =
                    std::min(own.saved[at(group)], less / std::max<std::int64_t>(counts[at(device)], 1));
            }
        }
        return all;
    }

    /// What the devices of a plan's placement are called.
    static std::vector<std::string> placementDevices(const PlanAnswer &plan, std::int32_t count)
    {
        std::vector<std::string> names(at(count));
        for (const auto &[device, group] : groupsOf(plan.materialized->blocks))
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
