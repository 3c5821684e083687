#include "widgets/timeline/timeline_hit.h"

#include "tests/widgets/timeline/scene_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Three devices, each a stage: F0 B0 F1 B1, three operators of 1,000 ns in each, pauses of 1,000 ns.
struct Fixture {
    TimelineSceneSnapshot scene = sceneForTests(
        {.devices = 3, .microBatches = 2, .operators = 3, .span = 1000, .gap = 1000, .symmetric = false});
    std::vector<TimelineRow> rows = layoutRows(*scene, {});
    TimelineCanvas canvas{scene.get(), &rows, {0, 20}, 1000};
};

TEST(HitAt, TellsThePartsOfALane)
{
    const Fixture of;
    const TimelineRow &row = of.rows[1];
    EXPECT_EQ(hitAt(of.canvas, -5, row.y + 20).part, HitPart::Header);
    const TimelineHit block = hitAt(of.canvas, 50, row.computeTop() + 2);
    EXPECT_EQ(block.part, HitPart::Block);
    EXPECT_EQ(block.block, 0);
    EXPECT_EQ(block.row, 1);
    const TimelineHit span = hitAt(of.canvas, 75, row.operatorsTop() + 2);
    EXPECT_EQ(span.part, HitPart::Span);
    EXPECT_EQ(span.span, static_cast<std::int64_t>(of.scene->lanes[1].compute.begin) + 1);
    EXPECT_EQ(hitAt(of.canvas, 75, row.operatorsTop() + row.operators - 1).part, HitPart::SpanEdge);
    const TimelineHit idle = hitAt(of.canvas, 175, row.operatorsTop() + 2);
    EXPECT_EQ(idle.part, HitPart::Idle);
    EXPECT_EQ(idle.idleBegin, 3000);
    EXPECT_EQ(idle.idleEnd, 4000);
    EXPECT_EQ(idle.block, 1);
    EXPECT_EQ(hitAt(of.canvas, 150, row.bracketTop() + 3).part, HitPart::BracketEnd);
    EXPECT_EQ(hitAt(of.canvas, 60, row.bracketTop() + 3).part, HitPart::Bracket);
    EXPECT_EQ(hitAt(of.canvas, 360, row.communicationTop() + 2).part, HitPart::Communication);
    EXPECT_EQ(hitAt(of.canvas, 60, row.memoryTop() + 2).part, HitPart::Memory);
    EXPECT_EQ(hitAt(of.canvas, 60, of.rows.back().y + 1000).part, HitPart::None);
}

/// A lane with two tracks and an interrupted block.
struct Sliced {
    TimelineSceneSnapshot scene = slicedSceneForTests();
    std::vector<TimelineRow> rows = layoutRows(*scene, {});
    TimelineCanvas canvas{scene.get(), &rows, {0, 20}, 1000};
    double x(double nanoseconds) const { return canvas.axis.xOf(nanoseconds); }
};

