#include "widgets/timeline/timeline_layout.h"

#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/timeline/timeline_text.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

const TimelineMetrics metrics;
/// Each device a stage of its own, so that there is a bracket.
const int kDeviceHeight = metrics.device(true, metrics.communication);

TEST(TimelineScene, CutsComputeIntoBlocksOfMicroBatches)
{
    const auto scene = sceneForTests({.devices = 1, .microBatches = 2, .operators = 3, .span = 10, .gap = 5});
    std::vector<std::string> labels;
    for (const TimelineBlock &block : scene->lanes[0].blocks)
        labels.push_back(
            labelOf(block) + "@" + std::to_string(block.begin) + "-" + std::to_string(block.end));
    EXPECT_EQ(labels, (std::vector<std::string>{"F0@0-30", "B0@35-65", "F1@70-100", "B1@105-135"}));
    EXPECT_EQ(scene->lanes[0].compute, (LaneRows{0, 12}));
    EXPECT_EQ(scene->lanes[0].rowsOf(QueueKind::Tensor), (LaneRows{12, 14}));
}

TEST(TimelineScene, FindsAllSpansOfAnOperator)
{
    const auto scene = sceneForTests({.devices = 2, .microBatches = 3, .operators = 2});
    EXPECT_EQ(rowsOf(*scene, {OperatorId{0}}).size(), 6u);
    // The first backward operator is served by an all-reduce too.
    EXPECT_EQ(rowsOf(*scene, {OperatorId{2}}).size(), 12u);
    EXPECT_TRUE(rowsOf(*scene, {}).empty());
}

TEST(TimelineLayout, DrawsSymmetricDevicesOnceUntilExpanded)
{
    const auto scene = sceneForTests({.devices = 4});
    const auto folded = layoutRows(*scene, {});
    ASSERT_EQ(folded.size(), 1u);
    EXPECT_EQ(folded[0].title, "GPU 0-3");
    EXPECT_EQ(folded[0].detail, "×4");
    EXPECT_TRUE(folded[0].foldable);
    const auto open = layoutRows(*scene, {.expanded = {0}});
    ASSERT_EQ(open.size(), 4u);
    EXPECT_EQ(open[2].title, "GPU 2");
    EXPECT_TRUE(open[2].expanded);
}

TEST(TimelineLayout, NamesStagesInTheRowsWhereEachHasOne)
{
    const auto scene = sceneForTests({.devices = 3, .symmetric = false});
    const auto rows = layoutRows(*scene, {});
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[1].title, "GPU 1");
    EXPECT_EQ(rows[1].subtitle, "Stage 1");
}

TEST(TimelineLayout, CompactLanesAreOneRow)
{
    const auto scene = sceneForTests({.devices = 3, .symmetric = false});
    const auto rows = layoutRows(*scene, {.laneHeight = LaneHeight::Compact}, 5000);
    ASSERT_EQ(rows.size(), 3u);
    for (const TimelineRow &row : rows) {
        EXPECT_TRUE(row.isCompact());
        EXPECT_EQ(row.height, metrics.compact);
        const auto place = row.placeOf(QueueKind::Compute);
        ASSERT_TRUE(place);
        EXPECT_EQ(place->top, row.computeTop());
        EXPECT_GT(place->height, 8);
        EXPECT_FALSE(row.placeOf(QueueKind::Pipeline));
        EXPECT_FALSE(row.subtitle.empty()); // it says where it belongs: there are no headers
    }
}

TEST(TimelineLayout, AllDevicesFitInWhateverHeightThereIs)
{
    for (const std::int32_t devices : {1, 3, 8, 64})
        for (const int height : {250, 400, 900, 5000}) {
            SCOPED_TRACE(testing::Message() << devices << " devices in " << height);
            const auto scene = sceneForTests({.devices = devices, .symmetric = false});
            const auto rows = layoutRows(*scene, {.laneHeight = LaneHeight::Fit}, height);
            EXPECT_LE(heightOf(rows), height);
            std::int32_t shown = 0;
            int y = 0;
            for (const TimelineRow &row : rows) {
                EXPECT_EQ(row.y, y);
                y += row.height;
                EXPECT_GE(row.blocks, row.kind == TimelineRow::Kind::Device ? 1 : 0);
                EXPECT_LE(row.memoryTop() + row.memory, row.y + row.height);
                shown += row.kind == TimelineRow::Kind::Device ? 1 : 0;
            }
            EXPECT_EQ(shown, devices);
            // Where there is room, they are as they are without it.
            if (heightOf(layoutRows(*scene, {})) <= height) {
                EXPECT_FALSE(rows.back().isCompact());
                EXPECT_GT(rows.back().memory, 0);
            }
        }
}

