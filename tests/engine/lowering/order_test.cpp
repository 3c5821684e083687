#include "engine/lowering/order/bent_ranks.h"
#include "engine/lowering/order/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace planloom {
namespace {

/// `stages` equal stages, one device each; backward takes twice as long as forward.
struct Pipeline {
    std::vector<BlockInfo> blocks{};
    std::vector<BlockDependency> dependencies{};
    explicit Pipeline(std::int32_t stages)
    {
        for (std::int32_t s = 0; s < stages; ++s)
            blocks.push_back({.kind = SegmentKind::Forward,
                .stage = StageId{s},
                .rank = 1.0 + s,
                .seconds = 1,
                .devices = {DeviceId{s}}});
        for (std::int32_t s = 0; s < stages; ++s)
            blocks.push_back({.kind = SegmentKind::Backward,
                .stage = StageId{s},
                .rank = 1000.0 + stages - s,
                .seconds = 2,
                .devices = {DeviceId{s}}});
        for (std::int32_t s = 0; s < stages; ++s) {
            dependencies.push_back({s, stages + s});
            if (s + 1 < stages) {
                dependencies.push_back({s, s + 1});
                dependencies.push_back({stages + s + 1, stages + s});
            }
        }
    }
};

std::string orderOfStage(const std::vector<BlockRun> &order, std::int32_t stage, std::int32_t stages)
{
    std::string text;
    for (const BlockRun &run : order) {
        if (run.block == stage)
            text += "F" + std::to_string(run.microBatch) + " ";
        if (run.block == stages + stage)
            text += "B" + std::to_string(run.microBatch) + " ";
    }
    return text;
}

TEST(OrderBlocks, OneFOneBAlternatesAfterItsWarmUp)
{
    const Pipeline pipeline(3);
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 5, 3, ScheduleKind::OneFOneB);
    ASSERT_TRUE(order);
    EXPECT_EQ(orderOfStage(*order, 0, 3), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 ");
    EXPECT_EQ(orderOfStage(*order, 1, 3), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 ");
    EXPECT_EQ(orderOfStage(*order, 2, 3), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 ");
}

TEST(OrderBlocks, GPipeRunsAllForwardBlocksFirst)
{
    const Pipeline pipeline(2);
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 3, 2, ScheduleKind::GPipe);
    ASSERT_TRUE(order);
    EXPECT_EQ(orderOfStage(*order, 0, 2), "F0 F1 F2 B0 B1 B2 ");
    EXPECT_EQ(orderOfStage(*order, 1, 2), "F0 F1 F2 B0 B1 B2 ");
}

TEST(OrderBlocks, SequentialFinishesAMicroBatchFirst)
{
    const Pipeline pipeline(2);
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 2, 2, ScheduleKind::Sequential);
    ASSERT_TRUE(order);
    EXPECT_EQ(orderOfStage(*order, 0, 2), "F0 B0 F1 B1 ");
}

TEST(OrderBlocks, EveryScheduleIsAPermutationThatRespectsDependencies)
{
    for (const ScheduleKind schedule :
        {ScheduleKind::Sequential, ScheduleKind::GPipe, ScheduleKind::OneFOneB})
        for (const std::int32_t stages : {1, 2, 4, 7})
            for (const std::int32_t microBatches : {1, 3, 8}) {
                const Pipeline pipeline(stages);
                const auto order =
                    orderBlocks(pipeline.blocks, pipeline.dependencies, microBatches, stages, schedule);
                ASSERT_TRUE(order);
                std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> position;
                for (std::size_t i = 0; i < order->size(); ++i)
                    EXPECT_TRUE(
                        position.emplace(std::pair((*order)[i].block, (*order)[i].microBatch), i).second);
                EXPECT_EQ(position.size(), static_cast<std::size_t>(2 * stages * microBatches));
                for (const BlockDependency &dependency : pipeline.dependencies)
                    for (std::int32_t m = 0; m < microBatches; ++m)
                        EXPECT_LT((position[{dependency.earlier, m}]), (position[{dependency.later, m}]));
            }
}

TEST(OrderBlocks, RowsMoveBlocksAcrossMicroBatches)
{
    Pipeline pipeline(1);
    // The forward block of micro-batch 1 before the backward block of micro-batch 0.
    pipeline.dependencies.push_back({0, 1, -1, RowId{4}});
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 3, 1, ScheduleKind::Sequential);
    ASSERT_TRUE(order);
    EXPECT_EQ(orderOfStage(*order, 0, 1), "F0 F1 B0 F2 B1 B2 ");
}

TEST(OrderBlocks, ARowCanSpeakOfOneMicroBatch)
{
    Pipeline pipeline(1);
    pipeline.dependencies.push_back({0, 1, -1, RowId{4}, 2});
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 4, 1, ScheduleKind::Sequential);
    ASSERT_TRUE(order);
    EXPECT_EQ(orderOfStage(*order, 0, 1), "F0 B0 F1 F2 B1 B2 F3 B3 ");
}

