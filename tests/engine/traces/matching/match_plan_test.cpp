#include "engine/traces/matching/match_plan.h"

#include "engine/simulate/simulate.h"
#include "engine/traces/matching/match_collectives.h"
#include "engine/traces/matching/match_kernels.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include "engine/traces/trace_builder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// How a plan's prediction becomes the trace of a run.
struct TraceShape {
    std::int64_t factor = 1; ///< By which everything is longer.
    std::int64_t skew = 0; ///< Nanoseconds that rank r's clock is ahead, times r.
    bool isExact = false; ///< It names the instructions, as a run's log does.
    bool dropsFirstCollective = false; ///< Of rank 0.
    bool addsCollectives = false; ///< Of others than the plan's, before all.
};

TraceKind kindOf(InstructionKind kind)
{
    for (std::size_t k = 0; k < kTraceKindCount; ++k)
        if (instructionKindOf(static_cast<TraceKind>(k)) == kind)
            return static_cast<TraceKind>(k);
    return TraceKind::Compute;
}

/// One event for each span of `predicted`.
RankTrace rankOf(
    const ExecutionPlan &plan, const Timeline &predicted, std::size_t device, const TraceShape &shape)
{
    RankTraceBuilder builder("rank" + std::to_string(device) + ".json");
    builder.trace().rank = static_cast<std::int32_t>(device);
    bool drops = shape.dropsFirstCollective && device == 0;
    const SpanColumns &spans = predicted.spans;
    const std::int64_t shift = static_cast<std::int64_t>(device) * shape.skew + 1'000'000;
    if (shape.addsCollectives) {
        TraceEvent event{.start = shift - 1000, .duration = 10};
        event.kind = TraceKind::AllReduce;
        event.lane = builder.lane("communication", false);
        event.name = builder.name("all-reduce of another group");
        TraceCollective other;
        other.group = builder.group({"other", "", {0, 99}, 2});
        event.link = builder.collective(other);
        builder.add(event, 0);
    }
    for (std::size_t row = predicted.deviceBegin[device]; row < predicted.deviceBegin[device + 1]; ++row) {
        const Instruction &instruction = plan.devices[device]
                                             .segments[static_cast<std::size_t>(spans.segment[row])]
                                             .instructions[static_cast<std::size_t>(spans.instruction[row])];
        TraceEvent event{
            .start = spans.start[row] * shape.factor + shift, .duration = spans.duration[row] * shape.factor};
        event.lane = builder.lane(nameOf(spans.queue[row]), false);
        event.name = builder.name("gemm");
        event.kind = kindOf(instruction.kind);
        if (shape.isExact) {
            event.kind = TraceKind::Instruction;
            event.link =
                builder.instruction({0, spans.segment[row], spans.instruction[row], spans.microBatch[row]});
        } else if (isCommunication(event.kind)) {
            if (std::exchange(drops, false))
                continue;
            TraceCollective said;
            said.outBytes = communicatedBytes(plan.devices[device], instruction);
            if (instruction.group >= 0) {
                TraceGroup group{.name = std::to_string(instruction.group)};
                for (const DeviceId member : plan.groups[static_cast<std::size_t>(instruction.group)])
                    group.ranks.push_back(member.index);
                said.group = builder.group(group);
            } else {
                const auto own = static_cast<std::int32_t>(device);
                const bool sends = instruction.kind == InstructionKind::Send;
                said.source = sends ? own : instruction.peer.index;
                said.target = sends ? instruction.peer.index : own;
            }
            event.link = builder.collective(said);
        } else {
            event.kind = TraceKind::Compute;
            const bool isProduct = instruction.op.valid()
                && categoryOf(plan.graph->at(instruction.op).kind) == OperatorCategory::Product;
            event.name = builder.name(isProduct ? "gemm" : "elementwise");
        }
        builder.add(event, 0);
    }
    return std::move(builder).finish();
}

