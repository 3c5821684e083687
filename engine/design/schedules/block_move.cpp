#include "engine/design/schedules/block_move.h"

#include "engine/base/words.h"
#include "engine/gesture/row_edits.h"
#include "engine/hardware/device_word.h"
#include "engine/lowering/order/in_flight.h"
#include "engine/lowering/order/listed_schedule.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace planloom {

namespace {

BlockRef refOf(const Segment &segment, std::int32_t microBatch)
{
    BlockRef block{
        segment.stage, isBackward(segment.kind) ? Direction::Backward : Direction::Forward, microBatch, {}};
    return block;
}

/// "F3 of stage 0 can't run before B0 of stage 0: ", with the one that takes and the next that gives back.
std::string betweenWords(const std::optional<BlockRef> &taker, const std::optional<BlockRef> &giver)
{
    if (!taker)
        return {};
    return wordsOf(*taker) + (giver ? " can't run before " + wordsOf(*giver) : " can't run there") + ": ";
}

/// A device that holds more than it may.
struct Overfull {
    std::size_t device = 0;
    double allowed = 0; ///< Bytes.
    std::int64_t peak = 0;
};

/// The block that runs when a device first holds more than allowed, and the next block that gives some back.
std::pair<std::optional<BlockRef>, std::optional<BlockRef>> blocksAround(
    const PlanAnswer &answer, const Overfull &full)
{
    const Timeline &timeline = *answer.timeline;
    const MemoryCurve &curve = timeline.memory[full.device];
    std::size_t point = 0;
    const auto total = [&](std::size_t i) {
        return static_cast<double>(
            std::accumulate(curve.bytes[i].begin(), curve.bytes[i].end(), std::int64_t{0}));
    };
    while (point < curve.time.size() && total(point) <= full.allowed)
        ++point;
    if (point == curve.time.size())
        return {};
    const std::int64_t time = curve.time[point];
    const auto [begin, end] = rowsOf(timeline, full.device, QueueKind::Compute);
    const auto &segments = answer.execution->devices[full.device].segments;
    std::optional<BlockRef> taker;
    std::optional<BlockRef> giver;
    for (std::size_t row = begin; row < end && !giver; ++row) {
        const Segment &segment = segments[static_cast<std::size_t>(timeline.spans.segment[row])];
        if (!isPass(segment.kind))
            continue;
        const BlockRef block = refOf(segment, timeline.spans.microBatch[row]);
        if (timeline.spans.start[row] <= time)
            taker = block;
        else if (block.direction == Direction::Backward && taker != block)
            giver = block;
    }
    return {taker, giver};
}

/// The first forward block of a stage that makes it hold more than `count` micro-batches on a device, and the
/// next backward block behind it.
std::pair<std::optional<BlockRef>, std::optional<BlockRef>> blocksAround(
    const ExecutionPlan &plan, StageId stage, std::int32_t count)
{
    for (const DeviceProgram &program : plan.devices) {
        const bool split =
            std::any_of(program.segments.begin(), program.segments.end(), [stage](const Segment &segment) {
                return segment.stage == stage && segment.kind == SegmentKind::WeightGradient;
            });
        std::int32_t held = 0;
        std::optional<BlockRef> taker;
        for (const ScheduleEntry &entry : program.schedule) {
            const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
            if (segment.stage != stage || !isPass(segment.kind) || entry.begin > 0 || segment.slice != 0)
                continue;
            const BlockRef block = refOf(segment, entry.microBatch);
            if (block.direction == Direction::Forward) {
                if (++held > count && !taker)
                    taker = block;
            } else if (split == (segment.kind == SegmentKind::WeightGradient)) {
                if (taker)
                    return {taker, block};
                --held;
            }
        }
        if (taker)
            return {taker, std::nullopt};
    }
    return {};
}

/// What a row says in a plan of other rows: rows keep no numbers.
std::string textOf(const PlanAnswer &answer, RowId row)
{
    return row.valid() && at(row) < answer.rows.size() ? answer.rows[at(row)].text : std::string{};
}

std::optional<Error> brokenInFlight(const PlanAnswer &after, const PlanAnswer *before)
{
    std::set<std::string> known; // rows that could not be kept before
    if (before && before->plan && before->execution)
        for (const auto &[row, sentence] : liftedLimits(*before->plan, *before->execution))
            known.insert(textOf(*before, row));
    for (const auto &[row, sentence] : liftedLimits(*after.plan, *after.execution)) {
        if (known.contains(textOf(after, row)) || !row.valid() || at(row) >= after.rows.size())
            continue;
        const std::vector<std::int32_t> most = mostInFlight(*after.execution);
        for (std::size_t s = 0; s < most.size() && s < after.plan->inFlight.size(); ++s) {
            const std::int32_t count = after.plan->inFlight[s];
            if (after.plan->inFlightRows[s] != row || most[s] <= count)
                continue;
            const StageId stage{static_cast<std::int32_t>(s)};
            const auto [taker, giver] = blocksAround(*after.execution, stage, count);
            const std::int32_t line = after.rows[at(row)].line;
            return Error{ErrorCode::ResourceLimit,
                betweenWords(taker, giver) + rowWords(line) + " allows " + counted(count, "micro-batch")
                    + " in flight on stage " + std::to_string(s),
                "allow more in flight on the stage first", "row:" + std::to_string(line)};
        }
    }
    return std::nullopt;
}

/// The fullest of the devices that hold more than `allowed` says, if there is one.
template<typename Allowed> std::optional<Overfull> overfull(const PlanAnswer &answer, const Allowed &allowed)
{
    std::optional<Overfull> worst;
    for (std::size_t d = 0; d < answer.summary.devices.size(); ++d) {
        const double room = allowed(d);
        const std::int64_t peak = answer.summary.devices[d].peak.count;
        if (room > 0 && static_cast<double>(peak) > room
            && (!worst
                || static_cast<double>(peak) - room > static_cast<double>(worst->peak) - worst->allowed))
            worst = Overfull{d, room, peak};
    }
    return worst;
}

std::optional<Overfull> overTheDevices(const PlanAnswer &answer)
{
    return overfull(answer, [&](std::size_t d) {
        return memoryOf(answer.cluster, answer.execution->units, static_cast<std::int32_t>(d));
    });
}

Error memoryError(const PlanAnswer &answer, const Overfull &full, bool ordered, const std::string &limit,
    const std::string &advice, const std::string &where)
{
    const auto [taker, giver] =
        ordered ? blocksAround(answer, full) : std::pair<std::optional<BlockRef>, std::optional<BlockRef>>{};
    return {ErrorCode::ResourceLimit,
        betweenWords(taker, giver) + deviceWord(answer.cluster) + " " + std::to_string(full.device)
            + " would hold " + formatBytes(Bytes{full.peak}) + limit
            + formatBytes(Bytes{static_cast<std::int64_t>(full.allowed)}),
        advice, where};
}

} // namespace