TEST(OrderBlocks, RowsBendTheOrdersOfTemplates)
{
    Pipeline pipeline(2);
    const auto plain = orderBlocks(pipeline.blocks, pipeline.dependencies, 3, 2, ScheduleKind::ZeroBubbleH1);
    ASSERT_TRUE(plain);
    EXPECT_EQ(orderOfStage(*plain, 1, 2), "F0 B0 F1 B1 F2 B2 ");
    EXPECT_EQ(orderOfStage(*plain, 0, 2), "F0 F1 B0 F2 B1 B2 ");
    // On the last stage the second forward block comes before the first backward one.
    pipeline.dependencies.push_back({1, 3, -1, RowId{4}, 1});
    const auto bent = orderBlocks(pipeline.blocks, pipeline.dependencies, 3, 2, ScheduleKind::ZeroBubbleH1);
    ASSERT_TRUE(bent) << describe(bent.error());
    EXPECT_EQ(orderOfStage(*bent, 1, 2), "F0 F1 B0 B1 F2 B2 ");
    EXPECT_EQ(orderOfStage(*bent, 0, 2), "F0 F1 B0 F2 B1 B2 ");
    // Round about it stays refused, by the row.
    pipeline.dependencies.push_back({3, 1, 1, RowId{5}, 0});
    const auto circle = orderBlocks(pipeline.blocks, pipeline.dependencies, 3, 2, ScheduleKind::ZeroBubbleH1);
    ASSERT_FALSE(circle);
    EXPECT_EQ(circle.error().where.rfind("row:", 0), 0U) << describe(circle.error());
}

TEST(BentRanks, FollowWhatWaitsAndElseTheTemplate)
{
    std::mt19937 random(7);
    const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    for (int round = 0; round < 300; ++round) {
        const int rankCount = 1 + below(3);
        const int length = 1 + below(6);
        const auto count = static_cast<std::size_t>(rankCount * length + below(3)); // some are of no rank
        std::vector<std::vector<std::size_t>> ranks(static_cast<std::size_t>(rankCount));
        std::vector<std::size_t> shuffled(count);
        std::iota(shuffled.begin(), shuffled.end(), std::size_t{0});
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        for (int i = 0; i < rankCount * length; ++i)
            ranks[static_cast<std::size_t>(i % rankCount)].push_back(shuffled[static_cast<std::size_t>(i)]);
        std::vector<std::vector<std::int32_t>> next(count);
        for (int edges = below(2 * static_cast<int>(count)); edges > 0; --edges) {
            const int a = below(static_cast<int>(count));
            const int b = below(static_cast<int>(count));
            if (a < b) // no circles
                next[static_cast<std::size_t>(a)].push_back(b);
        }
        const auto bent = bentRanks(ranks, next);
        // All edges and all orders together are without a circle: what waits can be taken away one by one.
        auto all = next;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            EXPECT_TRUE(
                std::is_permutation(bent[r].begin(), bent[r].end(), ranks[r].begin(), ranks[r].end()));
            for (std::size_t i = 1; i < bent[r].size(); ++i)
                all[bent[r][i - 1]].push_back(static_cast<std::int32_t>(bent[r][i]));
        }
        std::vector<int> waiting(count, 0);
        for (const auto &targets : all)
            for (const std::int32_t target : targets)
                ++waiting[static_cast<std::size_t>(target)];
        std::size_t taken = 0;
        std::vector<bool> gone(count, false);
        for (bool any = true; any;) {
            any = false;
            for (std::size_t i = 0; i < count; ++i)
                if (!gone[i] && waiting[i] == 0) {
                    gone[i] = any = true;
                    ++taken;
                    for (const std::int32_t target : all[i])
                        --waiting[static_cast<std::size_t>(target)];
                }
        }
        EXPECT_EQ(taken, count);
        EXPECT_EQ(bentRanks(bent, next), bent) << "what runs against nothing stays";
    }
}

/// By stage: the most micro-batches between forward and backward block.
std::vector<std::int32_t> mostHeld(const std::vector<BlockRun> &order, std::int32_t stages)
{
    std::vector<std::int32_t> held(static_cast<std::size_t>(stages), 0);
    std::vector<std::int32_t> most = held;
    for (const BlockRun &run : order) {
        const auto stage = static_cast<std::size_t>(run.block % stages);
        held[stage] += run.block < stages ? 1 : -1;
        most[stage] = std::max(most[stage], held[stage]);
    }
    return most;
}

TEST(OrderBlocks, MicroBatchesInFlightDecideTheWarmUp)
{
    const Pipeline pipeline(2);
    const auto with = [&](std::vector<std::int32_t> limits, ScheduleKind schedule) {
        const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 4, 2, schedule, limits);
        EXPECT_TRUE(order);
        return orderOfStage(*order, 0, 2);
    };
    EXPECT_EQ(with({3, 0}, ScheduleKind::OneFOneB), "F0 F1 F2 B0 F3 B1 B2 B3 ");
    EXPECT_EQ(with({1, 0}, ScheduleKind::OneFOneB), "F0 B0 F1 B1 F2 B2 F3 B3 ");
    EXPECT_EQ(with({2, 2}, ScheduleKind::GPipe), "F0 F1 B0 F2 B1 F3 B2 B3 ");
    EXPECT_EQ(with({0, 0}, ScheduleKind::GPipe), "F0 F1 F2 F3 B0 B1 B2 B3 ");
    EXPECT_EQ(with({1, 1}, ScheduleKind::Sequential), "F0 B0 F1 B1 F2 B2 F3 B3 ");
}

