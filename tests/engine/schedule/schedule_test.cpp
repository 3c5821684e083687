#include "engine/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace planloom {
namespace {

ScheduleSetting dealtOut(std::int32_t ranks, std::int32_t chunks, std::int32_t microBatches)
{
    ScheduleSetting setting{.rankCount = ranks, .microBatches = microBatches};
    for (std::int32_t s = 0; s < ranks * chunks; ++s)
        setting.rankOf.push_back(s % ranks);
    return setting;
}

/// In `kPasses`.
std::size_t indexOf(SegmentKind pass)
{
    return static_cast<std::size_t>(std::find(kPasses.begin(), kPasses.end(), pass) - kPasses.begin());
}

/// What blocks take, by pass.
using PassTimes = std::array<std::int64_t, 4>;

/// Carries a schedule out: each block once its rank and the blocks it needs are done.
/// @return the makespan; nothing if it gets stuck
std::optional<std::int64_t> makespanOf(
    const Schedule &schedule, std::int32_t stages, const PassTimes &times = {1, 2, 1, 1})
{
    std::map<ScheduledBlock, std::int64_t> done;
    std::vector<std::size_t> next(schedule.ranks.size(), 0);
    std::vector<std::int64_t> free(schedule.ranks.size(), 0);
    std::size_t left = 0;
    for (const auto &rank : schedule.ranks)
        left += rank.size();
    for (bool progress = true; progress && left > 0;) {
        progress = false;
        for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
            if (next[r] == schedule.ranks[r].size())
                continue;
            const ScheduledBlock &block = schedule.ranks[r][next[r]];
            const std::int32_t s = block.block.stage.index;
            const SegmentKind pass = block.block.pass;
            const bool forward = pass == SegmentKind::Forward;
            std::vector<ScheduledBlock> needs;
            if (forward && s > 0)
                needs.push_back({{StageId{s - 1}, SegmentKind::Forward}, block.microBatch});
            if (!forward)
                needs.push_back({{StageId{s}, SegmentKind::Forward}, block.microBatch});
            if (!forward && pass != SegmentKind::WeightGradient && s + 1 < stages)
                needs.push_back({{StageId{s + 1}, pass}, block.microBatch});
            if (pass == SegmentKind::WeightGradient)
                needs.push_back({{StageId{s}, SegmentKind::InputGradient}, block.microBatch});
            std::int64_t start = free[r];
            bool ready = true;
            for (const ScheduledBlock &need : needs) {
                ready = ready && done.contains(need);
                if (ready)
                    start = std::max(start, done.at(need));
            }
            if (!ready)
                continue;
            free[r] = start + times[indexOf(pass)];
            done[block] = free[r];
            ++next[r];
            --left;
            progress = true;
        }
    }
    if (left > 0)
        return std::nullopt;
    return *std::max_element(free.begin(), free.end());
}

TEST(Schedule, InterleavedRunsEveryBlockOnceAndWaitsAsThePaperSays)
{
    for (const std::int32_t p : {1, 2, 3, 4})
        for (const std::int32_t v : {1, 2, 3})
            for (const std::int32_t m : {p, 2 * p, 4 * p}) {
                SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(v) + " stages each, "
                    + std::to_string(m) + " micro-batches");
                const auto schedule = interleavedSchedule(dealtOut(p, v, m));
                ASSERT_TRUE(schedule) << describe(schedule.error());
                std::set<ScheduledBlock> blocks;
                for (std::int32_t r = 0; r < p; ++r)
                    for (const ScheduledBlock &block : schedule->ranks[static_cast<std::size_t>(r)]) {
                        EXPECT_EQ(block.block.stage.index % p, r);
                        EXPECT_TRUE(blocks.insert(block).second);
                    }
                EXPECT_EQ(blocks.size(), static_cast<std::size_t>(2 * p * v * m));
                const auto makespan = makespanOf(*schedule, p * v);
                ASSERT_TRUE(makespan);
                // The bubble is (p - 1) / v of a micro-batch's whole time; here a chunk takes 3.
                EXPECT_EQ(*makespan, std::int64_t{3} * v * m + 3 * (p - 1));
            }
}

