// Stages in slices: blocks in TeraPipe's order, keys as far as queries see them, and what is refused.

#include "engine/lowering/order/in_flight.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/schedule/schedule.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/block_text.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/sliced_models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr const char *kSlicedGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";

TEST(Slices, RunForwardAscendingAndBackwardDescending)
{
    const GraphSnapshot graph = sequenceMlp(2, 4, 8);
    const std::string rows =
        stageRowsOf(2) + "micro-batches 2\nslice all : out0.1 by 2\nslice name:loss : in0.1 by 2\n";
    const auto gpipe = loweredRows(graph, rows + "schedule gpipe", 2);
    ASSERT_TRUE(gpipe) << describe(gpipe.error());
    for (const std::size_t device : {0U, 1U})
        EXPECT_EQ(blocksOn(*gpipe, device), "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0");
    const auto oneFOneB = loweredRows(graph, rows + "schedule 1f1b", 2);
    ASSERT_TRUE(oneFOneB) << describe(oneFOneB.error());
    EXPECT_EQ(blocksOn(*oneFOneB, 1), "F0.0 F0.1 B0.1 B0.0 F1.0 F1.1 B1.1 B1.0");
    EXPECT_EQ(mostInFlight(*oneFOneB), (std::vector<std::int32_t>{2, 1}));
    const auto split = loweredRows(graph, rows + "schedule zb-h1", 2);
    ASSERT_TRUE(split) << describe(split.error());
    EXPECT_EQ(blocksOn(*split, 1), "F0.0 F0.1 B0.1 B0.0 F1.0 F1.1 B1.1 B1.0 W0.1 W0.0 W1.1 W1.0");
    const auto sequential = loweredRows(graph, rows, 2);
    ASSERT_TRUE(sequential) << describe(sequential.error());
    EXPECT_EQ(blocksOn(*sequential, 0), "F0.0 F0.1 B0.1 B0.0 F1.0 F1.1 B1.1 B1.0");
}

