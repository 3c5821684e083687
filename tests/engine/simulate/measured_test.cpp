// What is asked of predicted steps, asked of measured ones, and of those that are not all there yet.

#include "engine/analyse/communication.h"
#include "engine/analyse/critical_path.h"
#include "engine/analyse/memory_at.h"
#include "engine/analyse/statistics.h"
#include "engine/analyse/steady_state.h"
#include "engine/analyse/waterfall.h"

#include "engine/runtime/run.h"

#include "tests/engine/simulate/gallery_plans.h"

namespace planloom {
namespace {

std::vector<SimulatedPlan> plansToRun()
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    std::vector<SimulatedPlan> plans;
    for (const auto &[gallery, devices] : {std::pair{"data-parallel", 2}, std::pair{"tensor-parallel", 2},
             std::pair{"pipeline:schedule=1f1b,micro-batches=4", 2}, std::pair{"3d:dp=2,tp=1,pp=2", 4}})
        plans.push_back(simulated(gallery, galleryPlan(graph, gallery, devices)));
    return plans;
}

std::int64_t lastEnd(const Timeline &timeline)
{
    std::int64_t end = 0;
    for (std::size_t s = 0; s < timeline.spans.size(); ++s)
        end = std::max(end, timeline.spans.start[s] + timeline.spans.duration[s]);
    return end;
}

void expectConsistent(const SimulatedPlan &plan, const Timeline &timeline)
{
    const auto dependencies = dependenciesOf(plan.plan, timeline);
    ASSERT_TRUE(dependencies) << describe(dependencies.error());
    const CriticalPath path = criticalPath(timeline, *dependencies);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < path.size(); ++i)
        sum += path.gap[i] + timeline.spans.duration[static_cast<std::size_t>(path.leaves[i])];
    EXPECT_EQ(sum, lastEnd(timeline));
    for (const std::int64_t slack : slackOf(timeline, *dependencies))
        EXPECT_GE(slack, 0);
    EXPECT_EQ(partsOf(plan.plan, timeline).step(), timeline.step.count());
    const Waterfall waterfall = waterfallOf(plan.plan, plan.timeline, plan.plan, timeline);
    EXPECT_EQ(waterfall.delta.step(), (timeline.step - plan.timeline.step).count());
    const auto statistics = statisticsOf(plan.plan, timeline, wholeOf(timeline));
    ASSERT_TRUE(statistics);
    EXPECT_EQ(statistics->total.compute + statistics->total.exposed + statistics->total.idle,
        timeline.step.count() * static_cast<std::int64_t>(plan.plan.devices.size()));
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(plan.plan.devices.size()); ++d)
        for (const BufferLifetime &lifetime : lifetimesOf(plan.plan, timeline, DeviceId{d}))
            EXPECT_LE(lifetime.birth, lifetime.death);
    EXPECT_TRUE(communicationMatrix(plan.plan, timeline, plan.cluster));
}

TEST(Measured, StepsAnswerWhatPredictedOnesDo)
{
    for (const SimulatedPlan &plan : plansToRun()) {
        SCOPED_TRACE(plan.name);
        RunOptions options;
        options.randomWeights = true;
        options.steps = 2;
        const auto outcome = runOnCpu(plan.plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        EXPECT_EQ(outcome->measured.spans.size(), plan.timeline.spans.size());
        expectConsistent(plan, outcome->measured);
        // The same arrows as in the predicted step, ends of communication included.
        const auto predicted = dependenciesOf(plan.plan, plan.timeline);
        const auto measured = dependenciesOf(plan.plan, outcome->measured);
        ASSERT_TRUE(predicted && measured);
        EXPECT_EQ(predicted->meetingCount(), measured->meetingCount());
        const auto state = steadyStateOf(plan.plan, outcome->measured, 0.2);
        ASSERT_TRUE(state);
        EXPECT_LE(state->steadyEnd, state->end);
    }
}

TEST(Measured, StepsOfWhichOnlySomeSpansAreThereYetDoNotFail)
{
    std::mt19937 random(8);
    for (const SimulatedPlan &plan : plansToRun()) {
        SCOPED_TRACE(plan.name);
        for (const double kept : {0.0, 0.3, 0.9}) {
            Timeline part = plan.timeline;
            SpanColumns spans;
            part.deviceBegin = {0};
            for (std::size_t s = 0, d = 0; s <= plan.timeline.spans.size(); ++s) {
                for (; d < plan.plan.devices.size() && s == plan.timeline.deviceBegin[d + 1]; ++d)
                    part.deviceBegin.push_back(spans.size());
                if (s == plan.timeline.spans.size() || !std::bernoulli_distribution(kept)(random))
                    continue;
                const SpanColumns &all = plan.timeline.spans;
                spans.device.push_back(all.device[s]);
                spans.queue.push_back(all.queue[s]);
                spans.segment.push_back(all.segment[s]);
                spans.instruction.push_back(all.instruction[s]);
                spans.microBatch.push_back(all.microBatch[s]);
                spans.start.push_back(all.start[s]);
                spans.duration.push_back(all.duration[s]);
            }
            part.spans = std::move(spans);
            ASSERT_EQ(part.deviceBegin.size(), plan.plan.devices.size() + 1);
            expectConsistent(plan, part);
        }
    }
}

} // namespace
} // namespace planloom
