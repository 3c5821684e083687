#include "engine/search/time/pipeline_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace planloom {
namespace {

std::vector<StageTime> alike(std::int32_t stages, double forward, double backward, double weights = 0)
{
    return std::vector<StageTime>(static_cast<std::size_t>(stages),
        StageTime{.forward = forward, .backward = backward, .weights = weights, .kept = 1});
}

/// (m + p - 1) (F + B) for GPipe and 1F1B alike; p - s micro-batches in flight under 1F1B, all under GPipe.
TEST(PipelineTime, FollowsTheClosedFormsOfGPipeAnd1F1B)
{
    for (const std::int32_t p : {1, 2, 4, 8})
        for (const std::int32_t m : {1, 4, 8, 16}) {
            const auto one =
                playPipeline(ScheduleKind::OneFOneB, alike(p, 1, 2), {}, SendOrder::Queued, p, m, true);
            const auto all =
                playPipeline(ScheduleKind::GPipe, alike(p, 1, 2), {}, SendOrder::Queued, p, m, true);
            ASSERT_TRUE(one && all);
            EXPECT_DOUBLE_EQ(one->makespan, 3.0 * (m + p - 1)) << p << " x " << m;
            EXPECT_DOUBLE_EQ(all->makespan, 3.0 * (m + p - 1)) << p << " x " << m;
            for (std::int32_t s = 0; s < p; ++s) {
                EXPECT_EQ(one->held[static_cast<std::size_t>(s)], std::min(p - s, m));
                EXPECT_EQ(all->held[static_cast<std::size_t>(s)], p == 1 ? 1 : m);
            }
        }
}

/// Between the parts of a split backward pass a micro-batch holds what gradients of weights are made of.
TEST(PipelineTime, CountsWhatIsDeferred)
{
    for (const std::int32_t m : {1, 2, 8}) {
        std::vector<StageTime> stages(
            2, StageTime{.forward = 1, .backward = 1, .weights = 1, .kept = 10, .deferred = 4});
        const auto less = playPipeline(ScheduleKind::ZeroBubbleH1, stages, {}, SendOrder::Queued, 2, m, true);
        ASSERT_TRUE(less) << describe(less.error());
        EXPECT_GE(less->held[1], 10);
        EXPECT_EQ(less->heldBy[1].microBatches, 1);
        stages[1].deferred = 100;
        const auto more = playPipeline(ScheduleKind::ZeroBubbleH1, stages, {}, SendOrder::Queued, 2, m, true);
        ASSERT_TRUE(more);
        EXPECT_EQ(more->held[0], less->held[0]);
        EXPECT_GE(more->held[1], 100);
        EXPECT_EQ(more->makespan, less->makespan);
        const auto whole = playPipeline(ScheduleKind::OneFOneB, stages, {}, SendOrder::Queued, 2, m, true);
        ASSERT_TRUE(whole);
        EXPECT_EQ(whole->held[1], 10); // nothing is deferred where the pass is one
    }
}

/// Gradients of a stage are there from its first backward pass on, when one micro-batch less is.
TEST(PipelineTime, CountsGradientsBesideWhatIsKept)
{
    for (const std::int32_t p : {1, 2, 4})
        for (const std::int32_t m : {1, 2, 4, 8})
            for (const std::int64_t gradients : {1, 2, 100}) {
                auto stages = alike(p, 1, 2);
                for (StageTime &stage : stages)
                    stage.gradients = gradients;
                const auto one =
                    playPipeline(ScheduleKind::OneFOneB, stages, {}, SendOrder::Queued, p, m, true);
                const auto all = playPipeline(ScheduleKind::GPipe, stages, {}, SendOrder::Queued, p, m, true);
                ASSERT_TRUE(one && all);
                for (std::int32_t s = 0; s < p; ++s) {
                    const std::int64_t most = std::min(p - s, m);
                    EXPECT_EQ(one->held[static_cast<std::size_t>(s)],
                        std::max(most, most - (m > most ? 0 : 1) + gradients));
                    if (p > 1) {
                        EXPECT_EQ(all->held[static_cast<std::size_t>(s)],
                            std::max<std::int64_t>(m, m - 1 + gradients));
                    }
                }
            }
    // Of several stages on a rank they come one after another: the later one's while the earlier one holds.
    std::vector<StageTime> stages(2, StageTime{.forward = 1, .backward = 1, .kept = 10, .gradients = 7});
    const auto both = playPipeline(ScheduleKind::Interleaved, stages, {}, SendOrder::Queued, 1, 1, true);
    ASSERT_TRUE(both) << describe(both.error());
    EXPECT_EQ(both->held.front(), 20);
    stages[1].gradients = 15;
    EXPECT_EQ(
        playPipeline(ScheduleKind::Interleaved, stages, {}, SendOrder::Queued, 1, 1, true)->held.front(), 25);
}

/// (p - 1) (F + B) / v of bubble (arXiv:2104.04473, section 2.2).
TEST(PipelineTime, FollowsTheClosedFormOfInterleavedStages)
{
    for (const std::int32_t v : {2, 4}) {
        const auto time =
            playPipeline(ScheduleKind::Interleaved, alike(4 * v, 1, 2), {}, SendOrder::Queued, 4, 8, true);
        ASSERT_TRUE(time);
        EXPECT_DOUBLE_EQ(time->makespan, 3.0 * (8 * v + 4 - 1));
    }
}

/// (p - 1) (F + B - W) idle (arXiv:2401.10241, section 2.1).
TEST(PipelineTime, FollowsTheClosedFormOfZeroBubbleH1)
{
    const auto time =
        playPipeline(ScheduleKind::ZeroBubbleH1, alike(4, 1, 1, 1), {}, SendOrder::Queued, 4, 8, true);
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->makespan, 3.0 * 8 + 3.0 * (1 + 1 - 1));
}

