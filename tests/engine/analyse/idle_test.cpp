#include "engine/analyse/idle_chain.h"
#include "engine/analyse/idle_times.h"

#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <numeric>

namespace planloom {
namespace {

constexpr std::int64_t kIdleForward = 1000;
constexpr std::int64_t kIdleBackward = 2000;

std::int64_t idleSum(const IdleParts &parts)
{
    return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

std::int64_t idlePart(const IdleParts &parts, IdleReason reason)
{
    return parts[static_cast<std::size_t>(reason)];
}

/// A step, and all that is asked of it.
struct Analysed {
    ExecutionPlan plan{};
    Cluster cluster{};
    Timeline timeline{};
    TimelineDependencies dependencies{};
    IdleTimes idle{};

    std::string sentenceAt(std::int32_t device, std::int64_t time) const
    {
        const auto bubble =
            whyIdle(plan, nullptr, timeline, dependencies, DeviceId{device}, Nanoseconds{time});
        return bubble ? sentenceOf(plan, cluster, timeline, *bubble, blocksBehind(plan, timeline, *bubble))
                      : std::string("computes");
    }
};

Analysed analysed(ExecutionPlan plan, const CostModel &costs, const Plan *rows = nullptr)
{
    Analysed made;
    made.plan = std::move(plan);
    made.cluster = test::clusterOf(made.plan);
    auto timeline = simulate(made.plan, made.cluster, costs);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    made.timeline = *std::move(timeline);
    made.dependencies = *dependenciesOf(made.plan, made.timeline);
    made.idle = *idleTimes(made.plan, rows, made.timeline, made.dependencies);
    return made;
}

TEST(IdleTimes, AddUpToTheIdleTimeOfEveryDeviceExactly)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto dependencies = dependenciesOf(plan.plan, plan.timeline);
        ASSERT_TRUE(dependencies);
        const auto idle = idleTimes(plan.plan, nullptr, plan.timeline, *dependencies);
        ASSERT_TRUE(idle);
        std::int64_t all = 0;
        ASSERT_EQ(idle->devices.size(), plan.plan.devices.size());
        for (std::size_t d = 0; d < idle->devices.size(); ++d) {
            const std::int64_t expected = (plan.timeline.step - plan.timeline.busy[d]).count();
            EXPECT_EQ(idleSum(idle->devices[d]), expected) << "device " << d;
            all += expected;
            std::int64_t before = 0;
            for (const IdleGap &gap : idle->gaps[d]) {
                EXPECT_EQ(idleSum(gap.parts), gap.end - gap.begin);
                for (const std::int64_t each : gap.parts)
                    EXPECT_GE(each, 0);
                EXPECT_GE(gap.begin, before);
                EXPECT_GT(gap.end, gap.begin);
                before = gap.end;
                EXPECT_EQ(
                    idle->gapAt(DeviceId{static_cast<std::int32_t>(d)}, (gap.begin + gap.end) / 2), &gap);
            }
            // Predicted steps leave nothing unexplained.
            EXPECT_EQ(idlePart(idle->devices[d], IdleReason::Other), 0) << "device " << d;
        }
        EXPECT_EQ(idleSum(idle->total), all);
    }
}

TEST(IdleTimes, OfEqualDevicesAreTheSameWhetherTheyAreMergedOrNot)
{
    for (const SimulatedPlan &plan : galleryPlans()) {
        SCOPED_TRACE(plan.name);
        const auto dependencies = dependenciesOf(plan.plan, plan.timeline);
        Timeline alone = plan.timeline;
        alone.symmetryClass.clear();
        EXPECT_EQ(idleTimes(plan.plan, nullptr, plan.timeline, *dependencies)->total,
            idleTimes(plan.plan, nullptr, alone, *dependencies)->total);
    }
}

TEST(IdleTimes, OfAPipelineOfEqualStagesAreFillAndDrainAlone)
{
    // The bubble of p equal stages is (p - 1)(f + b) on every device, for GPipe and 1F1B alike.
    for (const std::int32_t p : {2, 4, 8})
        for (const std::int32_t m : {1, 4, 16})
            for (const bool gpipe : {true, false}) {
                SCOPED_TRACE(testing::Message() << p << " stages, " << m << (gpipe ? " GPipe" : " 1F1B"));
                const Analysed step =
                    analysed(test::pipelinePlan({.stages = p,
                                 .microBatches = m,
                                 .order = gpipe ? test::Order::GPipe : test::Order::OneFOneB}),
                        test::unitCosts());
                for (const IdleParts &parts : step.idle.devices)
                    EXPECT_EQ(idlePart(parts, IdleReason::Fill) + idlePart(parts, IdleReason::Drain),
                        (p - 1) * (kIdleForward + kIdleBackward));
                EXPECT_EQ(idleSum(step.idle.total), p * (p - 1) * (kIdleForward + kIdleBackward));
            }
}

TEST(IdleTimes, OfASlowStageAreImbalanceByAsMuchAsItIsSlower)
{
    // Stage 0 computes twice as long as the others.
    CostModel costs = test::unitCosts();
    const auto unit = costs.kernel;
    costs.kernel = [unit](const KernelQuery &query) {
        return unit(query) * (query.op.name.substr(1, 1) == "0" ? 2 : 1);
    };
    constexpr std::int32_t m = 8;
    const Analysed step =
        analysed(test::pipelinePlan({.stages = 2, .microBatches = m, .order = test::Order::OneFOneB}), costs);
    EXPECT_EQ(idlePart(step.idle.devices[0], IdleReason::Imbalance), 0);
    // Before its first block and behind its last one it fills and drains all the same.
    EXPECT_EQ(idlePart(step.idle.devices[1], IdleReason::Imbalance)
            + idlePart(step.idle.devices[1], IdleReason::Fill)
            + idlePart(step.idle.devices[1], IdleReason::Drain),
        idleSum(step.idle.devices[1]));
    EXPECT_GE(
        idlePart(step.idle.devices[1], IdleReason::Imbalance), (m - 2) * (kIdleForward + kIdleBackward));
    EXPECT_LE(idlePart(step.idle.devices[1], IdleReason::Imbalance), m * (kIdleForward + kIdleBackward));
}

TEST(IdleTimes, OfReplicasAreCommunication)
{
    CostModel costs = test::unitCosts();
    costs.collective = [](CollectiveKind, Bytes, GroupShape) { return 700e-9; };
    const Analysed step = analysed(
        test::pipelinePlan({.stages = 1, .microBatches = 2, .replicas = 4, .optimizer = true}), costs);
    for (const IdleParts &parts : step.idle.devices) {
        EXPECT_EQ(idlePart(parts, IdleReason::Communication), 700);
        EXPECT_EQ(idleSum(parts), 700);
    }
}

TEST(IdleTimes, OfADeviceWithoutWorkSaySo)
{
    ExecutionPlan plan = test::pipelinePlan({.stages = 2, .microBatches = 2});
    plan.devices.emplace_back();
    const Analysed step = analysed(std::move(plan), test::unitCosts());
    EXPECT_EQ(idlePart(step.idle.devices[2], IdleReason::NoWork), step.timeline.step.count());
    EXPECT_EQ(idleSum(step.idle.devices[2]), step.timeline.step.count());
    EXPECT_EQ(step.idle.gapAt(DeviceId{2}, 5)->largest(), IdleReason::NoWork);
    EXPECT_EQ(step.idle.gapAt(DeviceId{3}, 5), nullptr);
}

TEST(IdleTimes, OfARowThatBoundsMicroBatchesInFlightAreMemory)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    auto table = galleryTable("pipeline:schedule=gpipe,micro-batches=4", graph, 2);
    ASSERT_TRUE(table);
    table->rows.push_back(*parseRow("in-flight 1"));
    const auto completion = completePlan(graph, 2, *table);
    ASSERT_TRUE(completion);
    ASSERT_FALSE(firstError(*completion));
    const auto cluster = *clusterNamed("dgx-a100:2");
    const auto execution = lower(completion->plan, cluster);
    ASSERT_TRUE(execution);
    const auto timeline = simulate(*execution, cluster);
    ASSERT_TRUE(timeline);
    const auto dependencies = dependenciesOf(*execution, *timeline);
    ASSERT_TRUE(dependencies);
    const auto with = idleTimes(*execution, &completion->plan, *timeline, *dependencies);
    const auto without = idleTimes(*execution, nullptr, *timeline, *dependencies);
    ASSERT_TRUE(with && without);
    EXPECT_GT(idlePart(with->devices[0], IdleReason::Memory), 0);
    EXPECT_EQ(idlePart(without->devices[0], IdleReason::Memory), 0);
    EXPECT_EQ(idleSum(with->total), idleSum(without->total));
}

