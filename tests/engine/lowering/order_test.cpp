#include "engine/lowering/order.h"

#include <gtest/gtest.h>

#include <map>

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
