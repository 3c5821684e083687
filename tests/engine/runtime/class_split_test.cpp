// Losses split along their classes: the parts' statistics are combined, logits are never gathered.

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

struct LossForm {
    bool sums = true; ///< Else one loss for each item, summed behind.
    bool weighted = false;
    bool ignores = false;
    bool spatial = false; ///< Logits [n c d].
};

/// A product that makes the logits of twelve classes, and their cross-entropy.
GraphSnapshot classifier(const LossForm &form)
{
    GraphBuilder builder{"classifier"};
    const TensorId x = builder.input("x", {DataType::Float32, {8, 6}});
    const TensorId labels = builder.input("labels", {DataType::Int64, form.spatial ? Shape{4, 2} : Shape{8}});
    TensorId logits = builder.one(OperatorKind::MatMul, {x, builder.weight("w", {6, 12})}, {}, "head");
    if (form.spatial) {
        logits = builder.reshape(logits, {4, 2, 12}, "pairs");
        logits = builder.one(OperatorKind::Transpose, {logits},
            attributesOf({{"permutation", std::vector<std::int64_t>{0, 2, 1}}}), "classes");
    }
    Attributes ignore;
    if (form.ignores)
        ignore.set("ignore_index", std::int64_t{3});
    Attributes reduction = ignore;
    reduction.set("reduction", std::string(form.sums ? "sum" : "none"));
    const auto statistics =
        builder.add(OperatorKind::ClassStatistics, {logits, labels}, ignore, "statistics");
    std::vector<TensorId> inputs{statistics[0], statistics[1], labels};
    if (form.weighted)
        inputs.push_back(builder.buffer(
            "class.weights", {12}, std::vector<float>{1, 2, .5, 1, 3, .25, 1, 2, 1, 1, .5, 4}));
    TensorId loss = builder.one(OperatorKind::ClassLoss, inputs, reduction, "entropy");
    if (!form.sums)
        loss = builder.one(
            OperatorKind::ReduceSum, {loss}, attributesOf({{"keepdims", std::int64_t{0}}}), "sum");
    auto forward = builder.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

Result<ExecutionPlan> loweredTable(
    const GraphSnapshot &graph, const ConstraintTable &table, std::int32_t devices)
{
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    return lower(completion.plan, *clusterNamed("dgx-a100:" + std::to_string(devices)));
}

ExecutionPlan classSplitPlan(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    auto plan = loweredTable(graph, *table, devices);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

void expectLikeOneDevice(const GraphSnapshot &graph, const ExecutionPlan &plan)
{
    const auto proof = verify(plan);
    ASSERT_TRUE(proof) << describe(proof.error());
    ASSERT_TRUE(proof->ok()) << proof->failure->reason;
    const auto reference = loweredTable(graph, {}, 1);
    ASSERT_TRUE(reference) << describe(reference.error());
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

std::int64_t countOf(const ExecutionPlan &plan, InstructionKind kind, Combination combination)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            count += std::count_if(segment.instructions.begin(), segment.instructions.end(),
                [&](const Instruction &i) { return i.kind == kind && i.combination == combination; });
    return count;
}

TEST(ClassSplit, GivesTheModelsNumbersInEveryFormOfTheLoss)
{
    const LossForm forms[] = {{}, {.ignores = true}, {.weighted = true, .ignores = true}, {.sums = false},
        {.sums = false, .weighted = true, .ignores = true}, {.spatial = true},
        {.weighted = true, .ignores = true, .spatial = true}};
    for (const LossForm &form : forms) {
        const GraphSnapshot graph = classifier(form);
        for (const std::int32_t devices : {2, 4}) {
            SCOPED_TRACE(testing::Message()
                << form.sums << form.weighted << form.ignores << form.spatial << " on " << devices);
            const ExecutionPlan plan = classSplitPlan(graph,
                "mesh tp=" + std::to_string(devices)
                    + "\nsplit name:head : n over tp\nsplit name:statistics : c over tp\n",
                devices);
            EXPECT_GT(countOf(plan, InstructionKind::AllReduce, Combination::LogSumExp), 0);
            expectLikeOneDevice(graph, plan);
        }
    }
}

TEST(ClassSplit, PartsMayBeUnevenOrOneAfterTheOther)
{
    const GraphSnapshot graph = classifier({.weighted = true, .ignores = true});
    expectLikeOneDevice(
        graph, classSplitPlan(graph, "split name:statistics : c into 5,4,3\nplace all : devices 0,1,2\n", 3));
    expectLikeOneDevice(graph, classSplitPlan(graph, "coshard name:statistics : c by 3\n", 1));
    expectLikeOneDevice(graph,
        classSplitPlan(graph,
            "mesh dp=2 tp=2\nmicro-batches 2\nsplit all : batch over dp\nsplit name:head : n over tp\n"
            "split name:statistics : c over tp\nrecompute all\n",
            4));
}

TEST(ClassSplit, GatheringSumsOfExponentialsNeverOverflows)
{
    // Logits of some hundred, whose exponentials no float holds, and a range that holds none of the labels.
    GraphBuilder builder{"large"};
    const TensorId x = builder.input("x", {DataType::Float32, {4, 6}});
    const TensorId labels = builder.input("labels", {DataType::Int64, {4}});
    TensorId logits = builder.one(OperatorKind::MatMul, {x, builder.weight("w", {6, 8})}, {}, "head");
    logits = builder.one(OperatorKind::Mul, {logits, builder.scalar(400)}, {}, "large");
    const auto statistics = builder.add(OperatorKind::ClassStatistics, {logits, labels}, {}, "statistics");
    const TensorId loss = builder.one(OperatorKind::ClassLoss, {statistics[0], statistics[1], labels},
        attributesOf({{"reduction", std::string("sum")}}), "entropy");
    auto forward = builder.finish({loss}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training);
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    expectLikeOneDevice(graph,
        classSplitPlan(
            graph, "mesh tp=4\nsplit name:head : n over tp\nsplit name:statistics : c over tp\n", 4));
}

TEST(ClassSplit, LargestAndLogSumExpOfReductionsAreCombined)
{
    GraphBuilder builder{"reductions"};
    const TensorId x = builder.input("x", {DataType::Float32, {4, 8}});
    const TensorId h = builder.one(OperatorKind::MatMul, {x, builder.weight("w", {8, 16})}, {}, "head");
    const auto axes = attributesOf({{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{0}}});
    const TensorId largest = builder.one(OperatorKind::ReduceMax, {x}, axes, "largest");
    const TensorId sum = builder.one(OperatorKind::ReduceLogSumExp, {h}, axes, "exponentials");
    const TensorId both = builder.one(OperatorKind::Add, {largest, sum}, {}, "both");
    const TensorId loss =
        builder.one(OperatorKind::ReduceSum, {both}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({both, loss}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training) << describe(training.error());
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    for (const std::int32_t devices : {2, 4}) {
        const ExecutionPlan plan = classSplitPlan(graph,
            "mesh tp=" + std::to_string(devices)
                + "\nsplit name:largest : in0.-1 over tp\nsplit name:exponentials : in0.-1 over tp\n"
                  "split name:head : n over tp\n",
            devices);
        EXPECT_GT(countOf(plan, InstructionKind::AllReduce, Combination::LogSumExp), 0);
        EXPECT_GT(countOf(plan, InstructionKind::AllReduce, Combination::Max), 0);
        expectLikeOneDevice(graph, plan);
    }
}

class VocabularyParallel : public testing::TestWithParam<std::int32_t>
{
};

TEST_P(VocabularyParallel, LogitsOfTheTinyGptAreNeverGathered)
{
    const std::int32_t devices = GetParam();
    const auto model = buildZooModel("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24");
    ASSERT_TRUE(model);
    auto training = buildTrainingStep(*model, {.optimizer = OperatorKind::AdamWStep});
    ASSERT_TRUE(training);
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    const auto table = galleryTable("tensor-parallel", graph, devices);
    ASSERT_TRUE(table) << describe(table.error());
    const auto plan = loweredTable(graph, *table, devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    std::int64_t held = 0; // buffers of logits
    for (const DeviceProgram &device : plan->devices)
        for (const BufferInfo &buffer : device.buffers) {
            const Shape &shape = graph->at(buffer.tensor).type.shape;
            const bool activation = graph->at(buffer.tensor).role != TensorRole::Weight
                && graph->at(buffer.tensor).role != TensorRole::OptimizerState;
            const bool ofWeight = graph->at(buffer.tensor).role == TensorRole::Gradient
                && graph->at(graph->at(buffer.tensor).of).role == TensorRole::Weight;
            for (std::size_t d = 0; d < shape.size(); ++d) {
                if (shape[d] != 24)
                    continue;
                // Nobody holds more than its share of the vocabulary: no logits, no table, no gradient.
                EXPECT_EQ(buffer.index.ranges[d].size(), 24 / devices) << graph->at(buffer.tensor).name;
                held += activation && !ofWeight;
            }
        }
    EXPECT_GT(held, 0);
    EXPECT_EQ(countOf(*plan, InstructionKind::AllGather, Combination::Sum), 0);
    EXPECT_EQ(countOf(*plan, InstructionKind::AllReduce, Combination::LogSumExp), devices);
    expectLikeOneDevice(graph, *plan);
}

INSTANTIATE_TEST_SUITE_P(Devices, VocabularyParallel, testing::Values(2, 4));

} // namespace
} // namespace planloom
