#include "engine/analyse/statistics.h"

#include "tests/engine/simulate/gallery_plans.h"

#include <numeric>

namespace planloom {
namespace {

std::int64_t sumOf(const auto &amounts)
{
    return std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0},
        [](std::int64_t sum, const SpanAmount &amount) { return sum + amount.nanoseconds; });
}

TEST(Statistics, OfTheWholeStepAreTheTimelinesOwn)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto found = statisticsOf(plan.plan, plan.timeline, wholeOf(plan.timeline));
        ASSERT_TRUE(found);
        ASSERT_EQ(found->devices.size(), plan.plan.devices.size());
        for (std::size_t d = 0; d < found->devices.size(); ++d) {
            const DeviceStatistics &device = found->devices[d];
            EXPECT_EQ(device.compute, plan.timeline.busy[d].count());
            EXPECT_EQ(device.exposed, plan.timeline.exposedCommunication[d].count());
            EXPECT_EQ(device.compute + device.exposed + device.idle, plan.timeline.step.count());
            EXPECT_GE(device.communication, device.exposed);
        }
        EXPECT_EQ(found->length, plan.timeline.step.count());
    }
}

/// All nanoseconds of `a` and `b` together, at the same places.
void expectSum(const BoxStatistics &whole, const BoxStatistics &a, const BoxStatistics &b)
{
    EXPECT_EQ(whole.length, a.length + b.length);
    EXPECT_EQ(whole.total.compute, a.total.compute + b.total.compute);
    EXPECT_EQ(whole.total.communication, a.total.communication + b.total.communication);
    EXPECT_EQ(whole.total.exposed, a.total.exposed + b.total.exposed);
    EXPECT_EQ(whole.total.idle, a.total.idle + b.total.idle);
    for (std::size_t i = 0; i < whole.byCategory.size(); ++i)
        EXPECT_EQ(whole.byCategory[i].nanoseconds, a.byCategory[i].nanoseconds + b.byCategory[i].nanoseconds);
    for (std::size_t i = 0; i < whole.byDirection.size(); ++i)
        EXPECT_EQ(
            whole.byDirection[i].nanoseconds, a.byDirection[i].nanoseconds + b.byDirection[i].nanoseconds);
    for (std::size_t i = 0; i < whole.byMicroBatch.size(); ++i)
        EXPECT_EQ(
            whole.byMicroBatch[i].nanoseconds, a.byMicroBatch[i].nanoseconds + b.byMicroBatch[i].nanoseconds);
    for (std::size_t i = 0; i < whole.communication.size(); ++i)
        EXPECT_EQ(whole.communication[i].nanoseconds,
            a.communication[i].nanoseconds + b.communication[i].nanoseconds);
    EXPECT_EQ(whole.copies.nanoseconds, a.copies.nanoseconds + b.copies.nanoseconds);
    EXPECT_EQ(whole.recompute.nanoseconds, a.recompute.nanoseconds + b.recompute.nanoseconds);
    EXPECT_EQ(whole.oncePerStep.nanoseconds, a.oncePerStep.nanoseconds + b.oncePerStep.nanoseconds);
}

TEST(Statistics, OfTwoHalvesAddUp)
{
    std::mt19937 random(3);
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const TimeBox whole = wholeOf(plan.timeline);
        const auto all = statisticsOf(plan.plan, plan.timeline, whole);
        const std::int64_t t = std::uniform_int_distribution<std::int64_t>(0, whole.end)(random);
        const auto before = statisticsOf(plan.plan, plan.timeline, {0, t, {}});
        const auto behind = statisticsOf(plan.plan, plan.timeline, {t, whole.end, {}});
        ASSERT_TRUE(all && before && behind);
        expectSum(*all, *before, *behind);
        if (plan.plan.devices.size() > 1) {
            std::vector<DeviceId> rest;
            for (std::size_t d = 1; d < plan.plan.devices.size(); ++d)
                rest.push_back({static_cast<std::int32_t>(d)});
            const auto one = statisticsOf(plan.plan, plan.timeline, {0, whole.end, {DeviceId{0}}});
            auto others = statisticsOf(plan.plan, plan.timeline, {0, whole.end, rest});
            ASSERT_TRUE(one && others);
            others->length = 0; // devices side by side, not one behind the other
            expectSum(*all, *one, *others);
        }
    }
}

TEST(Statistics, EveryComputeSpanIsCountedOnceInEachView)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto found = statisticsOf(plan.plan, plan.timeline, wholeOf(plan.timeline));
        ASSERT_TRUE(found);
        EXPECT_EQ(sumOf(found->byCategory) + found->copies.nanoseconds, found->total.compute);
        EXPECT_EQ(sumOf(found->byDirection), found->total.compute);
        EXPECT_EQ(sumOf(found->byMicroBatch) + found->oncePerStep.nanoseconds, found->total.compute);
        EXPECT_EQ(sumOf(found->communication), found->total.communication);
        EXPECT_LE(found->recompute.nanoseconds, sumOf(found->byCategory));
    }
}

TEST(Statistics, RecomputedWorkIsCounted)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const auto completion =
        completePlan(graph, 1, ConstraintTable{{Row{.selector = Selector{}, .rule = RecomputeRule{}}}, {}});
    ASSERT_TRUE(completion);
    const auto plan = simulated("recompute", *lower(completion->plan, *clusterNamed("dgx-a100:1")));
    const auto found = statisticsOf(plan.plan, plan.timeline, wholeOf(plan.timeline));
    ASSERT_TRUE(found);
    EXPECT_GT(found->recompute.nanoseconds, 0);
    EXPECT_GT(found->recompute.spans, 0);
}

TEST(Statistics, OfEmptyAndForeignBoxesAreZero)
{
    const SimulatedPlan &plan = allPlans().front();
    const auto empty = statisticsOf(plan.plan, plan.timeline, {100, 50, {}});
    ASSERT_TRUE(empty);
    EXPECT_EQ(empty->length, 0);
    EXPECT_EQ(empty->total.compute, 0);
    const auto foreign = statisticsOf(plan.plan, plan.timeline, {0, 1 << 30, {DeviceId{77}, DeviceId{}}});
    ASSERT_TRUE(foreign);
    EXPECT_TRUE(foreign->devices.empty());
    std::stop_source source;
    source.request_stop();
    EXPECT_FALSE(statisticsOf(plan.plan, plan.timeline, wholeOf(plan.timeline), source.get_token()));
}

} // namespace
} // namespace planloom