/// In 1F1B the way there and back is waited for once every micro-batch.
TEST(PipelineTime, WaitsForWhatIsSent)
{
    auto stages = alike(2, 1, 2);
    const auto time =
        playPipeline(ScheduleKind::OneFOneB, stages, {{0, 1, 0.25, 0.5}}, SendOrder::Queued, 2, 1, true);
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->makespan, 1 + 0.25 + 1 + 2 + 0.5 + 2);
    EXPECT_DOUBLE_EQ(time->lastBackward[0], 4.75);
    EXPECT_DOUBLE_EQ(time->end[1], 4.25);
}

/// What a stage sends before is in the way of what it sends behind; gradients go against it.
///
///     sends   F0 [1    5] F1 [5    9]        rank 0   F0 F1    B0             B1
///             B0       [7 8]       B1 [11 12]     rank 1         F0 B0   F1 B1
TEST(PipelineTime, SendsOneAfterTheOtherEachWay)
{
    const std::vector<StageSend> sends{{0, 1, 4, 1}};
    const auto play = [&](SendOrder order, std::vector<PlayedBlock> &blocks) {
        return playPipeline(ScheduleKind::OneFOneB, alike(2, 1, 1), sends, order, 2, 2, true, &blocks);
    };
    const auto startOf = [](const std::vector<PlayedBlock> &blocks, std::int32_t stage, SegmentKind pass,
                             std::int32_t microBatch) {
        for (const PlayedBlock &each : blocks)
            if (each.block.block.stage.index == stage && each.block.block.pass == pass
                && each.block.microBatch == microBatch)
                return each.start;
        return -1.0;
    };
    std::vector<PlayedBlock> queued;
    const auto time = play(SendOrder::Queued, queued);
    ASSERT_TRUE(time);
    EXPECT_EQ(startOf(queued, 1, SegmentKind::Forward, 0), 5);
    EXPECT_EQ(startOf(queued, 1, SegmentKind::Forward, 1), 9);
    EXPECT_EQ(startOf(queued, 0, SegmentKind::Backward, 0), 8) << "it does not wait for what is sent until 9";
    EXPECT_EQ(time->makespan, 13);
    std::vector<PlayedBlock> anyhow;
    const auto sooner = play(SendOrder::Any, anyhow);
    ASSERT_TRUE(sooner);
    EXPECT_EQ(startOf(anyhow, 1, SegmentKind::Forward, 1), 7);
    EXPECT_EQ(sooner->makespan, 11);
}