struct Given {
    ExecutionPlan plan{};
    Timeline predicted{};

    Trace trace(const TraceShape &shape) const
    {
        Trace made;
        for (std::size_t d = 0; d < plan.devices.size(); ++d)
            made.ranks.push_back(rankOf(plan, predicted, d, shape));
        return made;
    }
    MatchedTrace match(const TraceShape &shape) const
    {
        const Trace made = trace(shape);
        auto matched = matchPlan(made, *analyseTrace(made), plan, predicted);
        EXPECT_TRUE(matched) << describe(matched.error());
        return *std::move(matched);
    }
};

Given trainingPipeline()
{
    Given given;
    given.plan = test::pipelinePlan(
        {.stages = 2, .microBatches = 3, .replicas = 2, .shards = 2, .kernels = 3, .optimizer = true});
    auto timeline = simulate(given.plan, test::clusterOf(given.plan));
    EXPECT_TRUE(timeline) << describe(timeline.error());
    given.predicted = *std::move(timeline);
    return given;
}

/// Nothing is left over on either side.
void expectAllMatched(const MatchedTrace &matched)
{
    EXPECT_FALSE(matched.counts.empty());
    for (const MatchCount &count : matched.counts) {
        EXPECT_GT(count.matched, 0) << nameOf(count.kind);
        EXPECT_EQ(count.onlyPlan, 0) << nameOf(count.kind);
        EXPECT_EQ(count.onlyTrace, 0) << nameOf(count.kind);
    }
}

TEST(MatchPlan, ARunAsPredictedIsOffByNothing)
{
    const Given given = trainingPipeline();
    for (const bool isExact : {false, true}) {
        SCOPED_TRACE(isExact ? "a run's log" : "a profile");
        const MatchedTrace matched = given.match({.isExact = isExact});
        EXPECT_EQ(matched.isExact, isExact);
        EXPECT_EQ(matched.ranks, 8);
        expectAllMatched(matched);
        EXPECT_EQ(matched.measured.spans.size(), given.predicted.spans.size());
        const SpanErrors errors = spanErrors(given.plan, given.predicted, matched.measured);
        for (const SpanError &kind : errors.kinds) {
            SCOPED_TRACE(kind.what);
            EXPECT_NEAR(kind.measured, kind.predicted, 1e-9 * static_cast<double>(kind.count));
            EXPECT_GT(kind.count, 0);
        }
    }
}