TEST(Schedule, InterleavedSaysWhatItNeeds)
{
    const auto odd = interleavedSchedule(dealtOut(4, 2, 6));
    ASSERT_FALSE(odd);
    EXPECT_NE(odd.error().message.find("multiple of 4"), std::string::npos) << odd.error().message;
    ScheduleSetting inBlocks{.rankOf = {0, 0, 1, 1}, .rankCount = 2, .microBatches = 4};
    EXPECT_FALSE(interleavedSchedule(inBlocks));
}

std::string textOf(const std::vector<ScheduledBlock> &rank)
{
    std::string text;
    for (const ScheduledBlock &block : rank)
        text += (text.empty() ? "" : " ") + std::string(1, "FBBW"[indexOf(block.block.pass)])
            + std::to_string(block.microBatch);
    return text;
}

/// Figure 2 of arXiv:2401.10241, numbered from 0.
TEST(Schedule, ZeroBubbleH1IsThePapers)
{
    const auto schedule = zeroBubbleH1Schedule(dealtOut(4, 1, 8));
    ASSERT_TRUE(schedule) << describe(schedule.error());
    ASSERT_EQ(schedule->ranks.size(), 4U);
    EXPECT_EQ(textOf(schedule->ranks[0]),
        "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7");
    EXPECT_EQ(textOf(schedule->ranks[1]),
        "F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7");
    EXPECT_EQ(textOf(schedule->ranks[2]),
        "F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7");
    EXPECT_EQ(textOf(schedule->ranks[3]),
        "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7");
}

/// Table 2 of the paper: the bubble, and p micro-batches in memory at most.
TEST(Schedule, ZeroBubbleH1WaitsAndHoldsAsThePaperSays)
{
    for (const std::int32_t p : {1, 2, 3, 4, 6})
        for (const std::int32_t m : {p, p + 1, 3 * p})
            for (const auto &[f, b, w] :
                {std::array<std::int64_t, 3>{1, 1, 1}, {3, 2, 1}, {2, 3, 2}, {5, 4, 3}}) {
                SCOPED_TRACE(std::to_string(p) + " ranks, " + std::to_string(m) + " micro-batches, "
                    + std::to_string(f) + " " + std::to_string(b) + " " + std::to_string(w));
                const auto schedule = zeroBubbleH1Schedule(dealtOut(p, 1, m));
                ASSERT_TRUE(schedule) << describe(schedule.error());
                const auto makespan = makespanOf(*schedule, p, {f, b + w, b, w});
                ASSERT_TRUE(makespan);
                EXPECT_EQ(*makespan, m * (f + b + w) + (p - 1) * (f + b - w));
                for (const auto &rank : schedule->ranks) {
                    std::int32_t held = 0;
                    for (const ScheduledBlock &block : rank) {
                        held += block.block.pass == SegmentKind::Forward ? 1 : 0;
                        EXPECT_LE(held, p);
                        held -= block.block.pass == SegmentKind::WeightGradient ? 1 : 0;
                    }
                    EXPECT_EQ(held, 0);
                }
            }
    for (const std::int32_t m : {1, 2, 3}) // fewer micro-batches than ranks
        EXPECT_TRUE(makespanOf(*zeroBubbleH1Schedule(dealtOut(4, 1, m)), 4));
    EXPECT_FALSE(zeroBubbleH1Schedule(dealtOut(2, 2, 4)));
}

