// What devices send one another where volumes are cut in space: borders, and no more.

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <map>

namespace planloom {
namespace {

/// Large enough that planes are sent on their own: little is gathered whole, in fewer messages.
constexpr const char *kVolumes = "zoo:cosmoflow?stages=2&width=32&volume=64&channels=1&head=4&batch=1";

const Operator &forwardNamed(const Graph &graph, const std::string &name)
{
    for (const Operator &op : graph.operators)
        if (op.name == name)
            return op;
    ADD_FAILURE() << "no operator " << name;
    return graph.operators.front();
}

/// Elements of a tensor that each device sends in blocks of a kind.
std::map<std::int32_t, std::int64_t> sentOf(const ExecutionPlan &plan, TensorId tensor, SegmentKind kind)
{
    std::map<std::int32_t, std::int64_t> sent;
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        for (const Segment &segment : plan.devices[d].segments)
            for (const Instruction &instruction : segment.instructions) {
                if (segment.kind != kind || instruction.kind != InstructionKind::Send)
                    continue;
                const BufferInfo &buffer =
                    plan.devices[d].buffers[static_cast<std::size_t>(instruction.inputs[0])];
                if (buffer.tensor == tensor)
                    sent[static_cast<std::int32_t>(d)] += elementCount(shapeOf(buffer.index));
            }
    return sent;
}

TEST(Halo, OnePlaneGoesEachWayForAKernelOfThree)
{
    const GraphSnapshot graph = trainingStep(kVolumes);
    const auto plan = loweredRows(graph, "mesh depth=2\nsplit all : depth over depth", 2);
    ASSERT_TRUE(plan) << describe(plan.error());
    const Operator &conv = forwardNamed(*graph, "conv.1.conv");
    const TensorId x = conv.inputs[0]; // [1 32 32 32 32], in two halves
    const std::int64_t plane = 32 * 32 * 32;
    using Sent = std::map<std::int32_t, std::int64_t>;
    EXPECT_EQ(sentOf(*plan, x, SegmentKind::Forward), (Sent{{0, plane}, {1, plane}}));
    // What the backward pass reads of its border is not kept: it takes memory for as long.
    EXPECT_EQ(sentOf(*plan, x, SegmentKind::Backward), (Sent{{0, plane}, {1, plane}}));
    const auto gradientOf = [&](TensorId of) {
        for (std::size_t t = 0; t < graph->tensors.size(); ++t)
            if (graph->tensors[t].role == TensorRole::Gradient && graph->tensors[t].of == of)
                return TensorId{static_cast<std::int32_t>(t)};
        return TensorId{};
    };
    EXPECT_EQ(sentOf(*plan, gradientOf(conv.outputs[0]), SegmentKind::Backward), // [1 64 32 32 32]
        (Sent{{0, 2 * plane}, {1, 2 * plane}}));
    // Nobody wants the gradient of the volumes: the first layer's own windows make that of its weights.
    const TensorId first = gradientOf(forwardNamed(*graph, "conv.0.conv").outputs[0]);
    ASSERT_TRUE(first);
    EXPECT_EQ(sentOf(*plan, first, SegmentKind::Backward), Sent{});
    // The host feeds each device with its border.
    EXPECT_EQ(sentOf(*plan, forwardNamed(*graph, "conv.0.conv").inputs[0], SegmentKind::Forward), Sent{});
}

TEST(Halo, InTheMiddleGoesToBothNeighbours)
{
    const GraphSnapshot graph = trainingStep(kVolumes);
    const auto plan = loweredRows(graph, "mesh depth=4\nsplit all : depth over depth", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const std::int64_t plane = 32 * 32 * 32;
    const TensorId x = forwardNamed(*graph, "conv.1.conv").inputs[0];
    using Sent = std::map<std::int32_t, std::int64_t>;
    EXPECT_EQ(sentOf(*plan, x, SegmentKind::Forward),
        (Sent{{0, plane}, {1, 2 * plane}, {2, 2 * plane}, {3, plane}}));
}

TEST(Halo, WhatFollowsIsCutWhereItsWindowsLie)
{
    // Windows by 2 halve the 64 rows of uneven parts; odd ones go to the part that their middle is in.
    const GraphSnapshot graph = trainingStep("zoo:resnet?depth=18&width=2&image=128&classes=5&batch=2");
    const auto table = parseTable("mesh sp=4\nsplit name:conv1 : h into 20,12,15,17 over sp");
    const auto completion = completePlan(graph, 4, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto sizesOf = [&](const std::string &name) {
        for (std::size_t i = 0; i < graph->operators.size(); ++i)
            if (graph->operators[i].name == name)
                return completion->plan.decisions[i].partition.splits.front().sizes;
        return std::vector<std::int64_t>{};
    };
    using Sizes = std::vector<std::int64_t>;
    EXPECT_EQ(sizesOf("relu"), (Sizes{20, 12, 15, 17}));
    EXPECT_EQ(sizesOf("maxpool"), (Sizes{10, 6, 8, 8}));
    EXPECT_EQ(sizesOf("layer1.0.conv1"), (Sizes{10, 6, 8, 8}));
    EXPECT_EQ(sizesOf("layer2.0.conv1"), (Sizes{5, 3, 4, 4}));
    EXPECT_EQ(sizesOf("layer3.0.conv1"), (Sizes{3, 1, 2, 2}));
    EXPECT_EQ(sizesOf("layer4.0.conv1"), Sizes{}) << "half of one row may be none: not cut at all";
}

TEST(Halo, TheLastPartTakesWhatIsPutBehind)
{
    // Rolled by one of sixteen rows: fifteen and one, of which the fifteen lead.
    const GraphSnapshot graph =
        trainingStep("zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=1");
    const auto table =
        parseTable("mesh sp=2\nsplit name:layers.0.blocks.1.shift_rows.front : out0.1 into 9,6 over sp");
    const auto completion = completePlan(graph, 2, table ? *table : ConstraintTable{});
    ASSERT_TRUE(table && completion && !firstError(*completion));
    for (std::size_t i = 0; i < graph->operators.size(); ++i)
        if (graph->operators[i].name == "layers.0.blocks.1.shift_rows") {
            EXPECT_EQ(completion->plan.decisions[i].partition.splits.front().sizes,
                (std::vector<std::int64_t>{9, 7}));
        }
}

} // namespace
} // namespace planloom