/// What is selected among communication, and how full a device is, can be seen in lanes of any height but the
/// lowest.
TEST(TimelineLayout, LowLanesKeepStripsOfCommunicationAndMemory)
{
    const auto scene = sceneForTests({.devices = 8, .symmetric = false});
    ASSERT_GT(layoutRows(*scene, {}).back().communication, 0) << "the devices communicate";
    const int high = heightOf(layoutRows(*scene, {}));
    for (int height = 8 * (metrics.compact + 2 * (metrics.thin + 1)); height < high; height += 7) {
        const auto rows = layoutRows(*scene, {.laneHeight = LaneHeight::Fit}, height);
        SCOPED_TRACE(testing::Message() << height << " pixels");
        EXPECT_LE(heightOf(rows), height);
        for (const TimelineRow &row : rows) {
            EXPECT_GE(row.communication, metrics.thin);
            EXPECT_GE(row.memory, metrics.thin);
            EXPECT_LE(row.memoryTop() + row.memory, row.y + row.height);
            EXPECT_GE(row.blocks * 2, metrics.compact) << "blocks can be read and hit";
        }
    }
}

TEST(TimelineLayout, RowsFollowOneAnotherAndUseTheRoomThereIs)
{
    const auto scene = sceneForTests({.devices = 3, .symmetric = false});
    for (const int height : {0, 400, 600, 5000}) {
        const auto rows = layoutRows(*scene, {}, height);
        int y = 0;
        for (const TimelineRow &row : rows) {
            EXPECT_EQ(row.y, y);
            EXPECT_GE(row.operators, metrics.operators);
            EXPECT_LE(row.operators, metrics.operators + metrics.mostStretch);
            EXPECT_EQ(row.memoryTop() + row.memory + metrics.padding, row.y + row.height);
            y += row.height;
        }
        EXPECT_LE(y, std::max(height, 3 * kDeviceHeight));
    }
}

TEST(TimelineScene, CountsTheWarmUpOfAStage)
{
    const auto scene =
        sceneForTests({.devices = 2, .microBatches = 2, .operators = 3, .span = 10, .symmetric = false});
    EXPECT_EQ(scene->lanes[1].warmUp, (WarmUp{StageId{1}, 1, 0, 30, 30}));
    // Without stages there is nothing to fill.
    EXPECT_EQ(sceneForTests({.devices = 2})->lanes[0].warmUp.count, 0);
}

TEST(TimelineScene, FindsTheBlockOfASpan)
{
    const auto scene = sceneForTests({.devices = 2, .microBatches = 2, .operators = 3});
    const DeviceLane &lane = scene->lanes[1];
    EXPECT_EQ(lane.blockOf(lane.compute.begin), 0);
    EXPECT_EQ(lane.blockOf(lane.compute.begin + 5), 1);
    EXPECT_EQ(lane.blockOf(lane.rowsOf(QueueKind::Tensor).begin), -1);
    EXPECT_EQ(operatorsOf(*scene, lane.blocks[1]),
        (std::vector<OperatorId>{OperatorId{3}, OperatorId{4}, OperatorId{5}}));
}

