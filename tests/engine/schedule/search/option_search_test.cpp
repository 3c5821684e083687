#include "engine/schedule/search/find_schedule.h"

#include "tests/engine/schedule/search/placements_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// Every decision on every block, each with every period and every start.
TEST(OptionSearch, FindsWhatTryingAllDecisionsFinds)
{
    std::int32_t tried = 0;
    std::int32_t refuted = 0;
    std::int32_t taken = 0;
    for (std::uint32_t seed = 0; tried < 1000; ++seed) {
        const Placement placement = drawnOptions(seed);
        if (placement.options.empty() || !validate(placement))
            continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        ++tried;
        const std::vector<Placement> all = allDecisions(placement);
        const std::int32_t microBatches = placement.blocks.size() <= 3 ? 3 : 2;
        const auto answer = findSchedule(placement, {.microBatches = microBatches, .seconds = 60});
        ASSERT_TRUE(answer) << answer.error().message;
        const MakespanAnswer &makespan = answer->makespan;
        if (answer->status == ScheduleStatus::Infeasible) {
            ++refuted;
            for (const Placement &each : all)
                EXPECT_FALSE(hasShorter(each, 1, sumOfTimes(each) + 1));
            EXPECT_TRUE(makespan.none);
            continue;
        }
        ASSERT_TRUE(answer->period.proven());
        const std::int64_t period = answer->period.schedule->period;
        ASSERT_TRUE(makespan.proven());
        for (const Placement &each : all) {
            EXPECT_TRUE(period == 1 || !hasPeriod(each, period - 1));
            EXPECT_FALSE(hasShorter(each, microBatches, makespan.makespan));
        }
        const Placement chosen = withOptions(placement, makespan.choices);
        EXPECT_EQ(textOf(violationsOf(chosen, microBatches, makespan.starts)), "");
        EXPECT_EQ(figuresOf(chosen, makespan.starts), answer->figures);
        const Placement repeated = withOptions(placement, answer->period.choices);
        const auto unrolled = unroll(repeated, *answer->period.schedule, 8);
        EXPECT_EQ(textOf(violationsOf(repeated, 8, unrolled)), "");
        EXPECT_EQ(textOf(violationsOf(repeated, 8, asEarlyAsOrdered(repeated, unrolled))), "");
        taken += std::any_of(answer->period.choices.begin(), answer->period.choices.end(),
                     [](std::int32_t choice) { return choice >= 0; })
            ? 1
            : 0;
    }
    EXPECT_GT(refuted, 10); // the draw has those too
    EXPECT_GT(taken, 50);
}

/// A V of so many stages, forward blocks of 1, backward blocks of 2, each of which may recompute for 1.
Placement recomputingV(std::int32_t devices, std::int64_t memory, std::int64_t saved, std::int64_t limit)
{
    Placement placement = tesselPlacement("vshape", devices, limit, 1, 2);
    for (PlacementBlock &block : placement.blocks)
        block.memory *= memory;
    const auto count = static_cast<std::int32_t>(placement.blocks.size());
    for (std::int32_t d = 0; d < devices; ++d)
        placement.options.push_back({OptionKind::Recompute, d, count - 1 - d, saved, 1});
    return placement;
}

/// Where memory does not bind, nothing is recomputed; where it binds on the first stages alone, only they do.
TEST(OptionSearch, RecomputesWhereMemoryBinds)
{
    const auto free = findSchedule(recomputingV(4, 4, 3, 16), {.seconds = 60});
    ASSERT_TRUE(free);
    EXPECT_EQ(free->status, ScheduleStatus::Optimal);
    EXPECT_EQ(free->period.schedule->period, 3);
    EXPECT_EQ(free->period.choices, keptOptions(recomputingV(4, 4, 3, 16)));

    const Placement bound = recomputingV(4, 4, 3, 8);
    const auto kept = findSchedule(withOptions(bound, keptOptions(bound)), {.seconds = 60});
    const auto answer = findSchedule(bound, {.seconds = 60});
    ASSERT_TRUE(kept && answer);
    EXPECT_EQ(answer->status, ScheduleStatus::Optimal);
    EXPECT_EQ(answer->period.schedule->period, 4); // every device that recomputes takes as long
    EXPECT_LT(answer->period.schedule->period, kept->period.schedule->period);
    EXPECT_GE(answer->period.choices[0], 0);
    EXPECT_EQ(answer->period.choices[3], kOptionKept); // the last stage holds one
    const Placement chosen = withOptions(bound, answer->makespan.choices);
    EXPECT_EQ(textOf(violationsOf(chosen, answer->microBatches, answer->makespan.starts)), "");
}

/// Copies beside computation cost no time where the way back is hidden, too.
TEST(OptionSearch, OffloadsBesideComputation)
{
    Placement placement = tesselPlacement("vshape", 4, 2, 2, 2);
    for (std::int32_t d = 0; d < 4; ++d) {
        placement.options.push_back({OptionKind::Recompute, d, 7 - d, 1, 2});
        placement.options.push_back({OptionKind::Offload, d, 7 - d, 1, 1, 1, 1, 2});
    }
    const auto kept = findSchedule(withOptions(placement, keptOptions(placement)), {.seconds = 60});
    const auto answer = findSchedule(placement, {.seconds = 60});
    ASSERT_TRUE(kept && answer);
    EXPECT_EQ(answer->status, ScheduleStatus::Optimal);
    EXPECT_EQ(answer->period.schedule->period, 4); // the busiest device
    EXPECT_GT(kept->period.schedule->period, 4);
    ASSERT_GE(answer->period.choices[0], 0);
    EXPECT_EQ(
        placement.options[static_cast<std::size_t>(answer->period.choices[0])].kind, OptionKind::Offload);
    const Placement chosen = withOptions(placement, answer->makespan.choices);
    EXPECT_EQ(textOf(violationsOf(chosen, answer->microBatches, answer->makespan.starts)), "");
}

} // namespace
} // namespace planloom