TEST(IdleTimes, StopWhenAsked)
{
    const SimulatedPlan &plan = allPlans().front();
    std::stop_source source;
    source.request_stop();
    EXPECT_FALSE(idleTimes(
        plan.plan, nullptr, plan.timeline, *dependenciesOf(plan.plan, plan.timeline), source.get_token()));
    EXPECT_FALSE(idleTimes(plan.plan, nullptr, plan.timeline, TimelineDependencies{}));
}

TEST(BlocksBehind, CoverTheBubbleFromItsEndBackToItsBegin)
{
    std::int32_t bubbles = 0;
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto dependencies = dependenciesOf(plan.plan, plan.timeline);
        ASSERT_TRUE(dependencies);
        const auto idle = idleTimes(plan.plan, nullptr, plan.timeline, *dependencies);
        ASSERT_TRUE(idle);
        for (std::size_t d = 0; d < idle->gaps.size(); ++d)
            for (const IdleGap &gap : idle->gaps[d]) {
                const DeviceId device{static_cast<std::int32_t>(d)};
                const auto bubble =
                    whyIdle(plan.plan, nullptr, plan.timeline, *dependencies, device, Nanoseconds{gap.begin});
                ASSERT_TRUE(bubble);
                EXPECT_EQ(bubble->begin, gap.begin);
                EXPECT_EQ(bubble->end, gap.end);
                const auto links = blocksBehind(plan.plan, plan.timeline, *bubble);
                ++bubbles;
                ASSERT_FALSE(links.empty());
                EXPECT_EQ(links.front().end, gap.end);
                EXPECT_EQ(links.back().begin, gap.begin);
                for (std::size_t i = 0; i + 1 < links.size(); ++i)
                    EXPECT_EQ(links[i].begin, links[i + 1].end);
                for (const WaitLink &link : links)
                    EXPECT_LE(link.begin, link.end);
                const std::string sentence =
                    sentenceOf(plan.plan, plan.cluster, plan.timeline, *bubble, links);
                EXPECT_TRUE(sentence.starts_with("GPU " + std::to_string(d) + " waits ")) << sentence;
                EXPECT_LT(sentence.size(), 600u) << sentence;
            }
    }
    EXPECT_GT(bubbles, 100);
}

