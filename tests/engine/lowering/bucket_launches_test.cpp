#include "engine/lowering/program/bucket_launches.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace planloom {
namespace {

Instruction collective(InstructionKind kind, std::int32_t group, std::int32_t from, std::int32_t to)
{
    return {.kind = kind, .group = group, .inputs = {from}, .outputs = {to}};
}

/// Of each instruction, whether it is one launch with the collective before.
std::vector<bool> continuing(const std::vector<Instruction> &segment)
{
    BucketLaunches launches;
    std::vector<bool> continues;
    for (const Instruction &instruction : segment) {
        continues.push_back(launches.continues(instruction));
        launches.add(instruction);
    }
    return continues;
}

TEST(BucketLaunches, AreOfOneKindAndGroup)
{
    EXPECT_EQ(continuing({collective(InstructionKind::ReduceScatter, 1, 0, 10),
                  collective(InstructionKind::ReduceScatter, 1, 1, 11),
                  collective(InstructionKind::ReduceScatter, 2, 2, 12),
                  collective(InstructionKind::AllGather, 2, 3, 13),
                  collective(InstructionKind::AllGather, 2, 4, 14)}),
        (std::vector{false, true, false, false, true}));
}

TEST(BucketLaunches, LetWhatShapesThemRunBehind)
{
    Instruction select{.kind = InstructionKind::Select, .inputs = {10}, .outputs = {20}};
    select.queue = queueOf(collective(InstructionKind::ReduceScatter, 1, 0, 10));
    EXPECT_EQ(continuing({collective(InstructionKind::ReduceScatter, 1, 0, 10), select,
                  collective(InstructionKind::ReduceScatter, 1, 1, 11),
                  collective(InstructionKind::ReduceScatter, 1, 20, 12),
                  collective(InstructionKind::ReduceScatter, 1, 12, 13),
                  collective(InstructionKind::ReduceScatter, 1, 2, 14)}),
        (std::vector{false, false, true, false, false, true}));
}

TEST(BucketLaunches, EndWithAMessage)
{
    Instruction send{.kind = InstructionKind::Send, .inputs = {5}};
    send.queue = queueOf(collective(InstructionKind::AllGather, 1, 0, 10));
    EXPECT_EQ(continuing({collective(InstructionKind::AllGather, 1, 0, 10), send,
                  collective(InstructionKind::AllGather, 1, 1, 11)}),
        (std::vector{false, false, false}));
}

/// What is little stays together until it is worth a launch: of new weights one for each group of devices,
/// though those of different groups follow one another in every layer.
TEST(BucketLaunches, OfSmallWeightsGatherEachGroupAtOnce)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=4&hidden=32&heads=4&seq=16&vocab=64&batch=4");
    auto table = galleryTable("3d:dp=2,tp=2,zero1=0", graph, 4);
    ASSERT_TRUE(table) << describe(table.error());
    const auto sharded = parseTable("zero1 all\n");
    table->rows.insert(table->rows.end(), sharded->rows.begin(), sharded->rows.end());
    const auto completion = completePlan(graph, 4, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("dgx-h100:4"));
    ASSERT_TRUE(plan) << describe(plan.error());
    for (const DeviceProgram &device : plan->devices) {
        std::set<std::int32_t> groups;
        int gathers = 0;
        int launches = 0;
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                if (segment.kind == SegmentKind::Optimizer
                    && instruction.kind == InstructionKind::AllGather) {
                    groups.insert(instruction.group);
                    ++gathers;
                    launches += instruction.joined ? 0 : 1;
                }
        EXPECT_GT(gathers, 30);
        EXPECT_GT(groups.size(), 1u);
        EXPECT_LE(launches, static_cast<int>(groups.size()));
    }
}

/// Small gradients take the way of large ones: alone, they would be added up within nodes first, and each
/// would be two launches among those of others (ZeRO-2).
TEST(BucketLaunches, OfALayersGradientsAreOneAcrossNodes)
{
    const GraphSnapshot graph =
        trainingStep("zoo:gpt?layers=3&hidden=1024&heads=16&seq=1024&vocab=64&batch=4");
    const auto table =
        parseTable("mesh dp=4 tp=4\nsplit all : batch over dp\nsplit all : sequence over tp\nzero2 all\n");
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 16, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("dgx-h100:16"));
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto isReduction = [&](const Instruction &instruction) {
        return instruction.kind == InstructionKind::ReduceScatter
            && plan->graph->at(instruction.op).direction == Direction::Optimizer
            && plan->graph->at(instruction.op).name.starts_with("h.");
    };
    int gradients = 0;
    int launches = 0;
    for (const Segment &segment : plan->devices.front().segments)
        for (const Instruction &instruction : segment.instructions)
            if (segment.kind == SegmentKind::Backward && isReduction(instruction)) {
                ++gradients;
                launches += instruction.joined ? 0 : 1;
            }
    EXPECT_GE(gradients, 3 * 12);
    EXPECT_LE(launches, 3);
}

/// Likewise what a layer gathers of its weights: of those that only replicas share, and of those that all
/// devices do, each in one launch (ZeRO-3).
TEST(BucketLaunches, OfALayersWeightsAreOneForEachGroup)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=3&hidden=64&heads=8&seq=16&vocab=64&batch=4");
    auto table = galleryTable("3d:dp=2,tp=2", graph, 4);
    ASSERT_TRUE(table) << describe(table.error());
    const auto sharded = parseTable("zero3 all\n");
    table->rows.insert(table->rows.end(), sharded->rows.begin(), sharded->rows.end());
    const auto completion = completePlan(graph, 4, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("dgx-h100:4"));
    ASSERT_TRUE(plan) << describe(plan.error());
    for (const SegmentKind pass : {SegmentKind::Forward, SegmentKind::Backward})
        for (const DeviceProgram &device : plan->devices) {
            std::set<std::int32_t> groups;
            int gathers = 0;
            int launches = 0;
            for (const Segment &segment : device.segments)
                for (const Instruction &instruction : segment.instructions) {
                    if (segment.kind != pass || instruction.kind != InstructionKind::AllGather
                        || !plan->graph->at(instruction.op).name.starts_with("h.1."))
                        continue;
                    const auto made = static_cast<std::size_t>(instruction.outputs.front());
                    if (device.buffers[made].memory != MemoryKind::Weight)
                        continue;
                    groups.insert(instruction.group);
                    ++gathers;
                    launches += instruction.joined ? 0 : 1;
                }
            EXPECT_GE(gathers, 6);
            EXPECT_EQ(groups.size(), 2u);
            EXPECT_EQ(launches, 2);
        }
}

} // namespace
} // namespace planloom
