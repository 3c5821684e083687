#include "engine/lowering/layout/shared_summands.h"

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// Holdings of one box: by device the summands it made, one buffer each.
std::vector<Holding> made(const std::vector<std::vector<std::int32_t>> &byDevice)
{
    std::vector<Holding> holdings;
    for (std::size_t d = 0; d < byDevice.size(); ++d)
        for (const std::int32_t summand : byDevice[d])
            holdings.push_back({DeviceId{static_cast<std::int32_t>(d)}, wholeMask({4}), {summand}, summand});
    return holdings;
}

std::vector<std::vector<std::int32_t>> rest(const std::vector<std::vector<std::int32_t>> &byDevice)
{
    std::vector<std::vector<std::int32_t>> result(byDevice.size());
    for (const Holding &h : withoutShared(made(byDevice)))
        result[static_cast<std::size_t>(h.device.index)].push_back(h.summands[0]);
    return result;
}

TEST(SharedSummands, AreKeptWhereLittleElseIs)
{
    using Sets = std::vector<std::vector<std::int32_t>>;
    EXPECT_EQ(rest({{0, 1}, {0, 2}}), (Sets{{0, 1}, {2}}));
    EXPECT_EQ(rest({{0, 1}, {0, 2}, {0, 3}, {0, 4}}), (Sets{{0, 1}, {2}, {3}, {4}}));
    // Replicas stay replicas.
    EXPECT_EQ(rest({{0, 1}, {0, 1}, {0, 2}, {0, 2}}), (Sets{{0, 1}, {0, 1}, {2}, {2}}));
    EXPECT_EQ(rest({{0, 1, 2}, {0, 2, 3, 4}}), (Sets{{0, 1, 2}, {3, 4}}));
}

TEST(SharedSummands, AreLeftAloneWhereNothingHelpsOrNothingHasTo)
{
    for (const std::vector<std::vector<std::int32_t>> &sets :
        {std::vector<std::vector<std::int32_t>>{{0}, {1}}, {{0, 1}, {0, 1}}, {{0, 1}, {0}},
            {{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}}, {{0}, {0, 1}, {1}}})
        EXPECT_EQ(rest(sets), sets);
}

/// y = h + down(relu(up(h))), h trained: as in a layer without a norm in its residual stream.
GraphSnapshot residual()
{
    GraphBuilder builder{"residual"};
    const TensorId x = builder.input("x", {DataType::Float32, {8, 6}});
    const TensorId labels = builder.input("labels", {DataType::Int64, {8}});
    const TensorId h = builder.one(OperatorKind::MatMul, {x, builder.weight("embed", {6, 8})}, {}, "embed");
    TensorId inner = builder.one(OperatorKind::MatMul, {h, builder.weight("w", {8, 16})}, {}, "up");
    inner = builder.one(OperatorKind::Relu, {inner}, {}, "relu");
    inner = builder.one(OperatorKind::MatMul, {inner, builder.weight("v", {16, 8})}, {}, "down");
    const TensorId y = builder.one(OperatorKind::Add, {h, inner}, {}, "join");
    const TensorId loss = builder.one(
        OperatorKind::CrossEntropy, {y, labels}, attributesOf({{"reduction", std::string{"sum"}}}));
    auto forward = builder.finish({y}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

TEST(SharedSummands, OfAResidualStreamAreReducedTogether)
{
    const auto table = parseTable("split name:up : n by 2\nsplit name:relu : d1 by 2\nsplit name:down : k by "
                                  "2\nplace all : devices 0,1\n");
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(residual(), 2, *table);
    ASSERT_TRUE(completion);
    ASSERT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("dgx-a100:2"));
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto report = verify(*plan);
    ASSERT_TRUE(report);
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    int reductions = 0;
    for (const Segment &segment : plan->devices[1].segments)
        for (const Instruction &instruction : segment.instructions) {
            EXPECT_NE(instruction.kind, InstructionKind::Recv);
            if (segment.kind == SegmentKind::Backward && isCommunication(instruction.kind))
                ++reductions;
        }
    EXPECT_EQ(reductions, 1); // of the gradient of h, from the products and from the addition
}

/// Gradients of one tensor that its readers make in layouts of their own: each is brought over by
/// collectives, and not piece by piece what has no layout together.
TEST(SharedSummands, OfReadersThatAreCutDifferentlyAreReducedOneByOne)
{
    GraphBuilder builder{"fork"};
    const TensorId x = builder.input("x", {DataType::Float32, {8, 8}});
    const TensorId labels = builder.input("labels", {DataType::Int64, {8}});
    const TensorId h = builder.one(OperatorKind::MatMul, {x, builder.weight("w", {8, 16})}, {}, "embed");
    const TensorId a = builder.one(OperatorKind::MatMul, {h, builder.weight("wa", {16, 16})}, {}, "a");
    const TensorId b = builder.one(OperatorKind::MatMul, {h, builder.weight("wb", {16, 16})}, {}, "b");
    const TensorId y = builder.one(OperatorKind::Add, {a, b}, {}, "join");
    const TensorId loss = builder.one(
        OperatorKind::CrossEntropy, {y, labels}, attributesOf({{"reduction", std::string{"sum"}}}));
    auto forward = builder.finish({y}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training) << describe(training.error());
    const auto table = parseTable("mesh cp=2 tp=2\nsplit name:a : n over cp\nsplit name:a : n over tp\n"
                                  "split name:b : k over cp\nsplit name:b : n over tp\n"
                                  "replicate name:join : over cp\nreplicate name:join : over tp\n");
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(std::make_shared<const Graph>(*std::move(training)), 4, *table);
    ASSERT_TRUE(completion);
    ASSERT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("dgx-a100:4"));
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto report = verify(*plan);
    ASSERT_TRUE(report);
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    for (const DeviceProgram &device : plan->devices)
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions)
                EXPECT_NE(instruction.kind, InstructionKind::Recv) << nameOf(segment.kind);
}