TEST(Slices, AreSentOneByOne)
{
    const GraphSnapshot graph = sequenceMlp(2, 2, 8);
    const auto plan =
        loweredRows(graph, stageRowsOf(2) + "slice all : out0.1 by 4\nslice name:loss : in0.1 by 4", 2);
    ASSERT_TRUE(plan) << describe(plan.error());
    std::vector<Range> sent;
    for (const Segment &segment : plan->devices[0].segments)
        for (const Instruction &instruction : segment.instructions)
            if (instruction.kind == InstructionKind::Send)
                sent.push_back(plan->devices[0]
                                   .buffers[static_cast<std::size_t>(instruction.inputs[0])]
                                   .index.ranges[1]);
    EXPECT_EQ(sent, (std::vector<Range>{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
}

TEST(Slices, OfCausalAttentionReadTheKeysThatTheirQueriesSee)
{
    const GraphSnapshot graph = trainingStep(kSlicedGpt);
    const auto plan = loweredRows(graph, "slice all : sequence by 4", 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    int seen = 0;
    for (const Segment &segment : plan->devices[0].segments)
        for (const Instruction &instruction : segment.instructions) {
            if (instruction.kind != InstructionKind::Kernel
                || graph->at(instruction.op).kind != OperatorKind::Attention)
                continue;
            const Operator &op = graph->at(instruction.op);
            const auto boxOfSlot = [&](const BufferList &list, std::size_t slot) {
                return plan->devices[0].buffers[static_cast<std::size_t>(list[slot])].index.ranges[2];
            };
            const Range expected{0, 2 * (segment.slice + 1)};
            const bool forward = op.direction == Direction::Forward; // reads keys; else makes their gradient
            EXPECT_EQ(boxOfSlot(forward ? instruction.inputs : instruction.outputs, 1), expected);
            ++seen;
        }
    EXPECT_EQ(seen, 2 * 2 * 4);
    const auto report = verify(*plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

TEST(Slices, OfWhatNeedsTheWholeSequenceAreRefused)
{
    const std::string whole = refusalOf(attentionOverSequence(false), "slice all : sequence by 2");
    EXPECT_NE(
        whole.find("'attention' cannot run slice by slice: slice 0 reads what slice 1 of 'k' makes (only "
                   "causal attention"),
        std::string::npos)
        << whole;
    EXPECT_EQ(refusalOf(attentionOverSequence(true), "slice all : sequence by 2"), "");
    const GraphSnapshot gpt = trainingStep(kSlicedGpt);
    const std::string norm =
        refusalOf(gpt, "slice in:h.1.attn : sequence by 2\nslice in:h.0.mlp : sequence by 2");
    EXPECT_NE(norm.find("of all slices"), std::string::npos) << norm;
    EXPECT_NE(refusalOf(gpt, "slice all : batch by 2").find("micro-batches"), std::string::npos);
    EXPECT_NE(refusalOf(gpt, "slice in:h.0.mlp : sequence by 2\nslice in:h.1.mlp : sequence by 4")
                  .find("as many slices"),
        std::string::npos);
    EXPECT_NE(refusalOf(gpt, "slice all : sequence by 2\nslice in:h.0.mlp : sequence by 4")
                  .find("cut into different slices"),
        std::string::npos);
    EXPECT_NE(
        refusalOf(gpt, "slice all : sequence by 2\ncoshard in:h.0.mlp : batch by 2").find("coshard region"),
        std::string::npos);
}

TEST(Slices, OfOneStageLeaveOthersWhole)
{
    const GraphSnapshot graph = trainingStep(kSlicedGpt);
    const auto plan = loweredRows(graph,
        stageRowsOf(2)
            + "slice layer:0 : sequence by 2\nslice layer:1 : sequence by 4\nmicro-batches 2\nschedule gpipe",
        2);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_EQ(blocksOn(*plan, 0), "F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 B1.0");
    EXPECT_EQ(blocksOn(*plan, 1),
        "F0.0 F0.1 F0.2 F0.3 F1.0 F1.1 F1.2 F1.3 B0.3 B0.2 B0.1 B0.0 B1.3 B1.2 B1.1 B1.0");
    const auto report = verify(*plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

TEST(Slices, StandInPlanFiles)
{
    const GraphSnapshot graph = trainingStep(kSlicedGpt);
    const auto plan = loweredRows(graph, "slice all : sequence by 2\nmicro-batches 2", 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto read = executionPlanFromJson(toJson(*plan));
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(read->partitions, plan->partitions);
    EXPECT_EQ(read->devices, plan->devices);
}

TEST(Slices, LetGradientsBeReducedBehindTheLastOfThem)
{
    const GraphSnapshot graph = trainingStep(kSlicedGpt);
    const auto plan = loweredRows(
        graph, "mesh dp=2\nsplit all : batch over dp\nslice all : sequence by 2\nmicro-batches 2", 2);
    ASSERT_TRUE(plan) << describe(plan.error());
    bool reduced = false;
    for (const ScheduleEntry &entry : plan->devices[0].schedule) {
        const Segment &segment = plan->devices[0].segments[static_cast<std::size_t>(entry.segment)];
        if (reduced && isPass(segment.kind)) { // inside the last backward slice, not before it
            EXPECT_EQ(std::pair(segment.slice, entry.microBatch), std::pair(0, 1));
        }
        reduced = reduced || segment.kind == SegmentKind::Reduce;
    }
    EXPECT_TRUE(reduced);
}

TEST(Slices, OfInterleavedBlocksAlternate)
{
    Schedule schedule;
    const ScheduledBlock forward{{StageId{0}, SegmentKind::Forward}, 1};
    const ScheduledBlock backward{{StageId{0}, SegmentKind::Backward}, 0};
    schedule.ranks = {{forward, backward}};
    schedule.interleaved = {{forward, backward}};
    const auto of = [](ScheduledBlock block, std::int32_t slice) {
        block.block.slice = slice;
        return block;
    };
    const Schedule sliced = inSlices(schedule, {2});
    EXPECT_EQ(sliced.ranks.front(),
        (std::vector{of(forward, 0), of(backward, 1), of(forward, 1), of(backward, 0)}));
    EXPECT_EQ(sliced.interleaved,
        (std::vector{
            std::pair(of(forward, 0), of(backward, 1)), std::pair(of(forward, 1), of(backward, 0))}));
    EXPECT_EQ(inSlices(schedule, {1}), schedule);
}

} // namespace
} // namespace planloom
