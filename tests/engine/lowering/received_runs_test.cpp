#include "engine/lowering/order/received_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace planloom {
namespace {

constexpr std::int32_t kStages = 3;
constexpr std::int32_t kMicroBatches = 6;

/// Forward blocks 0 ... stages - 1, then a transfer behind each but the last.
std::vector<BlockInfo> forwardPipeline(double firstSeconds, double transferSeconds)
{
    std::vector<BlockInfo> blocks;
    for (std::int32_t s = 0; s < kStages; ++s)
        blocks.push_back({.kind = SegmentKind::Forward,
            .stage = StageId{s},
            .rank = 1.0 + s,
            .seconds = s == 0 ? firstSeconds : 1,
            .devices = {DeviceId{s}}});
    for (std::int32_t s = 0; s + 1 < kStages; ++s)
        blocks.push_back({.kind = SegmentKind::Transfer,
            .stage = StageId{s},
            .rank = 1.25 + s,
            .source = s,
            .target = s + 1,
            .seconds = transferSeconds,
            .devices = {DeviceId{s}, DeviceId{s + 1}}});
    return blocks;
}

/// However fast the first stage is: no device receives what it needs two blocks later before it has sent what
/// it made, or the device behind it would wait for that.
TEST(ReceivedRuns, ComeNoEarlierThanTheyAreOfUse)
{
    for (const double first : {0.1, 0.9, 1.0, 3.0})
        for (const double transfer : {0.0, 0.2, 2.0})
            for (const ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
                SCOPED_TRACE(std::to_string(first) + " " + std::to_string(transfer) + " " + nameOf(kind));
                const auto blocks = forwardPipeline(first, transfer);
                const auto order = orderBlocks(blocks, {}, kMicroBatches, kStages, kind);
                ASSERT_TRUE(order) << describe(order.error());
                ASSERT_EQ(order->size(), blocks.size() * kMicroBatches);
                const auto placeOf = [&](std::int32_t block, std::int32_t microBatch) {
                    return std::find(order->begin(), order->end(), BlockRun{block, microBatch})
                        - order->begin();
                };
                for (std::int32_t m = 0; m < kMicroBatches; ++m)
                    for (std::int32_t s = 0; s + 1 < kStages; ++s) {
                        const std::int32_t sends = kStages + s;
                        EXPECT_LT(placeOf(s, m), placeOf(sends, m));
                        EXPECT_LT(placeOf(sends, m), placeOf(s + 1, m));
                        if (s > 0 && m + 2 < kMicroBatches) {
                            EXPECT_LT(placeOf(sends, m), placeOf(sends - 1, m + 2));
                        }
                    }
            }
}

/// Transfers from one block may share what they send: they keep their order.
TEST(ReceivedRuns, OfOneSourceStandInTheirOrder)
{
    std::vector<BlockInfo> blocks = forwardPipeline(1, 0.5);
    BlockInfo further = blocks[kStages]; // from stage 0 to stage 2, too, which has time
    further.target = 2;
    further.rank = 1.3;
    further.devices = {DeviceId{0}, DeviceId{2}};
    blocks.push_back(further);
    const auto order = orderBlocks(blocks, {}, kMicroBatches, kStages, ScheduleKind::GPipe);
    ASSERT_TRUE(order) << describe(order.error());
    for (std::int32_t m = 0; m < kMicroBatches; ++m) {
        const auto near = std::find(order->begin(), order->end(), BlockRun{kStages, m});
        const auto far = std::find(
            order->begin(), order->end(), BlockRun{static_cast<std::int32_t>(blocks.size()) - 1, m});
        ASSERT_TRUE(near != order->end() && far != order->end());
        EXPECT_LT(near - order->begin(), far - order->begin());
    }
}

} // namespace
} // namespace planloom
