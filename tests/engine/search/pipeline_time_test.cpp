#include "engine/search/pipeline_time.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

std::vector<StageTime> alike(std::int32_t stages, double forward, double backward, double weights = 0)
{
    return std::vector<StageTime>(static_cast<std::size_t>(stages),
        StageTime{.forward = forward, .backward = backward, .weights = weights});
}

/// (m + p - 1) (F + B) for GPipe and 1F1B alike; p - s micro-batches in flight under 1F1B, all under GPipe.
TEST(PipelineTime, FollowsTheClosedFormsOfGPipeAnd1F1B)
{
    for (const std::int32_t p : {1, 2, 4, 8})
        for (const std::int32_t m : {1, 4, 8, 16}) {
            const auto one = playPipeline(ScheduleKind::OneFOneB, alike(p, 1, 2), {}, p, m, true);
            const auto all = playPipeline(ScheduleKind::GPipe, alike(p, 1, 2), {}, p, m, true);
            ASSERT_TRUE(one && all);
            EXPECT_DOUBLE_EQ(one->makespan, 3.0 * (m + p - 1)) << p << " x " << m;
            EXPECT_DOUBLE_EQ(all->makespan, 3.0 * (m + p - 1)) << p << " x " << m;
            for (std::int32_t s = 0; s < p; ++s) {
                EXPECT_EQ(one->inFlight[static_cast<std::size_t>(s)], std::min(p - s, m));
                EXPECT_EQ(all->inFlight[static_cast<std::size_t>(s)], p == 1 ? 1 : m);
            }
        }
}

/// (p - 1) (F + B) / v of bubble (arXiv:2104.04473, section 2.2).
TEST(PipelineTime, FollowsTheClosedFormOfInterleavedStages)
{
    for (const std::int32_t v : {2, 4}) {
        const auto time = playPipeline(ScheduleKind::Interleaved, alike(4 * v, 1, 2), {}, 4, 8, true);
        ASSERT_TRUE(time);
        EXPECT_DOUBLE_EQ(time->makespan, 3.0 * (8 * v + 4 - 1));
    }
}

/// (p - 1) (F + B - W) idle (arXiv:2401.10241, section 2.1).
TEST(PipelineTime, FollowsTheClosedFormOfZeroBubbleH1)
{
    const auto time = playPipeline(ScheduleKind::ZeroBubbleH1, alike(4, 1, 1, 1), {}, 4, 8, true);
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->makespan, 3.0 * 8 + 3.0 * (1 + 1 - 1));
}

/// In 1F1B the way there and back is waited for once every micro-batch.
TEST(PipelineTime, WaitsForWhatIsSent)
{
    auto stages = alike(2, 1, 2);
    const auto time = playPipeline(ScheduleKind::OneFOneB, stages, {{0, 1, 0.25, 0.5}}, 2, 1, true);
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->makespan, 1 + 0.25 + 1 + 2 + 0.5 + 2);
    EXPECT_DOUBLE_EQ(time->lastBackward[0], 4.75);
    EXPECT_DOUBLE_EQ(time->end[1], 4.25);
}

TEST(PipelineTime, RunsForwardAlone)
{
    const auto time = playPipeline(ScheduleKind::OneFOneB, alike(4, 1, 2), {}, 4, 8, false);
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->makespan, 8 + 3);
}

} // namespace
} // namespace planloom
