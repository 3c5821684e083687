#include "engine/schedule/search/find_schedule.h"

#include "tests/engine/schedule/search/placements_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace planloom {
namespace {

/// Both are checked against every other possibility; each placement that cannot run is proven so.
TEST(FindSchedule, FindsThePeriodAndTheMakespanThatTryingEverythingFinds)
{
    std::int32_t tried = 0;
    std::int32_t refuted = 0;
    for (std::uint32_t seed = 0; tried < 1000; ++seed) {
        const Placement placement = drawnPlacement(seed);
        if (!validate(placement))
            continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        ++tried;
        const auto blocks = static_cast<std::int32_t>(placement.blocks.size());
        const std::int32_t microBatches = blocks <= 3 ? 4 : blocks <= 4 ? 3 : 2;
        const auto answer = findSchedule(placement, {.microBatches = microBatches, .seconds = 60});
        ASSERT_TRUE(answer) << answer.error().message;
        const MakespanAnswer &makespan = answer->makespan;
        if (answer->status == ScheduleStatus::Infeasible) {
            ++refuted;
            EXPECT_FALSE(hasShorter(placement, 1, sumOfTimes(placement) + 1));
            EXPECT_TRUE(makespan.none);
            continue;
        }
        ASSERT_TRUE(answer->period.proven());
        const std::int64_t period = answer->period.schedule->period;
        EXPECT_TRUE(period == 1 || !hasPeriod(placement, period - 1)); // nor any less: see leastValue
        ASSERT_TRUE(makespan.proven());
        EXPECT_EQ(textOf(violationsOf(placement, microBatches, makespan.starts)), "");
        EXPECT_FALSE(hasShorter(placement, microBatches, makespan.makespan));
        const auto unrolled = unroll(placement, *answer->period.schedule, 8);
        EXPECT_EQ(textOf(violationsOf(placement, 8, unrolled)), "");
        EXPECT_EQ(textOf(violationsOf(placement, 8, asEarlyAsOrdered(placement, unrolled))), "");
    }
    EXPECT_GT(refuted, 10); // the draw has those too
}

/// So with blocks that run once, before the micro-batches and behind them.
TEST(FindSchedule, FindsWhatTryingEverythingFindsWhereBlocksRunOnce)
{
    std::int32_t tried = 0;
    std::int32_t refuted = 0;
    std::int32_t steady = 0;
    for (std::uint32_t seed = 0; tried < 1000; ++seed) {
        const Placement placement = drawnOnce(seed);
        if (std::none_of(placement.blocks.begin(), placement.blocks.end(),
                [](const PlacementBlock &block) { return block.once; })
            || !validate(placement))
            continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        ++tried;
        const auto blocks = static_cast<std::int32_t>(placement.blocks.size());
        const std::int32_t microBatches = blocks <= 4 ? 3 : 2;
        const auto answer = findSchedule(placement, {.microBatches = microBatches, .seconds = 60});
        ASSERT_TRUE(answer) << answer.error().message;
        // What micro-batches take and what runs once gives back fills a device, or frees it, with every
        // period.
        const Placement rest = withoutOnce(placement);
        std::vector<std::int64_t> grows(static_cast<std::size_t>(rest.devices), 0);
        for (const PlacementBlock &block : rest.blocks)
            for (const std::int32_t device : block.devices)
                grows[static_cast<std::size_t>(device)] += block.memory;
        const auto [least, most] = std::minmax_element(grows.begin(), grows.end());
        if (const auto &period = answer->period; *most > 0) {
            EXPECT_TRUE(period.none);
        } else if (period.schedule) {
            ASSERT_TRUE(period.proven());
            if (*least == 0) {
                ++steady;
                EXPECT_TRUE(period.schedule->period == 1 || !hasPeriod(rest, period.schedule->period - 1));
            }
        } else {
            ASSERT_TRUE(period.none);
            EXPECT_TRUE(*least < 0 || !hasPeriod(rest, sumOfTimes(rest)));
        }
        const MakespanAnswer &makespan = answer->makespan;
        if (makespan.none) {
            ++refuted;
            EXPECT_FALSE(hasShorter(placement, microBatches, microBatches * sumOfTimes(placement) + 1));
            continue;
        }
        ASSERT_TRUE(makespan.proven());
        EXPECT_EQ(textOf(violationsOf(placement, microBatches, makespan.starts)), "");
        EXPECT_FALSE(hasShorter(placement, microBatches, makespan.makespan));
    }
    EXPECT_GT(refuted, 10);
    EXPECT_GT(steady, 500);
}

/// Two stages whose gradients are reduced once all micro-batches are done, which takes as long as five
/// blocks: the first stage's begins as soon as its last backward block ends. Weights that are gathered hold
/// memory in every period.
TEST(FindSchedule, SchedulesWhatRunsOnceAStep)
{
    Placement placement = tesselPlacement("vshape", 2, 4, 1, 1);
    for (const std::int32_t device : {0, 1}) {
        const auto gather = static_cast<std::int32_t>(placement.blocks.size());
        placement.blocks.push_back({.id = 10 + device,
            .kind = "unshard",
            .devices = {device},
            .queue = 1,
            .time = 2,
            .memory = 2,
            .once = true});
        placement.blocks.push_back({.id = 20 + device,
            .kind = "reduce",
            .devices = {device},
            .queue = 1,
            .time = 5,
            .memory = -2,
            .once = true});
        placement.edges.push_back({gather, device, 0});
        placement.edges.push_back({3 - device, gather + 1, 0});
    }
    const auto answer = findSchedule(placement, {.microBatches = 3, .seconds = 60});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, ScheduleStatus::Optimal);
    EXPECT_EQ(answer->period.schedule->period, 2);
    EXPECT_TRUE(answer->makespan.proven());
    // Gathered in 2, a forward block on each, 3 pairs of blocks on the first, the way back, reduced in 5.
    EXPECT_EQ(answer->makespan.makespan, 2 + 6 + 2 + 5);
    EXPECT_EQ(answer->figures.peakMemory, (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(answer->figures.inFlight, 2);
    placement.memoryLimit = {3, 3}; // beside the gathered weights there is room for one micro-batch
    const auto tight = findSchedule(placement, {.microBatches = 3, .seconds = 60});
    ASSERT_TRUE(tight);
    EXPECT_EQ(tight->period.schedule->period, 4);
    EXPECT_EQ(textOf(violationsOf(placement, 3, tight->makespan.starts)), "");
}

TEST(FindSchedule, RefusesWhatRunsOnceInTheMiddle)
{
    Placement placement = tesselPlacement("vshape", 2, 4);
    placement.blocks[1].once = true;
    const auto answer = findSchedule(placement, {});
    ASSERT_FALSE(answer);
    EXPECT_EQ(describe(answer.error()),
        "block:1: forward block 1 runs once, waits for blocks of all micro-batches, and blocks of all wait "
        "for "
        "it (what runs once comes before the micro-batches, or behind them)");
}

/// Each block's period on 4 devices, from reference-systems.md, section 5.6: the busiest device where memory
/// lets it be, and 4 for 3F1B, where Tessel stops at 6.
TEST(FindSchedule, ProvesThePeriodsOfTesselsPlacements)
{
    const std::map<std::string, std::vector<std::int64_t>> periods{// by memory limit: 4, 5, 6
        {"vshape", {4, 4, 4}}, {"xshape", {8, 8, 8}}, {"mshape", {9, 8, 8}}, {"nnshape", {13, 13, 12}},
        {"kshape", {8, 8, 8}}, {"mllm", {14, 13, 12}}, {"finetune", {5, 4, 4}}, {"alphafold", {4, 4, 4}}};
    for (const std::string &name : tesselPlacements())
        for (const std::int64_t limit : {4, 5, 6}) {
            SCOPED_TRACE(name + ", limit " + std::to_string(limit));
            const Placement placement = tesselPlacement(name, 4, limit);
            const auto answer = findSchedule(placement, {.seconds = 60});
            ASSERT_TRUE(answer) << answer.error().message;
            EXPECT_EQ(answer->status, ScheduleStatus::Optimal);
            ASSERT_TRUE(answer->period.schedule);
            EXPECT_EQ(answer->period.schedule->period, periods.at(name)[static_cast<std::size_t>(limit - 4)]);
            EXPECT_EQ(textOf(violationsOf(placement, answer->microBatches, answer->makespan.starts)), "");
            EXPECT_LE(*std::max_element(answer->figures.peakMemory.begin(), answer->figures.peakMemory.end()),
                limit);
        }
}

TEST(FindSchedule, ProvesThePeriodsOfEightDevices)
{
    const std::map<std::string, std::int64_t> periods{{"vshape", 4}, {"xshape", 8}, {"mshape", 10},
        {"nnshape", 14}, {"kshape", 8}, {"mllm", 14}, {"finetune", 5}, {"alphafold", 4}};
    for (const auto &[name, period] : periods) {
        SCOPED_TRACE(name);
        const Placement placement = tesselPlacement(name, 8, 8);
        const auto answer = findSchedule(placement, {.seconds = 100});
        ASSERT_TRUE(answer) << answer.error().message;
        ASSERT_TRUE(answer->period.proven());
        EXPECT_EQ(answer->period.schedule->period, period);
        EXPECT_EQ(textOf(violationsOf(placement, answer->microBatches, answer->makespan.starts)), "");
    }
}

/// A period scales with the unit that time is measured in, and one that is drawn lies between the scaled
/// periods of the shortest and longest durations.
TEST(FindSchedule, TakesNanoseconds)
{
    constexpr std::int64_t kUnit = 1'234'567'891;
    for (const std::string &name : tesselPlacements()) {
        SCOPED_TRACE(name);
        const auto unit = findSchedule(tesselPlacement(name, 4, 5), {.seconds = 60});
        const auto scaled = findSchedule(tesselPlacement(name, 4, 5, kUnit, 3 * kUnit), {.seconds = 60});
        ASSERT_TRUE(unit && scaled);
        ASSERT_TRUE(scaled->period.proven());
        const auto b = name == "finetune" ? kUnit - 1 : 0; // its backward blocks take one less
        EXPECT_LE(scaled->period.schedule->period, unit->period.schedule->period * kUnit + b);
        EXPECT_GE(scaled->period.schedule->period, (unit->period.schedule->period - 1) * kUnit);
        Placement drawn = tesselPlacement(name, 4, 5, kUnit, 3 * kUnit);
        std::mt19937_64 generator(7);
        for (PlacementBlock &block : drawn.blocks)
            block.time += static_cast<std::int64_t>(generator() % (kUnit / 4));
        const auto answer = findSchedule(drawn, {.seconds = 60});
        ASSERT_TRUE(answer);
        ASSERT_TRUE(answer->period.schedule);
        EXPECT_GE(answer->period.schedule->period, busiestQueue(drawn));
        EXPECT_EQ(textOf(violationsOf(drawn, answer->microBatches, answer->makespan.starts)), "");
    }
}

/// Two stages, unit blocks, one at most in flight on the first: a micro-batch goes there and back before the
/// next.
TEST(FindSchedule, LetsMemoryDecideThePeriod)
{
    Placement placement{.devices = 2, .memoryLimit = {1, 1}};
    for (const std::int32_t device : {0, 1, 1, 0}) {
        const auto index = static_cast<std::int32_t>(placement.blocks.size());
        placement.blocks.push_back(
            {index, index < 2 ? "forward" : "backward", {device}, 0, 1, index < 2 ? 1 : -1, false});
        if (index > 0)
            placement.edges.push_back({index - 1, index, 0});
    }
    const auto answer = findSchedule(placement, {.microBatches = 3, .seconds = 60});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, ScheduleStatus::Optimal);
    EXPECT_EQ(answer->period.schedule->period, 4);
    EXPECT_EQ(answer->makespan.makespan, 12);
    EXPECT_TRUE(answer->makespan.proven());
    EXPECT_EQ(answer->figures.peakMemory, (std::vector<std::int64_t>{1, 1}));
}

/// Memory that lets one micro-batch after another take 5 on Tessel's `finetune` takes 13 for three of them;
/// and every unit that is found is valid, and takes less.
TEST(FindSchedule, FindsUnitsOfSeveralMicroBatches)
{
    const auto finetune = findSchedule(tesselPlacement("finetune", 4, 4), {.seconds = 60});
    ASSERT_TRUE(finetune && finetune->unit);
    EXPECT_EQ(finetune->period.schedule->period, 5);
    EXPECT_LE(finetune->unit->period * 2, finetune->unit->microBatches * 9);
    EXPECT_FALSE(findSchedule(tesselPlacement("vshape", 4, 4), {.seconds = 60})->unit); // always busy
    std::int32_t found = 0;
    std::mt19937 generator(11);
    for (const std::string &name : tesselPlacements())
        for (const std::int64_t limit : {3, 4, 5}) {
            SCOPED_TRACE(name + ", limit " + std::to_string(limit));
            Placement placement = tesselPlacement(name, 4, limit);
            for (PlacementBlock &block : placement.blocks)
                block.time += static_cast<std::int64_t>(generator() % 3);
            const auto answer = findSchedule(placement, {.seconds = 60});
            ASSERT_TRUE(answer);
            if (!answer->unit)
                continue;
            ++found;
            const RepeatingUnit &unit = *answer->unit;
            EXPECT_TRUE(isShorter(unit, *answer->period.schedule));
            EXPECT_GE(unit.period, unit.microBatches * busiestQueue(placement));
            EXPECT_EQ(textOf(violationsOf(placement, 9, unroll(placement, unit, 9))), "");
        }
    EXPECT_GT(found, 1);
}

/// What blocks hold is counted where there is no limit, too.
TEST(FindSchedule, NeedsNoLimit)
{
    Placement placement = tesselPlacement("vshape", 4, 4);
    placement.memoryLimit.clear();
    const auto answer = findSchedule(placement, {.microBatches = 8, .seconds = 60});
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(answer->status, ScheduleStatus::Optimal);
    EXPECT_EQ(answer->period.schedule->period, 4);
    EXPECT_EQ(answer->figures.peakMemory, (std::vector<std::int64_t>{4, 3, 2, 1}));
}

/// A transfer of its own queue hides behind computation, one that computes cannot.
TEST(FindSchedule, OverlapsCommunicationOnQueuesOfItsOwn)
{
    for (const std::int32_t queue : {0, 1}) {
        Placement placement{.devices = 2};
        placement.blocks = {{0, "forward", {0}, 0, 2, 0, false}, {1, "send", {0, 1}, queue, 1, 0, false},
            {2, "forward", {1}, 0, 2, 0, false}};
        placement.edges = {{0, 1, 0}, {1, 2, 0}};
        const auto answer = findSchedule(placement, {.microBatches = 4, .seconds = 60});
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->period.schedule->period, queue == 0 ? 3 : 2);
        EXPECT_EQ(answer->makespan.makespan, queue == 0 ? 4 * 3 + 2 : 3 + 4 * 2);
        EXPECT_TRUE(answer->makespan.proven());
    }
}