/// Two stages, two micro-batches, GPipe; transfers take 100 ns.
///
///     GPU 0  F0 F1 . . . . . B0 . B1
///     GPU 1  .  F0 F1 B0 B1
TEST(WhyIdleInOneSentence, NamesBlocksTransfersAndTheDeviceThatCameLast)
{
    CostModel costs = test::unitCosts();
    costs.collective = [](CollectiveKind, Bytes, GroupShape) { return 100e-9; };
    const Analysed step = analysed(test::pipelinePlan({.stages = 2, .microBatches = 2}), costs);
    EXPECT_EQ(step.sentenceAt(1, 500),
        "GPU 1 waits 1.10 µs: its F0 needs the receive of micro-batch 0 from GPU 0, which GPU 0 sends only "
        "after F0");
    EXPECT_EQ(step.sentenceAt(0, 2500),
        "GPU 0 waits 3.20 µs: its B0 needs the receive of micro-batch 0 from GPU 1, which GPU 1 sends only "
        "after B0, which comes after F1, which needs the receive of micro-batch 1 from GPU 0");
    EXPECT_EQ(step.sentenceAt(0, 500), "computes");
}

TEST(WhyIdleInOneSentence, NamesTheCollectiveInsideABlock)
{
    CostModel costs = test::unitCosts();
    costs.collective = [](CollectiveKind, Bytes, GroupShape) { return 300e-9; };
    const Analysed step = analysed(test::pipelinePlan({.stages = 1, .microBatches = 1, .shards = 2}), costs);
    EXPECT_EQ(step.sentenceAt(0, 3100),
        "GPU 0 waits 300 ns: it has done its part, and the step ends with the all-reduce of B0");
}

TEST(BlockLabels, NameLanesByLettersAndSlicesByNumbers)
{
    EXPECT_EQ(blockLabel(SegmentKind::Forward, 3, {}), "F3");
    EXPECT_EQ(blockLabel(SegmentKind::InputGradient, 3, {.lane = 1, .slice = 2}), "B3b.2");
    EXPECT_EQ(blockLabel(SegmentKind::WeightGradient, 0, {.slice = 1}), "W0.1");
    EXPECT_EQ(blockLabel(SegmentKind::Transfer, 4, {}), "T4");
    EXPECT_EQ(blockLabel(SegmentKind::Forward, 2, {}, WideStage::First), "E2");
    EXPECT_EQ(blockLabel(SegmentKind::Backward, 2, {}, WideStage::First), "e2");
    EXPECT_EQ(blockLabel(SegmentKind::Forward, 2, {}, WideStage::Last), "H2");
    EXPECT_EQ(blockLabel(SegmentKind::Reduce, 2, {}, WideStage::Last), "Gradients");
    EXPECT_EQ(labelOf(BlockPart{.lane = 27}), "ab");
}

} // namespace
} // namespace planloom
