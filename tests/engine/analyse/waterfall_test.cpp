#include "engine/analyse/waterfall.h"

#include "tests/engine/simulate/gallery_plans.h"

namespace planloom {
namespace {

const std::vector<SimulatedPlan> &somePlans()
{
    static const std::vector<SimulatedPlan> plans = [] {
        auto all = galleryPlans();
        for (SimulatedPlan &plan : randomPlans("zoo:mlp?layers=3&hidden=12&batch=8", 20))
            all.push_back(std::move(plan));
        return all;
    }();
    return plans;
}

TEST(Waterfall, PartsAddUpToTheStep)
{
    for (const SimulatedPlan &plan : somePlans()) {
        const StepParts parts = partsOf(plan.plan, plan.timeline);
        EXPECT_EQ(parts.step(), plan.timeline.step.count()) << plan.name;
        for (const std::int64_t part : parts.nanoseconds)
            EXPECT_GE(part, 0) << plan.name;
        EXPECT_GT(parts[StepPart::Compute], 0) << plan.name;
        EXPECT_GT(parts[StepPart::Optimizer], 0) << plan.name;
    }
}

TEST(Waterfall, OfAnyTwoPlansSumsExactlyAndTurnsAround)
{
    for (const SimulatedPlan &a : somePlans())
        for (const SimulatedPlan &b : somePlans()) {
            const Waterfall there = waterfallOf(a.plan, a.timeline, b.plan, b.timeline);
            const Waterfall back = waterfallOf(b.plan, b.timeline, a.plan, a.timeline);
            ASSERT_EQ(there.delta.step(), (b.timeline.step - a.timeline.step).count())
                << a.name << ", " << b.name;
            for (std::size_t i = 0; i < kStepPartCount; ++i)
                ASSERT_EQ(there.delta.nanoseconds[i], -back.delta.nanoseconds[i]);
        }
}

TEST(Waterfall, OfAPlanWithItselfIsZero)
{
    for (const SimulatedPlan &plan : somePlans())
        EXPECT_EQ(waterfallOf(plan.plan, plan.timeline, plan.plan, plan.timeline).delta, StepParts{})
            << plan.name;
}

TEST(Waterfall, RecomputationAndDevicesShowWhereTheyBelong)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const auto plain = simulated("plain", galleryPlan(graph, "single", 1));
    const auto table = ConstraintTable{{Row{.selector = Selector{}, .rule = RecomputeRule{}}}, {}};
    const auto completion = completePlan(graph, 1, table);
    ASSERT_TRUE(completion);
    const auto again = simulated("recompute", *lower(completion->plan, *clusterNamed("dgx-a100:1")));
    const Waterfall waterfall = waterfallOf(plain.plan, plain.timeline, again.plan, again.timeline);
    EXPECT_GT(waterfall.delta[StepPart::Recompute], 0);
    EXPECT_EQ(waterfall.delta[StepPart::Compute], 0);
    EXPECT_EQ(waterfall.delta[StepPart::ExposedCommunication], 0);

    const auto parallel =
        simulated("parallel", galleryPlan(graph, "pipeline:schedule=gpipe,micro-batches=4", 2));
    EXPECT_GT(
        waterfallOf(plain.plan, plain.timeline, parallel.plan, parallel.timeline).delta[StepPart::Idle], 0);
}

TEST(Waterfall, OfMeasuredSpansThatOverlapStillAddsUp)
{
    std::mt19937 random(4);
    for (const SimulatedPlan &plan : galleryPlans()) {
        Timeline measured = plan.timeline;
        for (std::size_t s = 0; s < measured.spans.size(); ++s)
            measured.spans.duration[s] += std::uniform_int_distribution<std::int64_t>(0, 3000)(random);
        const StepParts parts = partsOf(plan.plan, measured);
        EXPECT_EQ(parts.step(), measured.step.count()) << plan.name;
        for (std::size_t i = 0; i < kStepPartCount; ++i)
            EXPECT_GE(parts.nanoseconds[i], 0) << plan.name << " " << nameOf(static_cast<StepPart>(i));
    }
    Timeline empty;
    empty.step = Nanoseconds{5};
    EXPECT_EQ(partsOf(ExecutionPlan{}, empty)[StepPart::Idle], 5);
}

} // namespace
} // namespace planloom
