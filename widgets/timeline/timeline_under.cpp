#include "widgets/timeline/timeline_under.h"

#include "widgets/common/format.h"
#include "widgets/timeline/timeline_text.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::size_t kMostOfAKind = 12; ///< Lines of a menu.

} // namespace

std::vector<ThingUnder> thingsUnder(const TimelineCanvas &canvas, double x, int y)
{
    std::vector<ThingUnder> things;
    const std::int32_t at = rowAt(*canvas.rows, y);
    if (at < 0 || (*canvas.rows)[static_cast<std::size_t>(at)].kind != TimelineRow::Kind::Device)
        return things;
    const TimelineScene &scene = *canvas.scene;
    const TimelineRow &row = (*canvas.rows)[static_cast<std::size_t>(at)];
    const DeviceLane &lane = canvas.laneOf(row);
    const SpanColumns &spans = scene.timeline->spans;
    things.push_back({ThingUnder::Kind::Lane, {row.lane, LanePart::Block, -1, -1}, 0,
        "lane " + row.title + (row.subtitle.empty() ? std::string{} : ", " + row.subtitle)});
    if (x < 0)
        return things;
    // The pixel under the pointer, and one to either side.
    const double begin = canvas.axis.timeAt(x - 1);
    const double end = canvas.axis.timeAt(x + 2);
    const double time = canvas.axis.timeAt(x + 0.5);
    if (row.bracket > 0 && static_cast<double>(lane.warmUp.begin) <= end
        && begin <= static_cast<double>(lane.warmUp.end)) {
        things.push_back({ThingUnder::Kind::Bracket, {row.lane, LanePart::Bracket, -1, -1}, 0,
            "warm-up, " + std::to_string(lane.warmUp.count) + " in flight"});
    }
    std::size_t count = 0;
    for (std::size_t block = lane.firstBlockEndingAfter(begin); block < lane.blocks.size()
         && static_cast<double>(lane.blocks[block].begin) < end && count < kMostOfAKind;
         ++block) {
        if (static_cast<double>(lane.blocks[block].end) <= begin)
            continue; // it interrupted one that goes on
        ++count;
        things.push_back(
            {ThingUnder::Kind::Block, {row.lane, LanePart::Block, static_cast<std::int32_t>(block), -1}, 0,
                "block " + labelOf(lane.blocks[block]) + ", "
                    + formatNanoseconds(lane.blocks[block].end - lane.blocks[block].begin)});
    }
    const auto add = [&](ThingUnder::Kind kind, LanePart part, LaneRows rows) {
        const LaneRows here = rowsIn(spans, rows, begin, end);
        for (std::size_t span = here.begin; span < here.end && span - here.begin < kMostOfAKind; ++span) {
            const bool compute = part == LanePart::Span;
            std::string words = labelOf(scene, span) + ", " + formatNanoseconds(spans.duration[span]);
            if (!compute)
                words += ", " + formatBytes(bytesOf(scene, span)) + ", " + wordsOf(spans.queue[span]);
            things.push_back(
                {kind, {row.lane, part, compute ? lane.blockOf(span) : -1, static_cast<std::int64_t>(span)},
                    0, std::move(words)});
        }
        if (here.end - here.begin > kMostOfAKind)
            things.back().words += " … and "
                + formatCount(static_cast<std::int64_t>(here.end - here.begin - kMostOfAKind)) + " more";
        return here.end > here.begin;
    };
    if (!add(ThingUnder::Kind::Span, LanePart::Span, lane.compute) && time >= 0
        && time < static_cast<double>(scene.timeline->step.count())) {
        const LaneRows behind =
            rowsIn(spans, lane.compute, time, static_cast<double>(scene.timeline->step.count()) + 1);
        const std::int64_t idleEnd =
            behind.begin < lane.compute.end ? spans.start[behind.begin] : scene.timeline->step.count();
        const std::int64_t idleBegin = behind.begin > lane.compute.begin
            ? spans.start[behind.begin - 1] + spans.duration[behind.begin - 1]
            : 0;
        const std::int32_t block = behind.begin < lane.compute.end
            ? lane.blockOf(behind.begin)
            : static_cast<std::int32_t>(lane.blocks.size());
        things.push_back({ThingUnder::Kind::Idle, {row.lane, LanePart::Idle, block, -1}, time,
            "idle, " + formatNanoseconds(idleEnd - idleBegin)});
    }
    for (const LaneTrack &track : lane.tracks) {
        if (row.placeOf(track.queue))
            add(ThingUnder::Kind::Communication, LanePart::Communication, track.rows);
    }
    const auto device = static_cast<std::size_t>(lane.device.index);
    if (device < scene.timeline->memory.size() && time >= 0
        && time < static_cast<double>(scene.timeline->step.count())) {
        const std::int64_t entry = lane.memory.largestIn(
            scene.timeline->memory[device], time, time + canvas.axis.nanosecondsPerPixel);
        if (entry >= 0) {
            things.push_back({ThingUnder::Kind::Memory, {row.lane, LanePart::Block, -1, -1}, time,
                "memory, " + formatBytes({lane.memory.total(static_cast<std::size_t>(entry))}) + " in use"});
        }
    }
    return things;
}

} // namespace planloom
