#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

using test::Order;
using test::PipelineShape;

TEST(BubbleRatio, OfGPipeAndOneFOneBIsTheClosedForm)
{
    for (const Order order : {Order::GPipe, Order::OneFOneB}) {
        for (const std::int32_t p : {1, 2, 4, 8}) {
            for (const std::int32_t m : {1, 4, 32}) {
                SCOPED_TRACE(testing::Message() << p << " stages, " << m << " micro-batches, "
                                                << (order == Order::GPipe ? "GPipe" : "1F1B"));
                const auto plan = test::pipelinePlan({.stages = p, .microBatches = m, .order = order});
                const auto timeline = simulate(plan, test::clusterOf(plan), test::unitCosts());
                ASSERT_TRUE(timeline) << describe(timeline.error());
                EXPECT_EQ(timeline->step.count(), (m + p - 1) * 3000);
                EXPECT_DOUBLE_EQ(bubbleRatio(*timeline), (p - 1.0) / (m + p - 1.0));
            }
        }
    }
}

TEST(BubbleRatio, IsTheSameWhenStagesAreReplicatedAndSharded)
{
    const auto plan = test::pipelinePlan(
        {.stages = 4, .microBatches = 8, .order = Order::OneFOneB, .replicas = 2, .shards = 2});
    const auto timeline = simulate(plan, test::clusterOf(plan), test::unitCosts());
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_DOUBLE_EQ(bubbleRatio(*timeline), 3.0 / 11.0);
}

TEST(BubbleRatio, OfNothingIsZero)
{
    EXPECT_EQ(bubbleRatio(Timeline{}), 0);
}

TEST(BubbleRatio, CountsTransfersAsIdle)
{
    auto costs = test::unitCosts();
    costs.collective = [](CollectiveKind, Bytes, GroupShape) { return 1e-6; };
    const auto plan = test::pipelinePlan({.stages = 2, .microBatches = 1});
    const auto timeline = simulate(plan, test::clusterOf(plan), costs);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_EQ(timeline->step.count(), 1000 + 1000 + 1000 + 2000 + 1000 + 2000);
    EXPECT_DOUBLE_EQ(bubbleRatio(*timeline), 1 - 6.0 / 16.0);
    EXPECT_EQ(timeline->exposedCommunication[0].count(), 2000);
    EXPECT_EQ(timeline->busy[0].count(), 3000);
}

} // namespace
} // namespace planloom
