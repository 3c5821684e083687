// Attention split along its keys: means over parts of them are weighed by their log-sum-exps and added up.

#include "engine/frontend/graph_builder.h"
#include "engine/frontend/training.h"
#include "engine/frontend/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

struct AttentionForm {
    std::int64_t keyHeads = 4;
    bool causal = false;
    std::int64_t window = 0;
    double dropout = 0;
};

/// Products that make queries, keys and values of four heads, their attention, and a sum of squares.
GraphSnapshot attentionModel(const AttentionForm &form)
{
    GraphBuilder builder{"attention"};
    const TensorId x = builder.input("x", {DataType::Float32, {2, 8, 6}});
    const auto heads = [&](const std::string &name, std::int64_t count) {
        TensorId h =
            builder.one(OperatorKind::MatMul, {x, builder.weight(name + ".w", {6, count * 4})}, {}, name);
        h = builder.reshape(h, {2, 8, count, 4}, name + ".heads");
        return builder.one(OperatorKind::Transpose, {h},
            attributesOf({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}), name + ".turned");
    };
    Attributes attributes = attributesOf({{"scale", 0.5}});
    if (form.causal)
        attributes.set("causal", std::int64_t{1});
    if (form.window > 0)
        attributes.set("window", form.window);
    if (form.dropout > 0) {
        attributes.set("dropout", form.dropout);
        attributes.set("seed", std::int64_t{7});
    }
    const TensorId q = heads("q", 4);
    const TensorId k = heads("k", form.keyHeads);
    const TensorId v = heads("v", form.keyHeads);
    const TensorId y = builder.add(OperatorKind::Attention, {q, k, v}, attributes, "attention")[0];
    const TensorId loss = builder.one(
        OperatorKind::ReduceSumSquare, {y}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

Result<ExecutionPlan> keyPlan(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    TRY(const auto table, parseTable(rows));
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    return lower(completion.plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
}

std::int64_t countOfKind(const ExecutionPlan &plan, InstructionKind kind)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            count += std::count_if(segment.instructions.begin(), segment.instructions.end(),
                [&](const Instruction &i) { return i.kind == kind; });
    return count;
}

void expectLikeTheModel(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    SCOPED_TRACE(rows);
    const auto plan = keyPlan(graph, rows, devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_GT(countOfKind(*plan, InstructionKind::Weigh), 0);
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof) << describe(proof.error());
    ASSERT_TRUE(proof->ok()) << proof->failure->reason;
    const auto reference = keyPlan(graph, "", 1);
    ASSERT_TRUE(reference) << describe(reference.error());
    RunOptions options;
    options.randomWeights = true;
    options.keepGradients = true;
    options.steps = 2;
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto check = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

TEST(KeySplit, GivesTheModelsNumbersForwardAndBackward)
{
    const AttentionForm forms[] = {{}, {.causal = true}, {.keyHeads = 2, .causal = true}, {.keyHeads = 1},
        {.causal = true, .window = 3}, {.keyHeads = 2, .dropout = 0.25}};
    for (const AttentionForm &form : forms) {
        const GraphSnapshot graph = attentionModel(form);
        for (const std::int32_t parts : {2, 4}) {
            SCOPED_TRACE(testing::Message()
                << form.keyHeads << " key heads, causal " << form.causal << ", window " << form.window);
            expectLikeTheModel(
                graph, "mesh cp=" + std::to_string(parts) + "\nsplit name:attention : t over cp\n", parts);
        }
    }
}

TEST(KeySplit, GoesWithOtherSplitsUnevenPartsMicroBatchesAndRecomputation)
{
    const GraphSnapshot graph = attentionModel({.keyHeads = 2, .causal = true});
    for (const char *rows :
        {"mesh cp=2 tp=2\nsplit name:attention : t over cp\nsplit name:attention : heads over tp\n",
            "mesh cp=2 sp=2\nsplit name:attention : t over cp\nsplit name:attention : s over sp\n",
            "mesh cp=2 dp=2\nsplit all : batch over dp\nsplit name:attention : t over cp\n",
            "mesh cp=4\nmicro-batches 2\nsplit name:attention : t over cp\nrecompute all\n"})
        expectLikeTheModel(graph, rows, 4);
    expectLikeTheModel(graph, "split name:attention : t into 5,1,2\nplace all : devices 0,1,2\n", 3);
    expectLikeTheModel(graph, "coshard name:attention : t by 4\n", 1);
}

TEST(KeySplit, ContextParallelKeepsTheSequenceInParts)
{
    // Everything but the attention along the sequence: keys and values stay where they are made, queries come
    // together, and what is made of them is scattered again.
    const auto model = buildZooModel("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24");
    ASSERT_TRUE(model);
    auto training = buildTrainingStep(*model, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training);
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    for (const std::int32_t parts : {2, 4})
        expectLikeTheModel(graph,
            "mesh cp=" + std::to_string(parts)
                + "\nsplit !kind:Attention : sequence over cp\nsplit kind:Attention : t over cp\n",
            parts);
}

TEST(KeySplit, ProbabilitiesAreNotKeptInPartsOfTheKeys)
{
    const GraphSnapshot graph = attentionModel({});
    const auto plan =
        keyPlan(graph, "mesh cp=2\nsplit name:attention : t over cp\nattention all : plain\n", 2);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().where, "operator:attention");
}

} // namespace
} // namespace planloom
