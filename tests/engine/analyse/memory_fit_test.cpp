#include "engine/analyse/memory_fit.h"

#include "engine/lowering/lower.h"
#include "tests/engine/simulate/gallery_plans.h"

#include <numeric>

namespace planloom {
namespace {

std::int64_t heldAs(const RankMemory &rank, HeldAs kind)
{
    return rank.held[static_cast<std::size_t>(kind)];
}

TEST(MemoryFit, KindsAddUpToThePeakOfEveryRank)
{
    auto plans = galleryPlans();
    for (SimulatedPlan &plan : randomPlans("zoo:mlp?layers=3&hidden=12&batch=8", 20))
        plans.push_back(std::move(plan));
    for (const SimulatedPlan &plan : plans) {
        SCOPED_TRACE(plan.name);
        const auto ranks = memoryOfRanks(plan.plan, plan.timeline, plan.cluster);
        ASSERT_EQ(ranks.size(), plan.plan.devices.size());
        for (std::size_t d = 0; d < ranks.size(); ++d) {
            EXPECT_EQ(ranks[d].rank.index, static_cast<std::int32_t>(d));
            EXPECT_EQ(ranks[d].peak, plan.timeline.memory[d].peak.count);
            EXPECT_EQ(
                std::accumulate(ranks[d].held.begin(), ranks[d].held.end(), std::int64_t{0}), ranks[d].peak);
            EXPECT_GE(*std::min_element(ranks[d].held.begin(), ranks[d].held.end()), 0);
            EXPECT_GT(ranks[d].limit, 0);
            EXPECT_TRUE(ranks[d].fits());
        }
        const RankMemory *fullest = fullestOf(ranks);
        ASSERT_TRUE(fullest);
        for (const RankMemory &rank : ranks)
            EXPECT_LE(rank.share(), fullest->share());
    }
    EXPECT_EQ(fullestOf({}), nullptr);
}

TEST(MemoryFit, TellsTheLogitsOfTheLastStageFromTheRest)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=4&hidden=32&heads=4&seq=16&batch=8&vocab=4096");
    const auto plan = simulated("pipeline", galleryPlan(graph, "pipeline:schedule=1f1b,micro-batches=4", 2));
    const auto ranks = memoryOfRanks(plan.plan, plan.timeline, plan.cluster);
    ASSERT_EQ(ranks.size(), 2U);
    EXPECT_EQ(heldAs(ranks[0], HeldAs::Logits), 0);
    EXPECT_GE(heldAs(ranks[1], HeldAs::Logits), 2 * 16 * 4096 * 4); // of a micro-batch, in Float32
    for (const RankMemory &rank : ranks) {
        EXPECT_GT(heldAs(rank, HeldAs::Parameters), 0);
        EXPECT_GT(heldAs(rank, HeldAs::SavedActivations), 0);
    }
}

TEST(MemoryFit, ListsTheRanksOfAllScaleUnitsAndTheLimitsOfTheirClasses)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const auto table = galleryTable("3d:dp=4,pp=2,micro-batches=2", graph, 8);
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 8, *table, {.units = UseUnits::WherePossible});
    ASSERT_TRUE(completion && completion->plan.graph);
    auto cluster = clusterNamed("dgx-a100:8");
    ASSERT_TRUE(cluster);
    const auto plan = lower(completion->plan, *cluster);
    ASSERT_TRUE(plan) << describe(plan.error());
    ASSERT_FALSE(plan->units.isOne());
    DeviceClass small{cluster->device, cluster->links, {{4, 4}}};
    small.device.memory.value = 1000;
    cluster->otherClasses.push_back(small);
    const auto timeline = simulate(*plan, *cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    const auto ranks = memoryOfRanks(*plan, *timeline, *cluster);
    ASSERT_EQ(ranks.size(), 8U);
    for (std::int32_t r = 0; r < 8; ++r) {
        const RankMemory &rank = ranks[static_cast<std::size_t>(r)];
        EXPECT_EQ(rank.rank.index, r);
        EXPECT_EQ(rank.fits(), r < 4) << r;
    }
    EXPECT_GE(fullestOf(ranks)->rank.index, 4);
}

} // namespace
} // namespace planloom