TEST(MatchPlan, ASlowerRunWithClocksApartIsOffByTheFactor)
{
    const Given given = trainingPipeline();
    const MatchedTrace matched = given.match({.factor = 3, .skew = 5'000'000'000});
    expectAllMatched(matched);
    for (const SpanError &kind : spanErrors(given.plan, given.predicted, matched.measured).kinds) {
        SCOPED_TRACE(kind.what);
        EXPECT_NEAR(kind.measured, 3 * kind.predicted, 5e-9 * static_cast<double>(kind.count));
    }
    EXPECT_NEAR(static_cast<double>(matched.measured.step.count()),
        3.0 * static_cast<double>(given.predicted.step.count()), 2e4)
        << "clocks that are five seconds apart are set against each other";
}

TEST(MatchPlan, SaysWhatOnlyOneSideHas)
{
    const Given given = trainingPipeline();
    const auto sumOf = [](const MatchedTrace &matched, std::int64_t MatchCount::*field) {
        std::int64_t sum = 0;
        for (const MatchCount &count : matched.counts)
            sum += count.*field;
        return sum;
    };
    const MatchedTrace dropped = given.match({.dropsFirstCollective = true});
    EXPECT_EQ(sumOf(dropped, &MatchCount::onlyPlan), 1);
    EXPECT_EQ(sumOf(dropped, &MatchCount::onlyTrace), 0);
    const MatchedTrace added = given.match({.addsCollectives = true});
    EXPECT_EQ(sumOf(added, &MatchCount::onlyPlan), 0);
    EXPECT_EQ(sumOf(added, &MatchCount::onlyTrace), 8) << "one of each rank";
}

TEST(MatchPlan, RefusesATraceOfOtherRanks)
{
    const Given given = trainingPipeline();
    Trace trace = given.trace({});
    trace.ranks.resize(1);
    trace.ranks[0].rank = 800;
    const auto matched = matchPlan(trace, *analyseTrace(trace), given.plan, given.predicted);
    ASSERT_FALSE(matched);
    EXPECT_NE(matched.error().message.find("8 devices"), std::string::npos);
}

CommunicationStep stepOf(TraceKind kind, std::int64_t stream, std::int64_t bytes, std::int64_t id)
{
    return {kind, {0, 1}, stream, bytes, id};
}

TEST(MatchCommunication, KeepsOrderAndFindsKindsThatABackendDoesOtherwise)
{
    // gloo has no reduce-scatter; the trace begins with a barrier and an all-reduce of its own.
    const std::vector<CommunicationStep> plan{stepOf(TraceKind::AllGather, 1, 64, 0),
        stepOf(TraceKind::ReduceScatter, 1, 64, 1), stepOf(TraceKind::AllReduce, 1, 8, 2)};
    const std::vector<CommunicationStep> trace{stepOf(TraceKind::Barrier, 1, -1, 0),
        stepOf(TraceKind::AllReduce, 1, 1000, 1), stepOf(TraceKind::AllGather, 1, 64, 2),
        stepOf(TraceKind::AllToAll, 1, 64, 3), stepOf(TraceKind::AllReduce, 1, 8, 4)};
    EXPECT_EQ(matchCommunication(plan, trace), (CommunicationPairs{{0, 2}, {1, 3}, {2, 4}}));
}

TEST(MatchCommunication, TellsQueuesOfTheSameMembersApart)
{
    // Two queues, whose groups have other numbers in the trace; the bytes say which is which.
    const std::vector<CommunicationStep> plan{stepOf(TraceKind::AllReduce, 1, 64, 0),
        stepOf(TraceKind::AllReduce, 2, 8, 1), stepOf(TraceKind::AllReduce, 1, 64, 2)};
    const std::vector<CommunicationStep> trace{stepOf(TraceKind::AllReduce, 70, 8, 0),
        stepOf(TraceKind::AllReduce, 60, 64, 1), stepOf(TraceKind::AllReduce, 60, 64, 2)};
    CommunicationPairs pairs = matchCommunication(plan, trace);
    std::sort(pairs.begin(), pairs.end());
    EXPECT_EQ(pairs, (CommunicationPairs{{0, 1}, {1, 0}, {2, 2}}));
}

TEST(MatchKernels, LeavesOutWhatHasNoCounterpart)
{
    const auto product = [](std::int64_t duration) { return KernelStep{KernelClass::Product, duration}; };
    const KernelStep other{KernelClass::Other, 5};
    const std::vector<KernelStep> plan{product(100), other, product(10), product(1000)};
    // One small product more, and all of it five times as long.
    const std::vector<KernelStep> trace{product(500), product(2), other, other, product(50), product(5000)};
    const std::vector<std::pair<std::size_t, std::size_t>> expected{{0, 0}, {2, 4}, {3, 5}};
    EXPECT_EQ(matchKernels(plan, trace), expected);
    EXPECT_TRUE(matchKernels({other}, trace).empty());
    EXPECT_EQ(kernelClassOf("void flash_fwd_kernel<...>"), KernelClass::Attention);
    EXPECT_EQ(kernelClassOf("aten::mm"), KernelClass::Product);
    EXPECT_EQ(kernelClassOf("sm90_xmma_gemm_bf16bf16"), KernelClass::Product);
    EXPECT_EQ(kernelClassOf("vectorized_elementwise_kernel"), KernelClass::Other);
}

} // namespace
} // namespace planloom
