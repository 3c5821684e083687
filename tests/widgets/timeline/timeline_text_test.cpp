#include "widgets/timeline/timeline_text.h"

#include "engine/base/words.h"
#include "tests/widgets/timeline/scene_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

std::string valueOf(const std::vector<FactLine> &facts, const std::string &name)
{
    for (const FactLine &fact : facts) {
        if (fact.name == name)
            return fact.value;
    }
    return "(none)";
}

TEST(TimelineText, SaysOfAMicroBatchWhereItCountsFrom)
{
    const auto scene = sceneForTests({.devices = 1, .microBatches = 2, .operators = 3});
    const DeviceLane &lane = scene->lanes.front();
    const auto second = static_cast<std::size_t>(lane.blockOf(lane.compute.end - 1));
    ASSERT_EQ(labelOf(lane.blocks[second]), "B1");
    EXPECT_EQ(valueOf(factsOfBlock(*scene, lane, second), "Micro-batch"), "1 (0-1)");
    EXPECT_EQ(valueOf(factsOfSpan(*scene, lane.compute.end - 1), "Micro-batch"), "1 (0-1)");
    EXPECT_EQ(valueOf(factsOfSpan(*scene, lane.compute.begin), "Micro-batch"), "0 (0-1)");
}

TEST(TimelineText, NamesTheQueueAndWhatIsLaunchedTogether)
{
    const auto scene = slicedSceneForTests();
    const auto first = factsOfSpan(*scene, 17);
    EXPECT_EQ(valueOf(first, "Runs in"), "data queue");
    EXPECT_EQ(valueOf(first, "Launched"), "together with 1 other");
    EXPECT_EQ(valueOf(first, "Bucket"), "1 of 2");
    const auto joined = factsOfSpan(*scene, 18);
    EXPECT_EQ(valueOf(joined, "Launched"), "together with 1 other");
    const auto alone = factsOfSpan(*scene, 19);
    EXPECT_EQ(valueOf(alone, "Launched"), "(none)");
    EXPECT_EQ(valueOf(alone, "Bucket"), "2 of 2");
    EXPECT_EQ(valueOf(factsOfSpan(*scene, 15), "Runs in"), "tensor queue");
    EXPECT_EQ(valueOf(factsOfSpan(*scene, 0), "Runs in"), "(none)") << "compute runs where it is drawn";
    EXPECT_EQ(valueOf(factsOfSpan(*scene, 14), "Launched"), "together with 1 other");
    EXPECT_EQ(
        sentenceOf(*scene, 17), "all-reduce, gradients over replicas, stage 0 on GPU 0, 800 ns, data queue");
}

TEST(TimelineText, CountsAllOfALaunch)
{
    const auto scene = slicedSceneForTests();
    auto plan = std::make_shared<ExecutionPlan>(*scene->plan);
    // Three updates launched at once, and one of another launch behind them.
    auto &updates = plan->devices[0].segments.edit()[4].instructions;
    updates = {updates[0], updates[1], updates[1], updates[0]};
    // What waits in another queue between them does not part them.
    Instruction gather = plan->devices[0].segments[3].instructions[0];
    updates.insert(updates.begin() + 1, gather);
    auto timeline = std::make_shared<Timeline>(*scene->timeline);
    timeline->spans.instruction[14] = 3;
    const auto changed = makeTimelineScene(timeline, plan, scene->cluster);
    EXPECT_EQ(valueOf(factsOfSpan(*changed, 13), "Launched"), "together with 2 others");
    EXPECT_EQ(valueOf(factsOfSpan(*changed, 14), "Launched"), "together with 2 others");
}

TEST(TimelineText, CountsOfABlockItsOwnSpans)
{
    const auto scene = slicedSceneForTests();
    const auto facts = factsOfBlock(*scene, scene->lanes[0], 3);
    EXPECT_EQ(valueOf(facts, "Spans"), "3");
    EXPECT_EQ(valueOf(facts, "Duration"), "4.00 µs");
    EXPECT_EQ(valueOf(facts, "Busy"), "3.00 µs");
    EXPECT_EQ(valueOf(factsOfBlock(*scene, scene->lanes[0], 4), "Spans"), "1");
}

/// However far out it is looked at, what stands over the folded spans of a block is what its tooltip says.
TEST(FoldedRuns, HaveTheSpansOfTheirBlockAndNoOthers)
{
    const auto scene = sceneForTests({.devices = 2, .microBatches = 4, .operators = 77, .span = 4'437});
    const DeviceLane &lane = scene->lanes.front();
    int whole = 0;
    for (double scale = 3'000; scale < 40'000; scale *= 1.013) { // nanoseconds a pixel
        const TimeAxis axis{0, scale};
        std::vector<DrawRecord> records;
        foldSpans(scene->timeline->spans, scene->before, lane.compute, axis,
            static_cast<double>(scene->timeline->step.count()) / scale + 1, records);
        std::vector<std::size_t> spans(lane.blocks.size(), 0);
        for (const FoldedRun &run : foldedRuns(lane, records)) {
            const auto block = static_cast<std::size_t>(lane.blockOf(run.rows.begin));
            ASSERT_LT(run.rows.begin, run.rows.end);
            ASSERT_EQ(lane.blockOf(run.rows.end - 1), static_cast<std::int32_t>(block)) << scale;
            spans[block] += run.rows.end - run.rows.begin;
            const LaneRows &own = lane.blocks[block].rows;
            if (run.rows.end - run.rows.begin != own.end - own.begin)
                continue; // with spans beside it that are drawn alone
            ++whole;
            const auto facts = factsOfBlock(*scene, lane, block);
            EXPECT_EQ(
                labelOfRun(*scene, run.rows), "×" + valueOf(facts, "Spans") + " · " + valueOf(facts, "Busy"));
        }
        for (const std::size_t count : spans)
            ASSERT_LE(count, 77U) << scale;
    }
    EXPECT_GT(whole, 1000) << "most blocks are one run";
}

} // namespace
} // namespace planloom