std::optional<Error> limitBrokenBy(const PlanAnswer &after, const PlanAnswer *before)
{
    if (!after.timeline || !after.execution || !after.plan)
        return std::nullopt;
    if (before && !before->isTimed())
        before = nullptr;
    // What moves between devices overfills them whatever the order.
    const bool ordered = !before || !before->plan || isSameButForOrder(*before->plan, *after.plan);
    if (const auto full = overTheDevices(after); full && !(before && overTheDevices(*before)))
        return memoryError(after, *full, ordered, " and has ",
            ordered ? "let backward blocks run first, or recompute" : "choose another place, or recompute",
            "memory");
    if (!ordered) // a limit of a row is in the way like other rows, and can be switched off with the drop
        return std::nullopt;
    std::set<std::string> known; // limits that were broken before
    if (before)
        for (const RowLine &row : before->rows)
            if (row.report.error)
                known.insert(row.text);
    const ConstraintTable table = after.table.table();
    for (std::size_t r = 0; r < table.rows.size() && r < after.rows.size(); ++r) {
        const auto *limit = std::get_if<LimitRule>(&table.rows[r].rule);
        if (!limit || limit->kind != LimitRule::Kind::Memory || !table.rows[r].enabled
            || !after.rows[r].report.error || known.contains(after.rows[r].text))
            continue;
        const auto bytes = static_cast<double>(limit->value);
        const std::int32_t line = after.rows[r].line;
        if (const auto full = overfull(after, [bytes](std::size_t) { return bytes; }))
            return memoryError(after, *full, ordered, ", " + rowWords(line) + " allows ",
                "let backward blocks run first, or switch the row off", "row:" + std::to_string(line));
    }
    return brokenInFlight(after, before);
}

