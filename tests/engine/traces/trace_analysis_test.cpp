#include "engine/traces/trace_analysis.h"

#include "engine/traces/trace_cells.h"
#include "engine/traces/trace_difference.h"
#include "engine/traces/trace_perfetto.h"
#include "tests/engine/traces/traces_for_tests.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <numeric>
#include <sstream>

namespace planloom {
namespace {

using test::allOf;
using test::RankMaker;

constexpr std::int64_t kMicro = 1000;

/// Two ranks, of which the second comes late to every one of ten all-reduces; its clock is ahead.
Trace lateRank(std::int64_t clock)
{
    Trace trace;
    RankMaker first(0);
    RankMaker second(1, clock);
    for (std::int64_t i = 0; i < 10; ++i) {
        const std::int64_t at = i * 100;
        first.compute(at, 40).collective(TraceKind::AllReduce, at + 40, 50, allOf(2), i);
        second.compute(at, 60).collective(TraceKind::AllReduce, at + 60, 30, allOf(2), i);
    }
    trace.ranks.push_back(first.make());
    trace.ranks.push_back(second.make());
    return trace;
}

TEST(TraceAnalysis, SaysWhoIsWaitedForInEveryCollective)
{
    const auto analysis = analyseTrace(lateRank(0));
    ASSERT_TRUE(analysis);
    ASSERT_EQ(analysis->collectives.size(), 10U);
    for (const CollectiveTimes &times : analysis->collectives) {
        EXPECT_EQ(times.lastRank, 1);
        EXPECT_EQ(times.waited, 20 * kMicro);
        EXPECT_EQ(times.transfer(), 30 * kMicro);
        EXPECT_EQ(times.duration(), 50 * kMicro);
    }
    ASSERT_EQ(analysis->groups.size(), 1U);
    EXPECT_EQ(analysis->groups[0].cameLast, (std::map<std::int32_t, std::int64_t>{{1, 10}}));
    EXPECT_EQ(analysis->ranks[1].madeWait, 200 * kMicro);
    EXPECT_EQ(analysis->ranks[0].madeWait, 0);
    EXPECT_EQ(stragglerOf(*analysis), std::optional<std::size_t>(1));
    EXPECT_EQ(analysis->joined.groups[0].words(), "default_pg: 0-1");
}

TEST(TraceAnalysis, FindsByHowMuchClocksAreApart)
{
    const auto together = analyseTrace(lateRank(0));
    EXPECT_FALSE(together->clocks.isAdjusted);
    for (const std::int64_t clock : {5'000'000, -7'123, 400}) {
        const auto analysis = analyseTrace(lateRank(clock));
        EXPECT_TRUE(analysis->clocks.isAdjusted) << clock;
        EXPECT_EQ(analysis->clocks.offset[1], -clock * kMicro) << "all-reduces end together";
        EXPECT_EQ(analysis->clocks.residual, 0);
        EXPECT_EQ(analysis->collectives, together->collectives);
    }
}

TEST(TraceAnalysis, RanksThatShareNoCollectiveAreSetByThoseBetweenThem)
{
    // 0 - 1 and 1 - 2 are groups; 0 and 2 never meet.
    Trace trace;
    RankMaker first(0);
    RankMaker second(1, 1000);
    RankMaker third(2, 3000);
    const TraceGroup a{.name = "1", .description = "tp", .ranks = {0, 1}, .size = 2};
    const TraceGroup b{.name = "2", .description = "tp", .ranks = {1, 2}, .size = 2};
    for (std::int64_t i = 0; i < 5; ++i) {
        first.collective(TraceKind::AllGather, i * 100, 20, a, i);
        second.collective(TraceKind::AllGather, i * 100, 20, a, i)
            .collective(TraceKind::AllGather, i * 100 + 50, 20, b, i);
        third.collective(TraceKind::AllGather, i * 100 + 50, 20, b, i);
    }
    for (RankMaker *maker : {&first, &second, &third})
        trace.ranks.push_back(maker->make());
    const auto analysis = analyseTrace(trace);
    EXPECT_EQ(analysis->clocks.offset, (std::vector<std::int64_t>{0, -1000 * kMicro, -3000 * kMicro}));
    EXPECT_EQ(analysis->joined.groups.size(), 2U);
}

TEST(TraceAnalysis, CutsTheWindowIntoReasonsThatAddUp)
{
    // |--compute--|..host..|--compute--|..other..|--all-reduce--| and a hidden copy beside the first.
    Trace trace;
    RankMaker maker(0);
    maker.step(3, 0, 200).compute(0, 50, "a", -10).compute(80, 20, "b", 70).compute(120, 10, "c", 90);
    maker.collective(TraceKind::AllReduce, 20, 10, allOf(1), 0)
        .collective(TraceKind::AllReduce, 140, 60, allOf(1), 1);
    trace.ranks.push_back(maker.make());
    const auto analysis = analyseTrace(trace);
    const RankTimes &times = analysis->ranks[0];
    EXPECT_EQ(times.window, 200 * kMicro);
    EXPECT_EQ(times.compute, 80 * kMicro);
    EXPECT_EQ(times.hidden, 10 * kMicro);
    EXPECT_EQ(times.exposed, 60 * kMicro);
    EXPECT_EQ(times[TraceIdle::Host], 20 * kMicro) << "b is launched 20 after a has ended, and runs 10 later";
    EXPECT_EQ(times[TraceIdle::Other], 40 * kMicro);
    EXPECT_EQ(times[TraceIdle::Communication], 60 * kMicro);
    EXPECT_EQ(
        times.compute + std::accumulate(times.idle.begin(), times.idle.end(), std::int64_t{0}), times.window);
    ASSERT_EQ(times.steps.size(), 1U);
    EXPECT_EQ(times.steps[0], (TraceStep{3, 0, 200 * kMicro}));
}

TEST(JoinCollectives, GoesByNumberWhereThereIsOneAndByOrderInTheStepElse)
{
    // Rank 1 began to record later, and has not seen the first all-reduce.
    Trace numbered;
    numbered.ranks.push_back(RankMaker(0)
                                 .collective(TraceKind::AllReduce, 0, 5, allOf(2), 7)
                                 .collective(TraceKind::AllReduce, 10, 5, allOf(2), 8)
                                 .make());
    numbered.ranks.push_back(RankMaker(1).collective(TraceKind::AllReduce, 10, 5, allOf(2), 8).make());
    JoinedCollectives joined = joinCollectives(numbered);
    ASSERT_EQ(joined.collectives.size(), 2U);
    EXPECT_EQ(joined.alone, 1);
    EXPECT_EQ(joined.collectives[1].sequence, 8);
    EXPECT_EQ(joined.collectives[1].end - joined.collectives[1].begin, 2U);

    Trace ordered;
    ordered.ranks.push_back(RankMaker(0)
                                .step(1, 0, 9)
                                .step(2, 10, 9)
                                .collective(TraceKind::AllReduce, 0, 5, allOf(2), -1)
                                .collective(TraceKind::AllReduce, 10, 5, allOf(2), -1)
                                .make());
    ordered.ranks.push_back(
        RankMaker(1).step(2, 10, 9).collective(TraceKind::AllReduce, 10, 5, allOf(2), -1).make());
    joined = joinCollectives(ordered);
    ASSERT_EQ(joined.collectives.size(), 2U);
    EXPECT_EQ(joined.collectives[0].end - joined.collectives[0].begin, 1U);
    EXPECT_EQ(joined.collectives[1].end - joined.collectives[1].begin, 2U) << "of step 2";
}

TEST(JoinCollectives, JoinsASendWithItsReceive)
{
    Trace trace;
    trace.ranks.push_back(
        RankMaker(0).message(TraceKind::Send, 0, 5, 0, 1).message(TraceKind::Send, 10, 5, 0, 1).make());
    trace.ranks.push_back(
        RankMaker(1).message(TraceKind::Recv, 1, 5, 0, 1).message(TraceKind::Recv, 12, 5, 0, 1).make());
    const JoinedCollectives joined = joinCollectives(trace);
    ASSERT_EQ(joined.collectives.size(), 2U);
    for (const JoinedCollective &each : joined.collectives)
        EXPECT_EQ(each.end - each.begin, 2U);
    EXPECT_EQ(joined.alone, 0);
}

TEST(TraceDifference, IsOfAStepWhereBothHaveSteps)
{
    // b runs the same in two steps, and its gemm takes 30 in place of 20.
    const RankTrace a = RankMaker(0).step(0, 0, 100).compute(0, 20).compute(50, 10, "add").make();
    const RankTrace b = RankMaker(0)
                            .step(0, 0, 100)
                            .step(1, 100, 100)
                            .compute(0, 30)
                            .compute(50, 10, "add")
                            .compute(100, 30)
                            .compute(150, 10, "add")
                            .make();
    const TraceDifference difference = differenceOf({&a}, {&b});
    EXPECT_TRUE(difference.isPerStep);
    ASSERT_EQ(difference.names.size(), 2U);
    EXPECT_EQ(difference.names[0].name, "gemm");
    EXPECT_NEAR(difference.names[0].delta(), 10e-6, 1e-12);
    EXPECT_NEAR(difference.names[1].delta(), 0, 1e-12);
    EXPECT_EQ(difference.aligned, 2);
    EXPECT_EQ(difference.onlyB, 2);
    ASSERT_EQ(difference.events.size(), 1U);
    EXPECT_EQ(difference.events[0].b - difference.events[0].a, 10 * kMicro);
    const TraceDifference same = differenceOf({&a}, {&a});
    EXPECT_TRUE(same.events.empty());
    EXPECT_EQ(same.onlyA + same.onlyB, 0);
}

TEST(TracePerfetto, HasAllRanksOnOneClock)
{
    const Trace trace = lateRank(5'000'000);
    const auto analysis = analyseTrace(trace);
    std::ostringstream stream;
    ASSERT_TRUE(writeTracePerfetto(stream, trace, analysis->clocks));
    const auto written = nlohmann::json::parse(stream.str());
    std::map<int, std::vector<double>> starts;
    for (const auto &event : written.at("traceEvents"))
        if (event.at("ph") == "X" && event.at("cat") == "compute")
            starts[event.at("pid")].push_back(event.at("ts"));
    EXPECT_EQ(starts[0], starts[1]) << "both compute from the same moments on";
    EXPECT_EQ(starts[0].size(), 10U);
    EXPECT_EQ(starts[0].front(), 0);
}

TEST(TraceCells, AreNoMoreThanPixelsAndCoverWhatRuns)
{
    RankMaker maker(0);
    for (int i = 0; i < 10'000; ++i)
        maker.compute(i * 10, i == 5000 ? 9 : 4);
    const RankTrace rank = maker.make();
    const auto cells = cellsOf(rank, 0, 0, 1'000'000, 100); // a hundred events each
    ASSERT_EQ(cells.size(), 100U);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        EXPECT_EQ(cells[i].left, static_cast<float>(i));
        EXPECT_TRUE(cells[i].isRun);
    }
    const auto close = cellsOf(rank, 0, 50'000'000 - 2000, 1000, 30); // 50 ms on, a pixel a microsecond
    ASSERT_EQ(close.size(), 3U);
    EXPECT_EQ(close[0], (TraceCell{2, 11, 5000, false}));
    EXPECT_EQ(close[1], (TraceCell{12, 16, 5001, false}));
    EXPECT_EQ(close[2], (TraceCell{22, 26, 5002, false}));
    const auto inside = cellsOf(rank, 0, 50'000'000 + 3000, 1000, 5);
    ASSERT_EQ(inside.size(), 1U) << "it began before";
    EXPECT_EQ(inside[0], (TraceCell{0, 5, 5000, false}));
    EXPECT_EQ(eventAt(rank, 0, 50'000'000), std::optional<std::uint32_t>(5000));
    EXPECT_EQ(eventAt(rank, 0, 50'009'000), std::nullopt);
    EXPECT_TRUE(cellsOf(rank, 0, 200'000'000, 1000, 30).empty());
}

TEST(Trace, KnowsNamesInAllSpellings)
{
    EXPECT_EQ(communicationNamed("gloo:all_reduce"), TraceKind::AllReduce);
    EXPECT_EQ(
        communicationNamed("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)"), TraceKind::ReduceScatter);
    EXPECT_EQ(communicationNamed("_allgather_base"), TraceKind::AllGather);
    EXPECT_EQ(communicationNamed("ncclDevKernel_SendRecv(x)"), TraceKind::OtherCommunication);
    EXPECT_EQ(communicationNamed("all_to_allv"), TraceKind::AllToAll);
    EXPECT_EQ(stepNumberIn("ProfilerStep#12"), std::optional<std::uint32_t>(12));
    EXPECT_EQ(stepNumberIn("Iteration 3"), std::optional<std::uint32_t>(3));
    EXPECT_EQ(stepNumberIn("step_0"), std::optional<std::uint32_t>(0));
    for (const char *name :
        {"step", "stepper 3", "ProfilerStep#", "ProfilerStep#x", "Optimizer.step#SGD", "steps 4294967295"})
        EXPECT_FALSE(stepNumberIn(name)) << name;
    for (std::size_t k = 0; k < kTraceKindCount; ++k)
        EXPECT_STRNE(nameOf(static_cast<TraceKind>(k)), "");
}

} // namespace
} // namespace planloom