/// What a device never gives back fills it: so many micro-batches have a schedule, there is no steady state.
TEST(FindSchedule, SchedulesWhatHasNoSteadyState)
{
    Placement placement{.devices = 1, .memoryLimit = {3}};
    placement.blocks = {{0, "forward", {0}, 0, 2, 1, false}};
    const auto three = findSchedule(placement, {.microBatches = 3, .seconds = 60});
    ASSERT_TRUE(three);
    EXPECT_TRUE(three->period.none);
    EXPECT_EQ(three->status, ScheduleStatus::Optimal);
    EXPECT_EQ(three->makespan.makespan, 6);
    const auto four = findSchedule(placement, {.microBatches = 4, .seconds = 60});
    ASSERT_TRUE(four);
    EXPECT_EQ(four->status, ScheduleStatus::Infeasible);
}

TEST(FindSchedule, StopsWhenAskedTo)
{
    std::stop_source stop;
    stop.request_stop();
    const auto answer = findSchedule(tesselPlacement("mllm", 16, 12), {.stop = stop.get_token()});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::Cancelled);
}

TEST(FindSchedule, GivesABoundWhenTheTimeIsOver)
{
    const Placement placement = tesselPlacement("mllm", 16, 12);
    const auto answer = findSchedule(placement, {.seconds = 1e-9});
    ASSERT_TRUE(answer);
    EXPECT_GE(answer->period.bound, busiestQueue(placement));
    EXPECT_FALSE(answer->period.schedule);
    EXPECT_TRUE(answer->status == ScheduleStatus::Feasible || answer->status == ScheduleStatus::Unknown);
    EXPECT_EQ(textOf(violationsOf(placement, answer->microBatches, answer->makespan.starts)).empty(),
        answer->status == ScheduleStatus::Feasible);
}

} // namespace
} // namespace planloom