/// Section 3 of arXiv:2107.06925: each rank is idle for S - 2 slots of a step.
TEST(Schedule, ChimeraWaitsAsThePaperSays)
{
    for (const std::int32_t stages : {2, 4, 6, 8})
        for (const std::int32_t units : {1, 2, 3}) {
            SCOPED_TRACE(std::to_string(stages) + " stages, " + std::to_string(units) + " units");
            ScheduleSetting setting{.rankCount = stages / 2, .microBatches = units * stages / 2};
            for (std::int32_t s = 0; s < stages; ++s)
                setting.rankOf.push_back(std::min(s, stages - 1 - s));
            const auto schedule = chimeraSchedule(setting);
            ASSERT_TRUE(schedule) << describe(schedule.error());
            std::set<ScheduledBlock> blocks;
            for (const auto &rank : schedule->ranks)
                blocks.insert(rank.begin(), rank.end());
            EXPECT_EQ(blocks.size(), static_cast<std::size_t>(2 * stages * setting.microBatches));
            const auto makespan = makespanOf(*schedule, stages, {1, 1, 1, 1});
            ASSERT_TRUE(makespan);
            EXPECT_EQ(*makespan, 4 * setting.microBatches + stages - 2);
            // Also where backward blocks take longer, nobody waits for ever.
            EXPECT_TRUE(makespanOf(*schedule, stages, {1, 2, 1, 1}));
        }
    EXPECT_FALSE(chimeraSchedule(dealtOut(2, 2, 4)));
    EXPECT_FALSE(chimeraSchedule(dealtOut(3, 1, 4)));
}

TEST(Schedule, TemplatesStandInTheOrderOfTheirKinds)
{
    const auto templates = scheduleTemplates();
    ASSERT_EQ(templates.size(), kAllSchedules.size());
    for (std::size_t i = 0; i < templates.size(); ++i)
        EXPECT_EQ(templates[i].kind, kAllSchedules[i]);
}

TEST(Schedules, InterlacedRunsWideBlocksTogetherOnceAPeriod)
{
    for (const std::int32_t p : {2, 3, 4}) {
        for (const std::int32_t m : {1, 3, 8}) {
            SCOPED_TRACE(testing::Message() << p << " ranks, " << m << " micro-batches");
            // Stage 0 and the last one on all devices, the others on ranks of their own.
            ScheduleSetting setting{.rankCount = p + 1, .microBatches = m};
            setting.rankOf.push_back(0);
            setting.wide.push_back(true);
            for (std::int32_t r = 0; r < p; ++r) {
                setting.rankOf.push_back(r + 1);
                setting.wide.push_back(false);
            }
            setting.rankOf.push_back(0);
            setting.wide.push_back(true);
            const auto schedule = interlacedSchedule(setting);
            ASSERT_TRUE(schedule);
            ASSERT_EQ(schedule->ranks.size(), static_cast<std::size_t>(p));
            for (std::int32_t r = 0; r < p; ++r) {
                const auto &order = schedule->ranks[static_cast<std::size_t>(r)];
                // Every block of the wide stages and of its own, both passes, each once.
                const std::set<ScheduledBlock> distinct(order.begin(), order.end());
                EXPECT_EQ(distinct.size(), order.size());
                EXPECT_EQ(order.size(), static_cast<std::size_t>(3 * 2 * m));
                std::int32_t held = 0;
                std::int32_t most = 0;
                std::vector<ScheduledBlock> wide;
                for (const ScheduledBlock &block : order) {
                    const std::int32_t s = block.block.stage.index;
                    if (s == 0 || s == p + 1)
                        wide.push_back(block);
                    else
                        held += block.block.pass == SegmentKind::Forward ? 1 : -1;
                    most = std::max(most, held);
                }
                EXPECT_LE(most, 2 * (p - r) - 1);
                // All ranks agree on the order of wide blocks.
                std::vector<ScheduledBlock> first;
                for (const ScheduledBlock &block : schedule->ranks[0])
                    if (block.block.stage.index == 0 || block.block.stage.index == p + 1)
                        first.push_back(block);
                EXPECT_EQ(wide, first);
            }
        }
    }
    EXPECT_FALSE(interlacedSchedule(dealtOut(2, 1, 4))); // nothing wide
    ScheduleSetting between = dealtOut(3, 1, 4);
    between.wide = {false, true, false};
    EXPECT_FALSE(interlacedSchedule(between));
}

} // namespace
} // namespace planloom
