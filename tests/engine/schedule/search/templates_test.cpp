#include "engine/schedule/schedule_templates.h"
#include "engine/schedule/search/stage_blocks.h"
#include "tests/engine/schedule/search/placements_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace planloom {
namespace {

/// Stages by how they lie.
ScheduleSetting inTurn(std::int32_t ranks, std::int32_t chunks, std::int32_t microBatches)
{
    ScheduleSetting setting{.rankCount = ranks, .microBatches = microBatches};
    for (std::int32_t s = 0; s < ranks * chunks; ++s)
        setting.rankOf.push_back(s % ranks);
    return setting;
}

ScheduleSetting inWaves(std::int32_t ranks, std::int32_t waves, std::int32_t microBatches)
{
    ScheduleSetting setting{.rankCount = ranks, .microBatches = microBatches};
    for (std::int32_t s = 0; s < 2 * ranks * waves; ++s)
        setting.rankOf.push_back(s % (2 * ranks) < ranks ? s % (2 * ranks) : 2 * ranks - 1 - s % (2 * ranks));
    return setting;
}

ScheduleSetting mirrored(std::int32_t ranks, std::int32_t microBatches)
{
    ScheduleSetting setting = inTurn(ranks, 1, microBatches);
    for (std::int32_t s = 0; s < ranks; ++s)
        setting.laneRanks.push_back({s, ranks - 1 - s});
    return setting;
}

struct Played {
    std::vector<BlockStart> starts{};
    StagePlacement stages{};
    ScheduleFigures figures{};
    std::int64_t longestIdle = 0; ///< Of any rank between its first block and its last.
};

/// Plays a template and checks that it is a valid schedule of every block.
Played played(ScheduleKind kind, const ScheduleSetting &setting, StageBlocks blocks = {},
    std::int32_t withoutBackward = 0)
{
    std::vector<StageBlocks> stages(setting.rankOf.size(), blocks);
    for (std::int32_t s = 0; s < withoutBackward; ++s)
        stages[static_cast<std::size_t>(s)].hasBackward = false;
    Played result{.stages = placementOf(setting, stages, splitsBackward(kind))};
    const auto schedule = makeSchedule(kind, setting);
    EXPECT_TRUE(schedule) << describe(schedule.error());
    if (!schedule)
        return result;
    auto starts = playSchedule(result.stages, *schedule, setting.microBatches);
    EXPECT_TRUE(starts) << describe(starts.error());
    if (!starts)
        return result;
    result.starts = *std::move(starts);
    EXPECT_EQ(textOf(violationsOf(result.stages.placement, setting.microBatches, result.starts)), "");
    result.figures = figuresOf(result.stages.placement, result.starts);
    for (std::int32_t rank = 0; rank < setting.rankCount; ++rank) {
        std::int64_t first = result.figures.makespan;
        std::int64_t last = 0;
        for (const BlockStart &run : result.starts) {
            const PlacementBlock &block = result.stages.placement.blocks[static_cast<std::size_t>(run.block)];
            if (block.queue != 0 || std::count(block.devices.begin(), block.devices.end(), rank) == 0)
                continue;
            first = std::min(first, run.start);
            last = std::max(last, run.start + block.time);
        }
        result.longestIdle =
            std::max(result.longestIdle, last - first - result.figures.busy[static_cast<std::size_t>(rank)]);
    }
    return result;
}

void forEach(std::int32_t mostRanks, std::int32_t step,
    const std::function<void(std::int32_t p, std::int32_t m)> &check)
{
    for (std::int32_t p = step; p <= mostRanks; p += step)
        for (std::int32_t m = 1; m <= 16; ++m) {
            SCOPED_TRACE(testing::Message() << p << " ranks, " << m << " micro-batches");
            check(p, m);
        }
}

std::int64_t peakOf(const Played &result)
{
    return *std::max_element(result.figures.peakMemory.begin(), result.figures.peakMemory.end());
}

constexpr StageBlocks kTwice{.forward = 1, .backward = 1, .weights = 1}; ///< Backward twice as long.

/// (m + p - 1) (F + B); GPipe holds all micro-batches, 1F1B p - r, eager 1F1B 2 (p - r) - 1.
TEST(Templates, OneStageEachFollowTheirClosedForms)
{
    forEach(8, 1, [](std::int32_t p, std::int32_t m) {
        const auto setting = inTurn(p, 1, m);
        const auto gpipe = played(ScheduleKind::GPipe, setting, kTwice);
        const auto one = played(ScheduleKind::OneFOneB, setting, kTwice);
        const auto eager = played(ScheduleKind::Eager1F1B, setting, kTwice);
        for (const Played *each : {&gpipe, &one, &eager})
            EXPECT_EQ(each->figures.makespan, 3 * (m + p - 1));
        for (std::int32_t r = 0; r < p; ++r) {
            EXPECT_EQ(gpipe.figures.peakMemory[static_cast<std::size_t>(r)], m);
            EXPECT_EQ(one.figures.peakMemory[static_cast<std::size_t>(r)], std::min(p - r, m));
            EXPECT_EQ(eager.figures.peakMemory[static_cast<std::size_t>(r)], std::min(2 * (p - r) - 1, m));
        }
        EXPECT_EQ(one.figures.inFlight, std::min(p, m));
    });
}

/// What eager 1F1B is for: sends of a block's length hide behind blocks.
TEST(Templates, Eager1F1BHidesWhatIsSent)
{
    StageBlocks blocks = kTwice;
    blocks.sendForward = blocks.sendBackward = 1;
    for (const std::int32_t p : {2, 4, 8}) {
        const auto one = played(ScheduleKind::OneFOneB, inTurn(p, 1, 8 * p), blocks);
        const auto eager = played(ScheduleKind::Eager1F1B, inTurn(p, 1, 8 * p), blocks);
        EXPECT_LT(eager.figures.makespan, one.figures.makespan);
    }
}

/// (p - 1) (F + B) of a chunk is idle (arXiv:2211.05953, section 4; arXiv:2104.04473, section 2.2).
TEST(Templates, SeveralStagesEachFollowTheirClosedForms)
{
    for (const std::int32_t chunks : {1, 2, 3})
        forEach(chunks == 1 ? 8 : 4, 1, [&](std::int32_t p, std::int32_t m) {
            if (m < p)
                return;
            const auto first = played(ScheduleKind::BreadthFirst, inTurn(p, chunks, m), kTwice);
            EXPECT_EQ(first.figures.makespan, 3 * (m * chunks + p - 1));
            EXPECT_EQ(peakOf(first), m * chunks);
            if (m % p == 0) {
                const auto turns = played(ScheduleKind::Interleaved, inTurn(p, chunks, m), kTwice);
                EXPECT_EQ(turns.figures.makespan, 3 * (m * chunks + p - 1));
            }
        });
}

/// arXiv:2401.10241, table 2: idle (p - 1) (F + B - W) and p micro-batches held; nothing idle on any rank and
/// 2 p - 1 held.
TEST(Templates, ZeroBubbleSchedulesFollowTheirClosedForms)
{
    forEach(8, 1, [](std::int32_t p, std::int32_t m) {
        if (m >= p) {
            const auto h1 = played(ScheduleKind::ZeroBubbleH1, inTurn(p, 1, m));
            EXPECT_EQ(h1.figures.makespan, 3 * m + p - 1);
            EXPECT_EQ(peakOf(h1), p);
        }
        const auto h2 = played(ScheduleKind::ZeroBubbleH2, inTurn(p, 1, m));
        EXPECT_LE(peakOf(h2), 2 * p - 1);
        if (m >= 2 * p - 1) {
            EXPECT_EQ(h2.longestIdle, 0);
            EXPECT_EQ(peakOf(h2), 2 * p - 1);
        }
    });
}

/// No rank is idle between its first and its last block, and none holds more than 1F1B: p micro-batches of
/// its two stages.
TEST(Templates, ZeroBubbleVFollowsItsClosedForm)
{
    forEach(8, 1, [](std::int32_t p, std::int32_t m) {
        const auto v = played(ScheduleKind::ZeroBubbleV, inWaves(p, 1, m));
        EXPECT_LE(peakOf(v), 2 * p);
        if (m >= 2 * p) {
            EXPECT_EQ(v.longestIdle, 0);
            EXPECT_EQ(v.figures.makespan, 6 * m + p - 1);
        }
    });
}

/// arXiv:2405.15362, table 1: p micro-batches' activations under 1F1B, (p + 2) / 2 under V-Half, (p + 4) / 3
/// under V-Min; here counted in stages, of which a rank has two. Ramps apart, ranks are always busy.
TEST(Templates, VSchedulesHoldAsLittleAsThePaperSays)
{
    for (const ScheduleKind kind : {ScheduleKind::VHalf, ScheduleKind::VMin})
        forEach(8, 1, [&](std::int32_t p, std::int32_t m) {
            const auto v = played(kind, inWaves(p, 1, m));
            if (kind == ScheduleKind::VHalf)
                EXPECT_LE(peakOf(v), p + 2);
            else
                EXPECT_LE(3 * peakOf(v), 2 * (p + 4));
            if (m > 1) {
                const auto before = played(kind, inWaves(p, 1, m - 1));
                EXPECT_LE(v.figures.makespan - before.figures.makespan, 6 + (m <= p ? 6 : 0));
            }
        });
}

/// arXiv:2107.06925, section 3, table 2: S - 2 slots are idle where blocks are equally long.
TEST(Templates, ChimeraFollowsItsClosedForm)
{
    const StageBlocks equal{.forward = 2, .backward = 1, .weights = 1};
    forEach(8, 2, [&](std::int32_t p, std::int32_t m) {
        if (m % (p / 2) != 0)
            return;
        const auto both = played(ScheduleKind::Chimera, mirrored(p, m), equal);
        EXPECT_EQ(both.figures.makespan, 2 * (4 * m + p - 2));
    });
}

/// arXiv:2412.19437, table 2: (p / 2 - 1) (F|B + B - 3 W) idle, and p + 1 micro-batches held at most. Where
/// F|B takes F + B + W, one after another, that is 2 slots; one of them goes where gradients of inputs are
/// handed on before those of weights are there, as here.
TEST(Templates, DualPipeFollowsItsClosedForm)
{
    forEach(8, 2, [](std::int32_t p, std::int32_t m) {
        if (m < p)
            return;
        const auto dual = played(ScheduleKind::DualPipe, mirrored(p, m));
        EXPECT_EQ(dual.figures.makespan, 6 * m + (p / 2 - 1));
        EXPECT_LE(peakOf(dual), p + 1);
    });
    forEach(8, 1, [](std::int32_t p, std::int32_t m) {
        if (m < 2 * p)
            return;
        const auto dual = played(ScheduleKind::DualPipeV, inWaves(p, 1, m));
        EXPECT_EQ(dual.figures.makespan, 6 * m + (p - 1));
        EXPECT_LE(peakOf(dual), 2 * p + 1);
    });
}

/// Where every rank has one wave's work, forward 1 and backward 2: W waves of p ranks and p micro-batches.
TEST(Templates, HanayoWaitsLessTheMoreWavesThereAre)
{
    for (const std::int32_t p : {2, 4, 8}) {
        double before = 1;
        for (const std::int32_t waves : {1, 2, 4}) {
            const auto hanayo = played(ScheduleKind::Hanayo, inWaves(p, waves, p), kTwice);
            const double bubble =
                1 - static_cast<double>(6 * waves * p) / static_cast<double>(hanayo.figures.makespan);
            EXPECT_LT(bubble, before) << p << " ranks, " << waves << " waves: " << hanayo.figures.makespan;
            before = bubble;
            EXPECT_LE(hanayo.figures.inFlight, p);
        }
    }
}

/// v + 1 slots a micro-batch, behind one that goes through v p forward slots and (p - 1) v + 1 slots back,
/// and waits less than a period each time it turns.
TEST(Templates, RecyclingFollowsEveryPeriodWithAnother)
{
    const StageBlocks equal{.forward = 2, .backward = 1, .weights = 1};
    for (const std::int32_t passes : {1, 2, 3, 4})
        forEach(8, 1, [&](std::int32_t p, std::int32_t m) {
            const auto result =
                played(ScheduleKind::Recycling, inTurn(p, passes, m), equal, (passes - 1) * p);
            const std::int32_t period = passes + 1;
            const std::int32_t alone = passes * p + (p - 1) * passes + 1;
            EXPECT_LE(result.figures.makespan, 2 * ((m - 1) * period + alone + passes * passes));
            EXPECT_LE(peakOf(result), p + 1);
        });
}

/// 2 m + 2 (S - 1) steps of 1F1B and 2 m more for each full-width stage (reference-systems.md, section 3.3).
TEST(Templates, OneFOneBPlusFollowsItsClosedForm)
{
    const StageBlocks equal{.forward = 2, .backward = 1, .weights = 1};
    for (const std::size_t place : {0, 1, 2}) // first, in the middle, last
        forEach(8, 1, [&](std::int32_t p, std::int32_t m) {
            ScheduleSetting setting = inTurn(p, 1, m);
            const std::size_t at = place == 0 ? 0
                : place == 1                  ? setting.rankOf.size() / 2
                                              : setting.rankOf.size();
            setting.rankOf.insert(setting.rankOf.begin() + static_cast<std::ptrdiff_t>(at), -1);
            setting.wide.assign(setting.rankOf.size(), false);
            setting.wide[at] = true;
            const auto plus = played(ScheduleKind::OneFOneBPlus, setting, equal);
            EXPECT_LE(plus.figures.makespan, 2 * (2 * m + 2 * (p - 1) + 2 * m));
            EXPECT_LE(plus.figures.inFlight, p + 1);
        });
}

/// Forward alone: m + S - 1 slots (the inference pipeline of reference-systems.md, section 3.3).
TEST(Templates, RunForwardAloneWithoutABackwardPass)
{
    forEach(8, 1, [](std::int32_t p, std::int32_t m) {
        for (const ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneFOneB,
                 ScheduleKind::ZeroBubbleH1, ScheduleKind::ZeroBubbleH2, ScheduleKind::Eager1F1B}) {
            ScheduleSetting setting = inTurn(p, 1, m);
            setting.backward = false;
            EXPECT_EQ(played(kind, setting).figures.makespan, m + p - 1);
        }
    });
}