TEST(OrderBlocks, LimitsThatTheScheduleKeepsAnywayChangeNothing)
{
    for (const std::int32_t stages : {1, 2, 4, 7})
        for (const std::int32_t microBatches : {1, 3, 8}) {
            const Pipeline pipeline(stages);
            const auto order = [&](ScheduleKind schedule, const std::vector<std::int32_t> &limits) {
                auto made = orderBlocks(
                    pipeline.blocks, pipeline.dependencies, microBatches, stages, schedule, limits);
                EXPECT_TRUE(made);
                return *std::move(made);
            };
            const auto all = std::vector<std::int32_t>(static_cast<std::size_t>(stages), microBatches);
            std::vector<std::int32_t> falling;
            for (std::int32_t s = 0; s < stages; ++s)
                falling.push_back(stages - s);
            EXPECT_EQ(order(ScheduleKind::GPipe, all), order(ScheduleKind::GPipe, {}));
            EXPECT_EQ(order(ScheduleKind::Sequential, all), order(ScheduleKind::Sequential, {}));
            EXPECT_EQ(order(ScheduleKind::OneFOneB, falling), order(ScheduleKind::OneFOneB, {}));
        }
}

TEST(OrderBlocks, NoStageOfARandomPipelineHoldsMoreThanItsLimit)
{
    std::mt19937 random(11);
    const auto below = [&](std::int32_t n) {
        return std::uniform_int_distribution<std::int32_t>(0, n - 1)(random);
    };
    std::int32_t reached = 0;
    for (int trial = 0; trial < 400; ++trial) {
        const std::int32_t stages = 1 + below(6);
        const std::int32_t microBatches = 1 + below(9);
        Pipeline pipeline(stages);
        const std::int32_t devices = 1 + below(stages); // fewer than stages: some share one
        for (BlockInfo &block : pipeline.blocks) {
            block.seconds = 1e-9 + below(5);
            block.devices = {DeviceId{block.stage.index % devices}};
        }
        std::vector<std::int32_t> limits;
        for (std::int32_t s = 0; s < stages; ++s)
            limits.push_back(1 + below(5));
        const auto schedule = static_cast<ScheduleKind>(below(3));
        const auto order =
            orderBlocks(pipeline.blocks, pipeline.dependencies, microBatches, stages, schedule, limits);
        ASSERT_TRUE(order);
        EXPECT_EQ(order->size(), static_cast<std::size_t>(2 * stages * microBatches));
        const auto most = mostHeld(*order, stages);
        for (std::size_t s = 0; s < most.size(); ++s) {
            EXPECT_LE(most[s], limits[s]) << "stage " << s << " of " << stages << ", trial " << trial;
            reached += most[s] == limits[s] && limits[s] > 1 ? 1 : 0;
        }
        for (const BlockDependency &dependency : pipeline.dependencies)
            for (std::int32_t m = 0; m < microBatches; ++m) {
                const auto at = [&](std::int32_t block) {
                    return std::find(order->begin(), order->end(), BlockRun{block, m}) - order->begin();
                };
                EXPECT_LT(at(dependency.earlier), at(dependency.later));
            }
    }
    EXPECT_GT(reached, 100);
}

TEST(OrderBlocks, ALimitThatRowsLeaveNoRoomForIsLiftedRatherThanWaitedForForever)
{
    Pipeline pipeline(1);
    pipeline.dependencies.push_back({0, 1, -1, RowId{4}}); // forward of the next before this one's backward
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 3, 1, ScheduleKind::OneFOneB, {1});
    ASSERT_TRUE(order);
    EXPECT_EQ(orderOfStage(*order, 0, 1), "F0 F1 B0 F2 B1 B2 ");
}

TEST(OrderBlocks, TheRowNamedIsOneThatIsLeft)
{
    Pipeline pipeline(2);
    pipeline.dependencies.push_back({0, 1, 0, RowId{3}}); // as the data flows: harmless
    pipeline.dependencies.push_back({3, 1, 0, RowId{4}});
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 2, 2, ScheduleKind::GPipe);
    ASSERT_FALSE(order);
    EXPECT_EQ(order.error().where, "row:4/rule");
}

TEST(OrderBlocks, ARowAgainstTheDataFlowIsNamed)
{
    Pipeline pipeline(1);
    pipeline.dependencies.push_back({1, 0, 0, RowId{4}});
    const auto order = orderBlocks(pipeline.blocks, pipeline.dependencies, 2, 1, ScheduleKind::Sequential);
    ASSERT_FALSE(order);
    EXPECT_EQ(order.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(order.error().where, "row:4/rule");
}

} // namespace
} // namespace planloom
