#include "engine/analyse/steady_state.h"

#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"

namespace planloom {
namespace {

constexpr std::int64_t kForward = 1000;
constexpr std::int64_t kBackward = 2000;

Timeline timelineOf(const ExecutionPlan &plan)
{
    auto timeline = simulate(plan, test::clusterOf(plan), test::unitCosts());
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return *std::move(timeline);
}

TEST(SteadyState, OfGPipeAndOneFOneBIsTheClosedForm)
{
    for (const std::int32_t p : {1, 2, 4, 8})
        for (const std::int32_t m : {1, 2, 4, 8, 32})
            for (const bool gpipe : {true, false}) {
                SCOPED_TRACE(testing::Message() << p << " stages, " << m << (gpipe ? " GPipe" : " 1F1B"));
                const ExecutionPlan plan = test::pipelinePlan({.stages = p,
                    .microBatches = m,
                    .order = gpipe ? test::Order::GPipe : test::Order::OneFOneB,
                    .replicas = 2,
                    .optimizer = true});
                const auto state = steadyStateOf(plan, timelineOf(plan));
                ASSERT_TRUE(state);
                const std::int64_t both = kForward + kBackward;
                EXPECT_EQ(state->end, (m + p - 1) * both);
                if (gpipe) {
                    EXPECT_EQ(state->steadyBegin, (m + p - 1) * kForward);
                    EXPECT_EQ(state->steadyEnd, state->steadyBegin);
                    EXPECT_EQ(state->period, 0);
                    EXPECT_EQ(state->fillPeriod, m > 1 ? kForward : 0);
                    EXPECT_EQ(state->drainPeriod, m > 1 ? kBackward : 0);
                } else {
                    EXPECT_EQ(state->steadyBegin, p * kForward);
                    EXPECT_EQ(state->steadyEnd - state->steadyBegin, (m - 1) * both);
                    EXPECT_EQ(state->period, m > 1 ? both : 0);
                    EXPECT_EQ(state->repeats, m - 1);
                    EXPECT_EQ(state->microBatchesPerPeriod, m > 1 ? 1 : 0);
                }
                ASSERT_EQ(state->stages.size(), static_cast<std::size_t>(p));
                for (std::int32_t s = 0; s < p; ++s) {
                    const StagePhases &stage = state->stages[static_cast<std::size_t>(s)];
                    EXPECT_EQ(stage.warmUp, gpipe ? m : std::min(p - s, m));
                    EXPECT_EQ(stage.coolDown, gpipe ? m : std::min(p - s, m));
                }
            }
}

/// F0 0-2, B0 2-6, F1 6-8, B1 8-10 and 11-13: gradients are cut between its slices, and updated at 14.
TEST(SteadyState, TakesASlicedBlockForOne)
{
    ExecutionPlan plan;
    plan.microBatches = 2;
    DeviceProgram program;
    program.segments = {{SegmentKind::Forward, StageId{0}, std::vector<Instruction>(1)},
        {SegmentKind::Backward, StageId{0}, std::vector<Instruction>(2)},
        {SegmentKind::Reduce, StageId{0}, std::vector<Instruction>(1)},
        {SegmentKind::Reduce, StageId{0}, std::vector<Instruction>(1)},
        {SegmentKind::Optimizer, StageId{0}, std::vector<Instruction>(1)}};
    plan.devices.push_back(std::move(program));
    Timeline timeline;
    const auto add = [&](std::int32_t segment, std::int32_t instruction, std::int32_t microBatch,
                         std::int64_t start, std::int64_t end) {
        SpanColumns &spans = timeline.spans;
        spans.device.push_back(0);
        spans.queue.push_back(QueueKind::Compute);
        spans.segment.push_back(segment);
        spans.instruction.push_back(instruction);
        spans.microBatch.push_back(microBatch);
        spans.start.push_back(start);
        spans.duration.push_back(end - start);
    };
    add(0, 0, 0, 0, 2);
    add(1, 0, 0, 2, 4);
    add(1, 1, 0, 4, 6);
    add(0, 0, 1, 6, 8);
    add(1, 0, 1, 8, 10);
    add(2, 0, 0, 10, 11);
    add(1, 1, 1, 11, 13);
    add(3, 0, 0, 13, 14);
    add(4, 0, 0, 14, 15);
    timeline.deviceBegin = {0, timeline.spans.size()};
    timeline.step = Nanoseconds{15};
    EXPECT_EQ(pipelineBlocks(plan, timeline),
        (std::vector<PipelineBlock>{{StageId{0}, false, 0, 0, 2}, {StageId{0}, true, 0, 2, 6},
            {StageId{0}, false, 1, 6, 8}, {StageId{0}, true, 1, 8, 13}}));
    const auto state = steadyStateOf(plan, timeline);
    ASSERT_TRUE(state);
    EXPECT_EQ(state->end, 13);
    ASSERT_EQ(state->stages.size(), 1U);
    EXPECT_EQ(state->stages[0].warmUp, 1);
    EXPECT_EQ(state->stages[0].coolDown, 1);
}

TEST(SteadyState, OfLoweredPipelinesHasARepeatingUnit)
{
    // Of so many elements that what is sent between stages takes little beside what they compute.
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=8&hidden=4096&batch=65536");
    const Cluster cluster = *clusterNamed("dgx-a100:4");
    const auto table = galleryTable("pipeline:schedule=1f1b,micro-batches=16", graph, 4);
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 4, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, cluster);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto timeline = simulate(*plan, cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    const auto state = steadyStateOf(*plan, *timeline);
    ASSERT_TRUE(state);
    EXPECT_GT(state->steadyEnd, state->steadyBegin);
    EXPECT_GT(state->period, 0);
    // A unit may be of several micro-batches.
    EXPECT_GE(state->repeats, 3);
    EXPECT_GE(2 * (state->steadyEnd - state->steadyBegin), state->end);
    EXPECT_LE(state->end, timeline->step.count());
    EXPECT_EQ(state->stages.front().warmUp, 4);
}

TEST(SteadyState, ToleratesJitterWhereItMay)
{
    const ExecutionPlan plan =
        test::pipelinePlan({.stages = 2, .microBatches = 16, .order = test::Order::OneFOneB});
    Timeline measured = timelineOf(plan);
    for (std::size_t s = 0; s < measured.spans.size(); ++s)
        measured.spans.start[s] += static_cast<std::int64_t>(s % 7) * 5;
    const auto exact = steadyStateOf(plan, measured);
    const auto tolerant = steadyStateOf(plan, measured, 0.05);
    ASSERT_TRUE(exact && tolerant);
    EXPECT_LT(exact->repeats, 15);
    EXPECT_EQ(tolerant->repeats, 15);
    EXPECT_NEAR(static_cast<double>(tolerant->period), 3000, 100);
}

TEST(SteadyState, IsNothingWithoutABackwardPass)
{
    EXPECT_FALSE(steadyStateOf(ExecutionPlan{}, Timeline{}));
    const auto forward = buildZooModel("zoo:mlp?layers=2&hidden=8&batch=4");
    ASSERT_TRUE(forward);
    const auto plan =
        simulated("inference", galleryPlan(std::make_shared<const Graph>(*forward), "single", 1));
    EXPECT_FALSE(steadyStateOf(plan.plan, plan.timeline));
}

} // namespace
} // namespace planloom