bool isMoved(const Plan &before, const Plan &after)
{
    return before.graph == after.graph && before.microBatches == after.microBatches
        && std::equal(before.decisions.begin(), before.decisions.end(), after.decisions.begin(),
            after.decisions.end(), [](const OperatorDecision &a, const OperatorDecision &b) {
                return a.partition == b.partition && a.recomputeGroup == b.recomputeGroup
                    && a.sharding == b.sharding && a.offloaded == b.offloaded;
            });
}

Proposal proposeUnitMove(const GestureContext &context, const ExecutionPlan &execution, const UnitMove &move)
{
    Proposal checked = proposeBlockOrder(context, move.first, move.second, false);
    if (checked.refusal || move.first == move.second)
        return checked;
    Schedule schedule;
    const ConstraintTable table = context.document.table();
    if (const auto row = scheduleRowAt(table, execution.microBatches))
        schedule = std::get<ScheduleRule>(table.rows[at(row->index)].rule).order; // empty if it has a name
    const auto matches = [](const ScheduledBlock &block, const BlockRef &ref) {
        const bool backward =
            block.block.pass == SegmentKind::Backward || block.block.pass == SegmentKind::InputGradient;
        return block.block.stage == ref.stage && block.microBatch == ref.microBatch
            && block.block.pass != SegmentKind::WeightGradient
            && backward == (ref.direction == Direction::Backward)
            && ref.part.holds(block.block.lane, block.block.slice);
    };
    const auto holds = [&](const BlockRef &ref) {
        return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const auto &rank) {
            return std::any_of(
                rank.begin(), rank.end(), [&](const ScheduledBlock &block) { return matches(block, ref); });
        });
    };
    if (!holds(move.first) || !holds(move.second))
        schedule = listedScheduleOf(execution); // nothing is listed, or not of all blocks
    const std::int32_t unit = std::max(move.unit, 1);
    std::int32_t moved = 0;
    for (auto &rank : schedule.ranks) {
        const auto runs = [&](const BlockRef &ref) {
            return std::any_of(
                rank.begin(), rank.end(), [&](const ScheduledBlock &block) { return matches(block, ref); });
        };
        if (!runs(move.first) || !runs(move.second))
            continue;
        for (std::int32_t k = -execution.microBatches; k <= execution.microBatches; ++k) {
            BlockRef first = move.first;
            BlockRef second = move.second;
            first.microBatch += k * unit;
            second.microBatch += k * unit;
            const auto find = [&](const BlockRef &ref, bool last) {
                std::ptrdiff_t found = -1; // of its slices, the first or the last
                for (std::size_t i = 0; i < rank.size() && (last || found < 0); ++i)
                    found = matches(rank[i], ref) ? static_cast<std::ptrdiff_t>(i) : found;
                return found;
            };
            const std::ptrdiff_t from = find(first, true);
            const std::ptrdiff_t to = find(second, false);
            if (from < 0 || to < 0 || from < to)
                continue;
            // All slices of the block that moves, in their order.
            const BlockRef &mover = move.movesSecond ? second : first;
            std::vector<ScheduledBlock> taken;
            for (const ScheduledBlock &block : rank)
                if (matches(block, mover))
                    taken.push_back(block);
            const ScheduledBlock anchor = rank[static_cast<std::size_t>(move.movesSecond ? from : to)];
            std::erase_if(rank, [&](const ScheduledBlock &block) { return matches(block, mover); });
            auto place = std::find(rank.begin(), rank.end(), anchor);
            if (move.movesSecond)
                ++place;
            rank.insert(place, taken.begin(), taken.end());
            ++moved;
        }
    }
    // Blocks run side by side as long as they are neighbours.
    std::erase_if(schedule.interleaved, [&](const auto &pair) {
        return std::none_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const auto &rank) {
            const auto first = std::find(rank.begin(), rank.end(), pair.first);
            return first != rank.end() && first + 1 != rank.end() && *(first + 1) == pair.second;
        });
    });
    Proposal proposal;
    std::string words = "move " + wordsOf(move.movesSecond ? move.second : move.first)
        + (move.movesSecond ? " behind " + wordsOf(move.first) : " before " + wordsOf(move.second))
        + ", in every unit";
    if (moved == 0)
        proposal.words = std::move(words);
    else
        proposal = proposeSchedule(
            context, {ScheduleKind::Listed, std::move(schedule), execution.microBatches}, std::move(words));
    proposal.operators = checked.operators;
    return proposal;
}

} // namespace planloom