TEST(HitAt, FindsSpansThatRunSideBySideOnTheirTracks)
{
    const Sliced of;
    const auto spanAtTrack = [&](QueueKind queue, double time) {
        const TrackPlace place = *of.rows[0].placeOf(queue);
        const TimelineHit hit = hitAt(of.canvas, of.x(time), place.top + place.height / 2);
        EXPECT_TRUE(hit.span < 0 || hit.part == HitPart::Communication);
        return hit.span;
    };
    EXPECT_EQ(spanAtTrack(QueueKind::Tensor, 13'500), 16);
    EXPECT_EQ(spanAtTrack(QueueKind::Data, 13'500), 19);
    EXPECT_EQ(spanAtTrack(QueueKind::Tensor, 6500), 15);
    EXPECT_EQ(spanAtTrack(QueueKind::Data, 6500), -1);
    EXPECT_EQ(spanAtTrack(QueueKind::Data, 10'500), 17);
    EXPECT_EQ(spanAtTrack(QueueKind::Tensor, 10'500), -1);
}

TEST(HitAt, FindsABlockInEachOfItsPieces)
{
    const Sliced of;
    const auto blockAt = [&](double time) {
        const TimelineHit hit = hitAt(of.canvas, of.x(time), of.rows[0].computeTop() + 2);
        return hit.part == HitPart::Block ? hit.block : -1;
    };
    EXPECT_EQ(blockAt(10'500), 3);
    EXPECT_EQ(blockAt(11'250), 4);
    EXPECT_EQ(blockAt(11'750), 3) << "it waits there";
    EXPECT_EQ(blockAt(12'500), 3);
    EXPECT_EQ(blockAt(13'500), -1);
    const TimelineHit reduction = hitAt(of.canvas, of.x(11'250), of.rows[0].operatorsTop() + 2);
    EXPECT_EQ(reduction.span, 11);
    EXPECT_EQ(reduction.block, 4) << "a hand takes the reduction, not the block that it interrupts";
}

TEST(Caret, IsNeverWithinABlockThatIsInterrupted)
{
    const Sliced of;
    const DeviceLane &lane = of.scene->lanes[0];
    EXPECT_EQ(blockCaretAt(lane, 10'900), (Caret{3, 9000}));
    for (const double time : {11'100.0, 12'900.0}) {
        const Caret caret = blockCaretAt(lane, time);
        EXPECT_EQ(caret.time, caret.before == 5 ? 14'000 : 13'000) << time;
        EXPECT_FALSE(blockMoveTo(lane, 3, caret.before).changes()) << "behind itself";
        const BlockMove before = blockMoveTo(lane, 2, caret.before);
        EXPECT_EQ(before, (BlockMove{3, 2})) << "F1 behind B1, not into it";
    }
    EXPECT_EQ(blockMoveTo(lane, 5, 4), BlockMove{}) << "what is reduced is no slot";
}

TEST(Caret, PassesOverWhatInterruptsItsBlock)
{
    const Sliced of;
    const TimelineBlock &block = of.scene->lanes[0].blocks[3]; // rows 9, 10 and 12; 11 is another's
    EXPECT_EQ(besideCaret(*of.scene, block, 12, 11), 12u) << "nothing of its own lies there";
    EXPECT_EQ(besideCaret(*of.scene, block, 12, 10), 10u);
    EXPECT_EQ(besideCaret(*of.scene, block, 9, 12), 10u);
    EXPECT_EQ(besideCaret(*of.scene, block, 9, 13), 12u);
    EXPECT_EQ(besideCaret(*of.scene, block, 10, 12), 10u);
}

TEST(HitAt, FoldsWhatIsTooSmall)
{
    Fixture of;
    of.canvas.axis.nanosecondsPerPixel = 1000;
    const TimelineHit hit = hitAt(of.canvas, 1.5, of.rows[0].operatorsTop() + of.rows[0].operators - 1);
    EXPECT_EQ(hit.part, HitPart::Folded);
    EXPECT_TRUE(hit.movable());
}

TEST(DragLock, BeginsBehindSixPixelsAndFollowsTheLongerWay)
{
    EXPECT_EQ(dragLockOf(4, 4), DragLock::None);
    EXPECT_EQ(dragLockOf(0, 5.9), DragLock::None);
    EXPECT_EQ(dragLockOf(0, 6), DragLock::Vertical);
    EXPECT_EQ(dragLockOf(-6, 3), DragLock::Horizontal);
    EXPECT_EQ(dragLockOf(5, -8), DragLock::Vertical);
}

TEST(LaneTarget, IsALaneWithAllItsDevices)
{
    const auto scene = sceneForTests({.devices = 4});
    const auto folded = layoutRows(*scene, {});
    const TimelineCanvas canvas{scene.get(), &folded, {0, 20}, 1000};
    const LaneTarget all = laneTargetAt(canvas, 30);
    EXPECT_EQ(all.devices.size(), 4u);
    EXPECT_EQ(all.words, "GPU 0-3");
    EXPECT_FALSE(laneTargetAt(canvas, folded.back().y + folded.back().height).valid());
    const Fixture of;
    EXPECT_EQ(laneTargetAt(of.canvas, of.rows[2].y + 20).devices, std::vector<DeviceId>{DeviceId{2}});
}

TEST(LaneTarget, AtABorderWithinAHostIsTheHost)
{
    auto scene = std::make_shared<TimelineScene>(*sceneForTests({.devices = 4, .symmetric = false}));
    for (DeviceLane &lane : scene->lanes)
        lane.host = lane.device.index / 2;
    const auto rows = layoutRows(*scene, {});
    const TimelineCanvas canvas{scene.get(), &rows, {0, 20}, 1000};
    const LaneTarget border = laneTargetAt(canvas, rows[3].y + 1);
    EXPECT_EQ(border.words, "Host 1");
    EXPECT_EQ(border.devices, (std::vector<DeviceId>{DeviceId{2}, DeviceId{3}}));
    EXPECT_EQ(border.top, rows[2].y);
    // Between two hosts there is no one host.
    EXPECT_EQ(laneTargetAt(canvas, rows[2].y + 1).devices, std::vector<DeviceId>{DeviceId{2}});
}

TEST(Carets, StandAtTheBorderBeforeTheMiddleOfABlock)
{
    const Fixture of;
    const DeviceLane &lane = of.scene->lanes[0];
    EXPECT_EQ(blockCaretAt(lane, -500), (Caret{0, 0}));
    EXPECT_EQ(blockCaretAt(lane, 1400), (Caret{0, 0}));
    EXPECT_EQ(blockCaretAt(lane, 1600), (Caret{1, 4000}));
    EXPECT_EQ(blockCaretAt(lane, 3500), (Caret{1, 4000}));
    EXPECT_EQ(blockCaretAt(lane, 99'000), (Caret{4, 15'000}));
    const SpanColumns &spans = of.scene->timeline->spans;
    EXPECT_EQ(spanCaretAt(spans, lane.blocks[1].rows, 4400), (Caret{3, 4000}));
    EXPECT_EQ(spanCaretAt(spans, lane.blocks[1].rows, 5600), (Caret{5, 6000}));
    EXPECT_EQ(spanCaretAt(spans, lane.blocks[1].rows, 9000), (Caret{6, 7000}));
}

TEST(BlockMove, SaysWhichBlockComesFirst)
{
    auto scene = std::make_shared<TimelineScene>(
        *sceneForTests({.devices = 1, .microBatches = 3, .operators = 2, .span = 10, .gap = 5}));
    DeviceLane lane = scene->lanes[0]; // F0 B0 F1 B1 F2 B2
    EXPECT_FALSE(blockMoveTo(lane, 2, 2).changes());
    EXPECT_FALSE(blockMoveTo(lane, 2, 3).changes());
    EXPECT_EQ(blockMoveTo(lane, 2, 1), (BlockMove{2, 1})); // F1 before B0
    EXPECT_EQ(blockMoveTo(lane, 2, 0), (BlockMove{2, 0}));
    EXPECT_EQ(blockMoveTo(lane, 2, 4), (BlockMove{3, 2})); // B1 before F1
    EXPECT_EQ(blockMoveTo(lane, 2, 6), (BlockMove{5, 2}));
    // What runs once per step has no place of its own to come before.
    lane.blocks[5].kind = SegmentKind::Optimizer;
    EXPECT_EQ(blockMoveTo(lane, 2, 6), (BlockMove{4, 2}));
    lane.blocks[3].kind = SegmentKind::Transfer;
    EXPECT_FALSE(blockMoveTo(lane, 2, 4).changes());
}

TEST(InFlight, FollowsTheEndOfTheBracket)
{
    const WarmUp warmUp{StageId{0}, 3, 1000, 4000, 1000};
    EXPECT_EQ(inFlightAt(warmUp, 4000, 8), 3);
    EXPECT_EQ(inFlightAt(warmUp, 3100, 8), 2);
    EXPECT_EQ(inFlightAt(warmUp, -9000, 8), 1);
    EXPECT_EQ(inFlightAt(warmUp, 5600, 8), 5);
    EXPECT_EQ(inFlightAt(warmUp, 1e9, 8), 8);
}

TEST(DeviceRows, AreCountedWithoutHeaders)
{
    std::vector<TimelineRow> rows(5);
    rows[0].kind = rows[3].kind = TimelineRow::Kind::Group;
    EXPECT_EQ(deviceRowBeside(rows, 2, 1), 4);
    EXPECT_EQ(deviceRowBeside(rows, 4, -2), 1);
    EXPECT_EQ(deviceRowBeside(rows, 1, -1), -1);
    EXPECT_EQ(deviceRowBeside(rows, 4, 1), -1);
    EXPECT_EQ(deviceRowsBetween(rows, 4, 1), (std::vector<std::int32_t>{1, 2, 4}));
}

} // namespace
} // namespace planloom