/// An interrupted block is one of its micro-batch all the same; what interrupts it lies within its time.
TEST(TimelineScene, PutsTheSlicesOfABlockTogether)
{
    const auto scene = slicedSceneForTests();
    const DeviceLane &lane = scene->lanes[0];
    std::vector<std::string> labels;
    for (const TimelineBlock &block : lane.blocks)
        labels.push_back(
            labelOf(block) + "@" + std::to_string(block.begin) + "-" + std::to_string(block.end));
    EXPECT_EQ(labels,
        (std::vector<std::string>{"F0@0-3000", "B0@3000-6000", "F1@6000-9000", "B1@9000-13000",
            "Gradients@11000-11500", "Optimizer@14000-16000"}));
    EXPECT_TRUE(lane.blocks[3].interrupted);
    EXPECT_FALSE(lane.blocks[4].interrupted);
    EXPECT_EQ(lane.piecesOf(3), (std::vector<LaneRows>{{9, 11}, {12, 13}}));
    EXPECT_EQ(lane.piecesOf(2), (std::vector<LaneRows>{{6, 9}}));
    EXPECT_EQ(operatorsOf(*scene, lane.blocks[3]),
        (std::vector<OperatorId>{OperatorId{3}, OperatorId{4}, OperatorId{5}}));
    for (const auto &[row, block] : {std::pair{10U, 3}, {11U, 4}, {12U, 3}, {13U, 5}, {15U, -1}})
        EXPECT_EQ(lane.blockOf(row), block) << row;
    // At a time the one that runs; where none does, the one that pauses.
    for (const auto &[time, block] :
        {std::pair{10'500.0, 3}, {11'200.0, 4}, {11'700.0, 3}, {12'500.0, 3}, {13'500.0, -1}, {14'500.0, 5}})
        EXPECT_EQ(lane.blockAt(time), block) << time;
    EXPECT_EQ(lane.firstBlockEndingAfter(11'200), 3u);
    EXPECT_EQ(lane.firstBlockEndingAfter(13'500), 5u);
    EXPECT_EQ(lane.endBefore(4), 13'000) << "behind what goes on";
    EXPECT_EQ(lane.endBefore(5), 13'000);
    EXPECT_EQ(lane.endBefore(6), 16'000);
    EXPECT_EQ(lane.endBefore(0), 0);
}

TEST(TimelineScene, HasATrackForEveryQueueThatIsUsed)
{
    const auto scene = slicedSceneForTests();
    EXPECT_EQ(scene->lanes[0].tracks,
        (std::vector<LaneTrack>{{QueueKind::Tensor, {15, 17}}, {QueueKind::Data, {17, 20}}}));
    EXPECT_EQ(scene->lanes[0].rowsOf(QueueKind::Compute), (LaneRows{0, 15}));
    EXPECT_EQ(scene->lanes[0].rowsOf(QueueKind::Copy), LaneRows{});
    // While a step is measured its tracks stay: its program uses them, whether they have spans yet or not.
    auto begun = std::make_shared<Timeline>(*scene->timeline);
    SpanColumns &spans = begun->spans;
    for (auto *column : {&spans.device, &spans.segment, &spans.instruction, &spans.microBatch})
        column->resize(4);
    spans.queue.resize(4);
    spans.start.resize(4);
    spans.duration.resize(4);
    begun->deviceBegin = {0, 4};
    const auto live = makeTimelineScene(begun, scene->plan, scene->cluster);
    EXPECT_EQ(live->lanes[0].queues(), scene->lanes[0].queues());
    EXPECT_EQ(live->lanes[0].rowsOf(QueueKind::Data), (LaneRows{4, 4}));
}

TEST(TimelineLayout, GrowsByATrackForEachQueue)
{
    const auto one = layoutRows(*sceneForTests({.devices = 1}), {});
    const auto two = layoutRows(*slicedSceneForTests(), {});
    EXPECT_EQ(one[0].communication, metrics.communication);
    EXPECT_EQ(two[0].communication, 2 * metrics.track);
    EXPECT_EQ(two[0].height - one[0].height, 2 * metrics.track - metrics.communication);
    EXPECT_EQ(two[0].memoryTop() + two[0].memory + metrics.padding, two[0].y + two[0].height);
    const auto tensor = two[0].placeOf(QueueKind::Tensor);
    const auto data = two[0].placeOf(QueueKind::Data);
    ASSERT_TRUE(tensor && data);
    EXPECT_GE(tensor->height, 8);
    EXPECT_LT(tensor->top + tensor->height, data->top);
    EXPECT_LE(data->top + data->height, two[0].memoryTop());
    EXPECT_EQ(two[0].placeOf(QueueKind::Pipeline), std::nullopt);
    EXPECT_EQ(layoutRows(*slicedSceneForTests(), {.communication = false})[0].placeOf(QueueKind::Data),
        std::nullopt);
    // What is shown with it, as a prediction behind a measured step, has its queues on the same tracks.
    const auto beside =
        layoutRows(*sceneForTests({.devices = 1}), {}, 0, metrics, slicedSceneForTests().get());
    EXPECT_EQ(beside[0].queues, two[0].queues);
    EXPECT_EQ(beside[0].height, two[0].height);
}

TEST(TimelineLayout, PinsMovesHidesAndFindsLanes)
{
    const auto scene = sceneForTests({.devices = 4, .symmetric = false});
    const auto lanesOf = [&](const LaneArrangement &arrangement) {
        std::vector<std::int32_t> lanes;
        for (const TimelineRow &row : layoutRows(*scene, arrangement))
            lanes.push_back(row.lane);
        return lanes;
    };
    using Lanes = std::vector<std::int32_t>;
    EXPECT_EQ(lanesOf({}), (Lanes{0, 1, 2, 3}));
    EXPECT_EQ(lanesOf({.pinned = {2}}), (Lanes{2, 0, 1, 3}));
    EXPECT_EQ(lanesOf({.filter = "gpu 3"}), (Lanes{3}));
    EXPECT_EQ(lanesOf({.filter = "STAGE 1"}), (Lanes{1}));
    EXPECT_EQ(lanesOf({.filter = "nothing"}), Lanes{});
    const auto rows = layoutRows(*scene, {});
    EXPECT_EQ(lanesOf(withRowMoved({}, rows, 3, 1)), (Lanes{0, 3, 1, 2}));
    EXPECT_EQ(lanesOf(withRowMoved({}, rows, 0, 4)), (Lanes{1, 2, 3, 0}));
    EXPECT_EQ(lanesOf(withRowMoved({}, rows, 2, 2)), (Lanes{0, 1, 2, 3}));
    const auto pinned = layoutRows(*scene, {.pinned = {2, 3}});
    EXPECT_EQ(pinnedHeight(pinned), pinned[0].height + pinned[1].height);
}

TEST(TimelineLayout, FoldsGroupsAway)
{
    auto scene = std::make_shared<TimelineScene>(*sceneForTests({.devices = 4, .symmetric = false}));
    for (DeviceLane &lane : scene->lanes)
        lane.stage = lane.device.index / 2;
    ASSERT_EQ(layoutRows(*scene, {}).size(), 6u);
    const auto rows = layoutRows(*scene, {.collapsed = {"Stage 0"}});
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_FALSE(rows[0].expanded);
    EXPECT_EQ(rows[0].devices.size(), 2u);
    EXPECT_EQ(rows[2].lane, 2);
}

TEST(TimelineLayout, WithoutCommunicationLanesAreLower)
{
    const auto scene = sceneForTests({.devices = 1});
    const auto with = layoutRows(*scene, {});
    const auto without = layoutRows(*scene, {.communication = false});
    EXPECT_LT(without[0].height, with[0].height);
    EXPECT_EQ(without[0].communication, 0);
    EXPECT_EQ(without[0].memoryTop() + without[0].memory + metrics.padding, without[0].y + without[0].height);
}

TEST(TimelineLayout, GrowsWithTheFont)
{
    const TimelineMetrics large = TimelineMetrics::forFont(51);
    EXPECT_EQ(large.ruler, 3 * metrics.ruler);
    EXPECT_EQ(TimelineMetrics::forFont(8).ruler, metrics.ruler);
}

TEST(TimelineLayout, FindsTheRowAtAHeight)
{
    const auto scene = sceneForTests({.devices = 3, .symmetric = false});
    const auto rows = layoutRows(*scene, {});
    EXPECT_EQ(rowAt(rows, -1), -1);
    EXPECT_EQ(rowAt(rows, 0), 0);
    EXPECT_EQ(rowAt(rows, kDeviceHeight), 1);
    EXPECT_EQ(rowAt(rows, 3 * kDeviceHeight), -1);
}

TEST(TimelineText, TellsOperatorTimeAndGroupOfASpan)
{
    const auto scene = sceneForTests({.devices = 2, .microBatches = 2, .operators = 3, .span = 1500});
    const auto facts = factsOfSpan(*scene, 3);
    const auto value = [&](const std::string &name) {
        for (const FactLine &fact : facts) {
            if (fact.name == name)
                return fact.value;
        }
        return std::string("missing");
    };
    EXPECT_EQ(facts.front().value, "backward_3");
    EXPECT_EQ(value("Operator"), "MatMul");
    EXPECT_EQ(value("Micro-batch"), "0 (0-1)");
    EXPECT_EQ(value("Start"), "4.50 µs");
    EXPECT_EQ(value("Duration"), "1.50 µs");
    const auto reduce = factsOfSpan(*scene, scene->lanes[0].rowsOf(QueueKind::Tensor).begin);
    EXPECT_EQ(reduce.front().value, "all-reduce");
    EXPECT_NE(std::find(reduce.begin(), reduce.end(), FactLine{"Group", "GPU 0-1", -1}), reduce.end());
}

std::vector<std::string> headersOf(const std::vector<TimelineRow> &rows)
{
    std::vector<std::string> titles;
    for (const TimelineRow &row : rows) {
        if (row.kind == TimelineRow::Kind::Group)
            titles.push_back(row.title);
    }
    return titles;
}

TEST(TimelineLayout, GroupsByWhatAPersonWants)
{
    const auto model = openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8", {}, {}}, {});
    ASSERT_TRUE(model);
    const auto update = planned(*model, {}, "3d:dp=2,tp=2,pp=2,micro-batches=2,schedule=1f1b", 8);
    ASSERT_TRUE(update);
    LaneArrangement arrangement;
    for (const DeviceLane &lane : update->scene->lanes)
        arrangement.expanded.insert(lane.symmetryClass);
    using Titles = std::vector<std::string>;
    EXPECT_EQ(headersOf(layoutRows(*update->scene, arrangement)), (Titles{"Stage 0", "Stage 1"}));
    arrangement.grouping = LaneGrouping::Stage;
    EXPECT_EQ(headersOf(layoutRows(*update->scene, arrangement)), (Titles{"Stage 0", "Stage 1"}));
    arrangement.grouping = LaneGrouping::Replica;
    const auto replicas = layoutRows(*update->scene, arrangement);
    EXPECT_EQ(headersOf(replicas), (Titles{"Replica 0", "Replica 1"}));
    // Each replica has a device for each part of the model.
    for (const TimelineRow &row : replicas) {
        if (row.kind == TimelineRow::Kind::Group) {
            EXPECT_EQ(row.devices.size(), 4u) << row.title;
        }
    }
    arrangement.grouping = LaneGrouping::None;
    EXPECT_TRUE(headersOf(layoutRows(*update->scene, arrangement)).empty());
    arrangement.grouping = LaneGrouping::Host; // there is but one
    EXPECT_TRUE(headersOf(layoutRows(*update->scene, arrangement)).empty());
}

TEST(TimelineLayout, ShowsThousandsOfHostsThatAreAlikeOnce)
{
    const TimelineSceneSnapshot scene = sceneForTests({.devices = 16'384, .microBatches = 1, .operators = 1});
    const auto rows = layoutRows(*scene, {});
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows.front().detail, "×16384");
    // A person may still look at them host by host, or one by one.
    LaneArrangement arrangement;
    arrangement.grouping = LaneGrouping::Host;
    EXPECT_GT(layoutRows(*scene, arrangement).size(), 1000u);
    arrangement.grouping = LaneGrouping::None;
    arrangement.expanded.insert(0);
    EXPECT_EQ(layoutRows(*scene, arrangement).size(), 16'384u);
}

} // namespace
} // namespace planloom