/// A block begins, and does what it can, while what it reads later is on its way; the link is no sooner free.
TEST(PipelineTime, BeginsBeforeAllIsThereThatItReads)
{
    const std::vector<StageSend> sends{
        {.from = 0, .to = 1, .forward = 4, .backward = 3, .forwardAhead = 1, .backwardAhead = 0}};
    for (const SendOrder order : {SendOrder::Any, SendOrder::Queued}) {
        const auto once = playPipeline(ScheduleKind::OneFOneB, alike(2, 2, 2), sends, order, 2, 1, true);
        ASSERT_TRUE(once);
        EXPECT_EQ(once->begin[1], 2 + 1);
        EXPECT_EQ(once->lastBackward[0], 3 + 2 + 2 + 0);
        const auto twice = playPipeline(ScheduleKind::GPipe, alike(2, 2, 2), sends, order, 2, 2, true);
        ASSERT_TRUE(twice);
        // The second is sent from 4 on, or from 6, when the first is: there it can begin at 7.
        EXPECT_EQ(twice->lastInput[1], order == SendOrder::Any ? 9 : 11);
    }
}

/// A decoder's first stage waits for none of the encoder's, the next one for both.
TEST(PipelineTime, WaitsForThoseAloneThatSend)
{
    const std::vector<StageSend> sends{{0, 2, 0, 0}, {1, 2, 0, 0}};
    const auto time =
        playPipeline(ScheduleKind::OneFOneB, alike(3, 1, 2), sends, SendOrder::Queued, 3, 1, true);
    ASSERT_TRUE(time);
    EXPECT_EQ(time->begin, (std::vector<double>{0, 0, 1}));
    EXPECT_EQ(time->lastBackward, (std::vector<double>{4, 4, 2}));
    EXPECT_EQ(time->makespan, 6);
    // Nor for the backward pass of one that gives no gradients back.
    std::vector<StageSend> chain{{0, 1, 0, 0}, {0, 2, 0, 0}, {1, 2, 0, 0}};
    chain[0].gradients = chain[2].gradients = false;
    const auto apart =
        playPipeline(ScheduleKind::OneFOneB, alike(3, 1, 2), chain, SendOrder::Queued, 3, 1, true);
    ASSERT_TRUE(apart);
    EXPECT_EQ(apart->begin, (std::vector<double>{0, 1, 2}));
    EXPECT_EQ(apart->lastBackward, (std::vector<double>{5, 2, 3}));
}

/// Bounds are of sends in any order, of what takes less.
TEST(PipelineTime, IsNoShorterWithQueuedSends)
{
    std::mt19937 random(5);
    const auto below = [&](unsigned count) { return static_cast<double>(random() % count); };
    bool longer = false;
    for (int round = 0; round < 200; ++round) {
        const auto kind = std::array{ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::ZeroBubbleH1,
            ScheduleKind::Interleaved}[static_cast<std::size_t>(round % 4)];
        const int stages = kind == ScheduleKind::Interleaved ? 8 : 4;
        std::vector<StageTime> own, less;
        for (int s = 0; s < stages; ++s) {
            own.push_back({.forward = 1 + below(4), .backward = 1 + below(4), .weights = below(3)});
            less.push_back(own.back());
            less.back().forward -= below(2);
        }
        std::vector<StageSend> sends;
        for (int from = 0; from < stages; ++from)
            for (int to = from + 1; to < stages; ++to)
                if (to == from + 1 || random() % 4 == 0)
                    sends.push_back({from, to, below(6), below(6)});
        const auto play = [&](const std::vector<StageTime> &times, SendOrder order) {
            const auto time = playPipeline(kind, times, sends, order, 4, 8, true);
            EXPECT_TRUE(time);
            return *time;
        };
        const PipelineTime queued = play(own, SendOrder::Queued);
        const PipelineTime any = play(less, SendOrder::Any);
        for (std::size_t s = 0; s < own.size(); ++s)
            EXPECT_GE(queued.end[s], any.end[s]);
        EXPECT_EQ(queued.held, any.held) << "ranks keep their order";
        longer = longer || queued.makespan > play(own, SendOrder::Any).makespan;
    }
    EXPECT_TRUE(longer);
}

TEST(PipelineTime, RunsForwardAlone)
{
    const auto time =
        playPipeline(ScheduleKind::OneFOneB, alike(4, 1, 2), {}, SendOrder::Queued, 4, 8, false);
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->makespan, 8 + 3);
}

} // namespace
} // namespace planloom
