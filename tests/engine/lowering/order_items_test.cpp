#include "engine/lowering/order/order_items.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

BlockInfo blockOn(SegmentKind kind, std::int32_t stage)
{
    return {.kind = kind, .stage = StageId{stage}, .devices = {DeviceId{stage}}};
}

TEST(OrderItems, AreFoundByWhatSchedulesCallThem)
{
    const std::vector<BlockInfo> blocks{blockOn(SegmentKind::Prologue, 0), blockOn(SegmentKind::Forward, 1),
        blockOn(SegmentKind::InputGradient, 1), {.kind = SegmentKind::Backward, .stage = StageId{2}}};
    const OrderItems items(blocks, 3);
    EXPECT_EQ(items.count(), 6U) << "of blocks of micro-batches that devices run";
    EXPECT_EQ(items.positionOf(0), -1);
    EXPECT_EQ(items.positionOf(3), -1);
    EXPECT_EQ(items.find({{StageId{1}, SegmentKind::Forward}, 2}), std::size_t{2});
    EXPECT_EQ(items.find({{StageId{1}, SegmentKind::Backward}, 0}), std::size_t{3})
        << "a whole backward block is that of input gradients, where it is split";
    EXPECT_EQ(items.find({{StageId{1}, SegmentKind::Forward}, 3}), std::nullopt);
    EXPECT_EQ(items.find({{StageId{1}, SegmentKind::WeightGradient}, 0}), std::nullopt);
    EXPECT_EQ(items.runOf(4), (BlockRun{2, 1}));
}

} // namespace
} // namespace planloom