TEST(SharedSummands, OfSomeDevicesAreTold)
{
    EXPECT_FALSE(shareSome(made({{0}, {1}, {0}})));
    std::vector<Holding> sums = made({{0}, {2}});
    sums[0].summands = {0, 1};
    EXPECT_FALSE(shareSome(sums));
    sums[1].summands = {1, 2};
    EXPECT_TRUE(shareSome(sums));
    sums[0].summands.clear(); // everything
    EXPECT_TRUE(shareSome(sums));
    sums[0].box = {{{0, 2}}};
    sums[1].box = {{{2, 4}}};
    EXPECT_FALSE(shareSome(sums));
}

/// Queries, keys and values of one device: the gradient of what they read goes to the others once.
TEST(SharedSummands, OfOneDeviceAreAddedUpBeforeTheyAreSent)
{
    const GraphSnapshot graph =
        trainingStep("zoo:llama?layers=1&hidden=16&heads=4&kv_heads=4&seq=4&batch=4&vocab=24");
    const std::string apart = "name:*q_proj | name:*k_proj | name:*v_proj";
    const auto plan = loweredRows(graph,
        "mesh dp=4\nsplit !(" + apart + ") : batch over dp\nplace !(" + apart + ") : mesh\nreplicate " + apart
            + " : by 1\nplace " + apart + " : devices 1\n",
        4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto report = verify(*plan);
    ASSERT_TRUE(report);
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    int sent = 0;
    for (const Segment &segment : plan->devices[1].segments)
        for (const Instruction &instruction : segment.instructions)
            sent += instruction.kind == InstructionKind::Send && instruction.op
                && graph->at(instruction.op).name == "layers.0.input_layernorm'";
    EXPECT_EQ(sent, 3);
}

/// Device 0 adds up in every turn all there is, device 1 a part of it: what the turns make together is read
/// by both.
TEST(SharedSummands, OfTurnsCanBeAddedUpBehindThem)
{
    const auto table = parseTable("split name:embed* : k by 2 then replicate by 2\n"
                                  "place name:embed* : devices 0,0,0,1\n"
                                  "coshard name:embed* | name:up : m by 2\n"
                                  "place !name:embed* : devices 0,1\n");
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(residual(), 2, *table);
    ASSERT_TRUE(completion);
    ASSERT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("dgx-a100:2"));
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto report = verify(*plan);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok()) << report->failure->reason;
}

} // namespace
} // namespace planloom
