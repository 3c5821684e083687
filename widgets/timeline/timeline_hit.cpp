#include "widgets/timeline/timeline_hit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

namespace planloom {

namespace {

constexpr double kSlackPixels = 3; ///< How far beside a small span a pointer still hits it.
constexpr double kGripPixels = 7; ///< To either side of a bracket's end.
constexpr int kBorderPixels = 4; ///< To either side of the border between two lanes.
constexpr double kLeastBubblePixels = 8;
constexpr int kLaneEdgePixels = 5;

void hitCompute(const TimelineCanvas &canvas, const DeviceLane &lane, bool edge, TimelineHit &hit)
{
    const SpanColumns &spans = canvas.scene->timeline->spans;
    const double slack = kSlackPixels * canvas.axis.nanosecondsPerPixel;
    const std::size_t found = spanAt(spans, lane.compute, hit.time, slack);
    if (found != lane.compute.end) {
        hit.span = static_cast<std::int64_t>(found);
        hit.block = lane.blockOf(found);
        const bool alone = canvas.pixels(spans.duration[found]) >= kFoldPixels;
        hit.part = !alone ? HitPart::Folded : edge ? HitPart::SpanEdge : HitPart::Span;
        return;
    }
    const auto step = canvas.scene->timeline->step.count();
    if (hit.time < 0 || hit.time >= static_cast<double>(step))
        return;
    const LaneRows behind = rowsIn(spans, lane.compute, hit.time, static_cast<double>(step) + 1);
    hit.idleEnd = behind.begin < lane.compute.end ? spans.start[behind.begin] : step;
    hit.idleBegin = behind.begin > lane.compute.begin
        ? spans.start[behind.begin - 1] + spans.duration[behind.begin - 1]
        : 0;
    if (canvas.pixels(hit.idleEnd - hit.idleBegin) < kLeastBubblePixels)
        return;
    hit.part = HitPart::Idle;
    hit.block = behind.begin < lane.compute.end ? lane.blockOf(behind.begin)
                                                : static_cast<std::int32_t>(lane.blocks.size());
}

} // namespace

TimelineHit hitAt(const TimelineCanvas &canvas, double x, int y)
{
    TimelineHit hit;
    hit.time = canvas.axis.timeAt(x);
    hit.row = rowAt(*canvas.rows, y);
    if (hit.row < 0)
        return hit;
    const TimelineRow &row = (*canvas.rows)[static_cast<std::size_t>(hit.row)];
    if (row.kind == TimelineRow::Kind::Group || x < 0) {
        const bool edge = y >= row.y + row.height - kLaneEdgePixels;
        hit.part = edge                            ? HitPart::LaneEdge
            : row.kind == TimelineRow::Kind::Group ? HitPart::Group
                                                   : HitPart::Header;
        return hit;
    }
    const DeviceLane &lane = canvas.laneOf(row);
    const SpanColumns &spans = canvas.scene->timeline->spans;
    if (row.bracket > 0 && y >= row.bracketTop() - 2 && y < row.computeTop()) {
        const double end = canvas.axis.xOf(static_cast<double>(lane.warmUp.end));
        if (std::abs(x - end) <= kGripPixels)
            hit.part = HitPart::BracketEnd;
        else if (x < end && x >= canvas.axis.xOf(static_cast<double>(lane.warmUp.begin)))
            hit.part = HitPart::Bracket;
        return hit;
    }
    if (y >= row.computeTop() && y < row.operatorsTop()) {
        hit.block = lane.blockAt(hit.time);
        if (hit.block >= 0) {
            hit.part = HitPart::Block;
            return hit;
        }
        hitCompute(canvas, lane, false, hit);
        return hit;
    }
    if (y >= row.operatorsTop() && y < row.operatorsTop() + row.operators + row.gap) {
        const int edge = std::max(row.operators / 6, 3);
        hitCompute(canvas, lane, y >= row.operatorsTop() + row.operators - edge, hit);
        return hit;
    }
    if (row.communication > 0 && y >= row.communicationTop()
        && y < row.communicationTop() + row.communication) {
        // A thin strip is all queues': the first of them that runs.
        const auto queue = queueAt(row.queues, y - row.communicationTop(), row.communication);
        for (const LaneTrack &track : lane.tracks) {
            if (queue && track.queue != *queue)
                continue;
            const std::size_t found =
                spanAt(spans, track.rows, hit.time, kSlackPixels * canvas.axis.nanosecondsPerPixel);
            if (found == track.rows.end)
                continue;
            hit.span = static_cast<std::int64_t>(found);
            hit.part = HitPart::Communication;
            break;
        }
        return hit;
    }
    if (y >= row.memoryTop() && y < row.memoryTop() + row.memory)
        hit.part = HitPart::Memory;
    return hit;
}

std::vector<OperatorId> operatorsOfRow(const TimelineCanvas &canvas, std::int32_t row)
{
    std::vector<OperatorId> operators;
    const TimelineRow &of = (*canvas.rows)[static_cast<std::size_t>(row)];
    std::set<std::int32_t> seen; // of symmetric devices, one says it for all
    for (const DeviceId device : of.devices) {
        const DeviceLane &lane = canvas.scene->lanes[static_cast<std::size_t>(device.index)];
        if (lane.symmetryClass >= 0 && !seen.insert(lane.symmetryClass).second)
            continue;
        for (const TimelineBlock &block : lane.blocks) {
            if (block.kind != SegmentKind::Forward || block.microBatch != 0)
                continue;
            const auto more = operatorsOf(*canvas.scene, block);
            operators.insert(operators.end(), more.begin(), more.end());
        }
        if (of.kind == TimelineRow::Kind::Device)
            break; // devices of one lane are alike
    }
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    return operators;
}

DragLock dragLockOf(double dx, double dy)
{
    if (std::hypot(dx, dy) < kDragPixels)
        return DragLock::None;
    return std::abs(dx) > std::abs(dy) ? DragLock::Horizontal : DragLock::Vertical;
}

LaneTarget laneTargetAt(const TimelineCanvas &canvas, int y)
{
    LaneTarget target;
    const auto &rows = *canvas.rows;
    target.row = rowAt(rows, y);
    if (target.row < 0)
        return target;
    const TimelineRow &row = rows[static_cast<std::size_t>(target.row)];
    target.devices = row.devices;
    target.top = row.y;
    target.bottom = row.y + row.height;
    target.words = row.title;
    // The border between two lanes of one host stands for that host.
    const std::int32_t other = y - row.y < kBorderPixels ? target.row - 1
        : row.y + row.height - y <= kBorderPixels        ? target.row + 1
                                                         : -1;
    if (other < 0 || static_cast<std::size_t>(other) >= rows.size() || row.kind != TimelineRow::Kind::Device
        || rows[static_cast<std::size_t>(other)].kind != TimelineRow::Kind::Device)
        return target;
    const std::int32_t host = canvas.laneOf(row).host;
    if (canvas.laneOf(rows[static_cast<std::size_t>(other)]).host != host
        || canvas.scene->lanes.back().host == canvas.scene->lanes.front().host)
        return target;
    target.devices.clear();
    for (const DeviceLane &lane : canvas.scene->lanes) {
        if (lane.host == host)
            target.devices.push_back(lane.device);
    }
    for (const TimelineRow &each : rows) {
        if (each.kind == TimelineRow::Kind::Device && canvas.laneOf(each).host == host) {
            target.top = std::min(target.top, each.y);
            target.bottom = std::max(target.bottom, each.y + each.height);
        }
    }
    target.words = "Host " + std::to_string(host);
    return target;
}

std::vector<std::int32_t> deviceRowsBetween(
    const std::vector<TimelineRow> &rows, std::int32_t first, std::int32_t last)
{
    std::vector<std::int32_t> between;
    if (first > last)
        std::swap(first, last);
    for (std::int32_t row = std::max(first, 0); row <= last && static_cast<std::size_t>(row) < rows.size();
         ++row) {
        if (rows[static_cast<std::size_t>(row)].kind == TimelineRow::Kind::Device)
            between.push_back(row);
    }
    return between;
}

std::int32_t deviceRowBeside(const std::vector<TimelineRow> &rows, std::int32_t row, std::int32_t by)
{
    const std::int32_t step = by < 0 ? -1 : 1;
    std::int32_t left = std::abs(by);
    while (left > 0) {
        row += step;
        if (row < 0 || static_cast<std::size_t>(row) >= rows.size())
            return -1;
        if (rows[static_cast<std::size_t>(row)].kind == TimelineRow::Kind::Device)
            --left;
    }
    return row;
}

std::int32_t rowOfOperators(const TimelineCanvas &canvas, const std::vector<OperatorId> &operators)
{
    std::int32_t best = -1;
    const TimelineScene &scene = *canvas.scene;
    for (const OperatorId op : operators) {
        const auto index = static_cast<std::size_t>(op.index);
        if (!op.valid() || index >= scene.plan->placement.size())
            continue;
        for (const DeviceId device : scene.plan->placement[index]) {
            const std::int32_t row = rowOfDevice(*canvas.rows, device);
            if (row >= 0 && (best < 0 || row < best))
                best = row;
        }
    }
    return best;
}

Caret blockCaretAt(const DeviceLane &lane, double time)
{
    // What interrupts a block ends with it, as far as places between blocks go: it is no place of its own.
    Caret caret;
    for (std::size_t high = lane.blocks.size(); caret.before < high;) {
        const std::size_t block = caret.before + (high - caret.before) / 2;
        const auto begin = static_cast<double>(lane.blocks[block].begin);
        if ((begin + static_cast<double>(lane.latestEnd[block])) / 2 <= time)
            caret.before = block + 1;
        else
            high = block;
    }
    caret.time = static_cast<double>(lane.endBefore(caret.before));
    if (caret.before < lane.blocks.size())
        caret.time = std::max(caret.time, static_cast<double>(lane.blocks[caret.before].begin));
    return caret;
}

Caret spanCaretAt(const SpanColumns &spans, LaneRows rows, double time)
{
    Caret caret{rows.begin, 0};
    std::size_t high = rows.end;
    while (caret.before < high) {
        const std::size_t row = caret.before + (high - caret.before) / 2;
        if (static_cast<double>(spans.start[row]) + static_cast<double>(spans.duration[row]) / 2 <= time)
            caret.before = row + 1;
        else
            high = row;
    }
    if (caret.before < rows.end)
        caret.time = static_cast<double>(spans.start[caret.before]);
    else if (rows.end > rows.begin)
        caret.time = static_cast<double>(spans.start[rows.end - 1] + spans.duration[rows.end - 1]);
    return caret;
}

std::size_t besideCaret(
    const TimelineScene &scene, const TimelineBlock &block, std::size_t own, std::size_t caret)
{
    const bool earlier = caret <= own;
    std::size_t row = earlier ? caret : caret - 1;
    while (row != own && !scene.isIn(block, row))
        row += earlier ? 1 : static_cast<std::size_t>(-1);
    return row;
}

BlockMove blockMoveTo(const DeviceLane &lane, std::size_t block, std::size_t caret)
{
    if (caret <= block) {
        for (std::size_t other = caret; other < block; ++other) {
            if (lane.blocks[other].isOrdered())
                return {static_cast<std::int32_t>(block), static_cast<std::int32_t>(other)};
        }
        return {};
    }
    for (std::size_t other = std::min(caret, lane.blocks.size()); other-- > block + 1;) {
        if (lane.blocks[other].isOrdered())
            return {static_cast<std::int32_t>(other), static_cast<std::int32_t>(block)};
    }
    return {};
}

std::int32_t inFlightAt(const WarmUp &warmUp, double time, std::int32_t microBatches)
{
    const double each = std::max(static_cast<double>(warmUp.each), 1.0);
    const double begin = static_cast<double>(warmUp.begin);
    // Blocks that are there count with where they end; beyond them each takes as long as the first.
    const double end = static_cast<double>(warmUp.end);
    const double pace = warmUp.count > 0 && end > begin ? (end - begin) / warmUp.count : each;
    const double count = time <= end ? (time - begin) / pace : warmUp.count + (time - end) / each;
    return std::clamp(static_cast<std::int32_t>(std::lround(count)), 1, std::max(microBatches, 1));
}

} // namespace planloom