TEST(Templates, SayWhatTheyNeed)
{
    const auto refuses = [](ScheduleKind kind, const ScheduleSetting &setting) {
        const auto made = makeSchedule(kind, setting);
        return !made && made.error().code == ErrorCode::InvalidInput && !made.error().message.empty();
    };
    for (const ScheduleKind kind : {ScheduleKind::ZeroBubbleV, ScheduleKind::VHalf, ScheduleKind::VMin,
             ScheduleKind::DualPipeV, ScheduleKind::Hanayo, ScheduleKind::DualPipe})
        EXPECT_TRUE(refuses(kind, inTurn(4, 2, 8))) << nameOf(kind);
    for (const ScheduleKind kind : {ScheduleKind::BreadthFirst, ScheduleKind::Recycling,
             ScheduleKind::OneFOneBPlus, ScheduleKind::ZeroBubbleH2, ScheduleKind::Eager1F1B})
        EXPECT_TRUE(refuses(kind, inWaves(4, 1, 8))) << nameOf(kind);
    EXPECT_TRUE(refuses(ScheduleKind::DualPipeV, inWaves(4, 1, 7)));
    EXPECT_TRUE(refuses(ScheduleKind::DualPipe, mirrored(4, 3)));
}

/// A schedule that cannot run says which two blocks stop it.
TEST(Templates, DeadlocksNameTheirBlocks)
{
    const auto setting = inTurn(2, 1, 1);
    const StagePlacement stages = placementOf(setting, {{}, {}}, false);
    Schedule schedule = inTurnSchedule(setting, {1, 1});
    std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);
    const auto starts = playSchedule(stages, schedule, 1);
    ASSERT_FALSE(starts);
    EXPECT_EQ(starts.error().message,
        "the schedule stops: rank 0 waits with its backward block of stage 0, micro-batch 0 for the backward "
        "block of stage 1, micro-batch 0, which never comes before it");
}

} // namespace
} // namespace planloom
