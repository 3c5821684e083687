// Branches whose products are cut along their sums, added to one another: reduced once.

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// y = x + (a(x) + b(x)), two branches beside each other as in GPT-J's blocks.
GraphSnapshot parallelBlock()
{
    GraphBuilder builder{"parallel block"};
    const TensorId x = builder.input("x", {DataType::Float32, {8, 8}});
    const TensorId labels = builder.input("labels", {DataType::Int64, {8}});
    const auto branch = [&](const std::string &name) {
        TensorId h =
            builder.one(OperatorKind::MatMul, {x, builder.weight(name + ".w", {8, 16})}, {}, name + "up");
        h = builder.one(OperatorKind::Relu, {h}, {}, name + "relu");
        return builder.one(
            OperatorKind::MatMul, {h, builder.weight(name + ".v", {16, 8})}, {}, name + "down");
    };
    const TensorId a = branch("a");
    const TensorId b = branch("b");
    const TensorId both = builder.one(OperatorKind::Add, {a, b}, {}, "both");
    const TensorId y = builder.one(OperatorKind::Add, {x, both}, {}, "join");
    const TensorId loss = builder.one(
        OperatorKind::CrossEntropy, {y, labels}, attributesOf({{"reduction", std::string{"sum"}}}));
    auto forward = builder.finish({y}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

ExecutionPlan loweredBlock(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable("mesh tp=" + std::to_string(devices) + "\n" + rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion);
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

constexpr const char *kBranches = "split set{aup,bup} : n over tp\nsplit set{adown,bdown} : k over tp\n";

std::int64_t forwardReductions(const ExecutionPlan &plan)
{
    std::int64_t count = 0;
    for (const Segment &segment : plan.devices[0].segments)
        for (const Instruction &instruction : segment.instructions)
            count += segment.kind == SegmentKind::Forward && isCommunication(instruction.kind);
    return count;
}

TEST(OpenSums, AreReducedOnceAndGiveTheModelsNumbers)
{
    const GraphSnapshot graph = parallelBlock();
    const auto reference = lower(completePlan(graph, 1, ConstraintTable{})->plan, *clusterNamed("cpu:1"));
    ASSERT_TRUE(reference);
    for (const std::int32_t devices : {2, 4})
        for (const char *more : {"", "micro-batches 2\n", "recompute all\n"}) {
            SCOPED_TRACE(std::to_string(devices) + " " + more);
            const ExecutionPlan plan = loweredBlock(graph, std::string(kBranches) + more, devices);
            EXPECT_EQ(forwardReductions(plan), 1);
            const auto report = verify(plan);
            ASSERT_TRUE(report);
            ASSERT_TRUE(report->ok()) << report->failure->reason;
            RunOptions options;
            options.randomWeights = true;
            options.keepGradients = true;
            options.steps = 2;
            const auto outcome = runOnCpu(plan, options);
            ASSERT_TRUE(outcome) << describe(outcome.error());
            const auto check = checkAgainst(*reference, plan, *outcome, options);
            ASSERT_TRUE(check) << describe(check.error());
            EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
        }
}

TEST(OpenSums, AreReducedBeforeWhereARowSaysSo)
{
    const GraphSnapshot graph = parallelBlock();
    const ExecutionPlan plan =
        loweredBlock(graph, std::string(kBranches) + "split name:both : replicate over tp\n", 2);
    EXPECT_EQ(forwardReductions(plan), 2);
}

/// What a product makes of a sum over the batch has its bias once, not once for each micro-batch.
TEST(OpenSums, OverTheBatchAreCompleteBeforeABiasIsAdded)
{
    for (const bool convolves : {false, true}) {
        SCOPED_TRACE(convolves);
        GraphBuilder builder{"sum and bias"};
        const TensorId x = builder.input("x", {DataType::Float32, {4}});
        const TensorId y = builder.input("y", {DataType::Float32, {4, 30}});
        const TensorId sum = builder.one(OperatorKind::MatMul, {x, y}, {}, "sum");
        const TensorId biased = convolves
            ? builder.one(OperatorKind::Conv,
                {builder.reshape(sum, {1, 5, 6}, "signal"), builder.weight("w", {4, 5, 3}),
                    builder.weight("b", {4})},
                attributesOf({{"pads", std::vector<std::int64_t>{0, 0}},
                    {"strides", std::vector<std::int64_t>{1}}, {"group", std::int64_t{1}}}),
                "biased")
            : builder.one(OperatorKind::Linear, {sum, builder.weight("w", {30, 4}), builder.weight("b", {4})},
                {}, "biased");
        const auto forward = builder.finish({biased, sum}, {});
        ASSERT_TRUE(forward) << describe(forward.error());
        const auto graph = std::make_shared<const Graph>(*forward);
        for (const char *rows :
            {"micro-batches 2\n", "micro-batches 4\nmesh dp=2\nplace all : devices 0,1\n"}) {
            SCOPED_TRACE(rows);
            const auto plan = loweredRows(graph, rows, 2);
            ASSERT_TRUE(plan) << describe(plan.error());
            expectLikeTheModel(graph, *plan);
        }
    }
}

} // namespace
} // namespace planloom
