#include "engine/lowering/schedule.h"

#include <gtest/gtest.h>

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

/// Carries a schedule out in unit time: forward blocks take 1, backward ones 2, each once its rank and the
/// blocks it needs are done. @return the makespan; nothing if it gets stuck
std::optional<std::int64_t> makespanOf(const Schedule &schedule, std::int32_t stages)
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
            const bool forward = block.block.pass == Pass::Forward;
            std::vector<ScheduledBlock> needs;
            if (forward && s > 0)
                needs.push_back({{StageId{s - 1}, Pass::Forward}, block.microBatch});
            if (!forward)
                needs.push_back({{StageId{s}, Pass::Forward}, block.microBatch});
            if (!forward && s + 1 < stages)
                needs.push_back({{StageId{s + 1}, Pass::Backward}, block.microBatch});
            std::int64_t start = free[r];
            bool ready = true;
            for (const ScheduledBlock &need : needs) {
                ready = ready && done.contains(need);
                if (ready)
                    start = std::max(start, done.at(need));
            }
            if (!ready)
                continue;
            free[r] = start + (forward ? 1 : 2);
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

TEST(Schedule, TemplatesStandInTheOrderOfTheirKinds)
{
    const auto templates = scheduleTemplates();
    ASSERT_EQ(templates.size(), kAllSchedules.size());
    for (std::size_t i = 0; i < templates.size(); ++i)
        EXPECT_EQ(templates[i].kind, kAllSchedules[i]);
}

} // namespace
} // namespace planloom
