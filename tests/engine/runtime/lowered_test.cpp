// Plans as the gallery and lowering make them, run and compared with the model on one device.

#include "engine/runtime/training/check.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>

using namespace planloom;

namespace {

/// A norm and two layers, cross-entropy over 8 items; AdamW.
GraphSnapshot perceptron(OperatorKind optimizer, std::int64_t width = 8)
{
    GraphBuilder builder{"perceptron"};
    const TensorId x = builder.input("x", {DataType::Float32, {8, 6}});
    const TensorId labels = builder.input("labels", {DataType::Int64, {8}});
    TensorId h = builder.one(OperatorKind::LayerNorm,
        {x, builder.weight("norm.weight", {6}), builder.weight("norm.bias", {6})},
        attributesOf({{"axis", std::int64_t{1}}, {"epsilon", 1e-5}}), "norm");
    h = builder.one(OperatorKind::MatMul, {h, builder.weight("first.weight", {6, width})}, {}, "first");
    h = builder.one(OperatorKind::Add, {h, builder.weight("first.bias", {width})}, {}, "bias");
    h = builder.one(OperatorKind::Relu, {h}, {}, "relu");
    const TensorId logits =
        builder.one(OperatorKind::MatMul, {h, builder.weight("second.weight", {width, 4})}, {}, "second");
    const TensorId sum = builder.one(
        OperatorKind::CrossEntropy, {logits, labels}, attributesOf({{"reduction", std::string{"sum"}}}));
    const TensorId count = builder.one(OperatorKind::CountValid, {labels});
    const TensorId loss = builder.one(OperatorKind::Div, {sum, count}, {}, "mean");
    auto forward = builder.finish({logits}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = optimizer});
    EXPECT_TRUE(training) << describe(training.error());
    return std::make_shared<const Graph>(*std::move(training));
}

Result<ExecutionPlan> planned(const GraphSnapshot &graph, const std::string &gallery, std::int32_t devices,
    UseUnits units = UseUnits::Never)
{
    TRY(const auto table, galleryTable(gallery, graph, devices));
    TRY(const auto completion, completePlan(graph, devices, table, {.units = units}));
    if (const auto error = firstError(completion))
        return *error;
    TRY(const auto cluster, clusterNamed("cpu:" + std::to_string(devices)));
    return lower(completion.plan, cluster);
}

struct Case {
    std::string gallery;
    std::int32_t devices = 1;
};

std::ostream &operator<<(std::ostream &out, const Case &test)
{
    return out << test.gallery << " on " << test.devices;
}

class Lowered : public testing::TestWithParam<Case>
{
};

TEST_P(Lowered, RunsLikeTheModelOnOneDevice)
{
    for (const OperatorKind optimizer : {OperatorKind::SgdStep, OperatorKind::AdamWStep}) {
        const GraphSnapshot graph = perceptron(optimizer);
        const auto reference = planned(graph, "single", 1);
        ASSERT_TRUE(reference) << describe(reference.error());
        const auto plan = planned(graph, GetParam().gallery, GetParam().devices);
        ASSERT_TRUE(plan) << describe(plan.error());
        RunOptions options;
        options.randomWeights = true;
        options.keepGradients = true;
        options.steps = 3;
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        EXPECT_EQ(outcome->gradients.size(), 5U);
        EXPECT_EQ(outcome->weights.size(), 5U);
        EXPECT_NE(outcome->losses[0], outcome->losses[2]);
        const auto report = checkAgainst(*reference, *plan, *outcome, options);
        ASSERT_TRUE(report) << describe(report.error());
        EXPECT_TRUE(report->ok) << report->worstTensor << " " << report->worstError << " first "
                                << report->firstDifference;
        const auto again = runOnCpu(*plan, options);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->losses, outcome->losses); // the same bits
        for (const auto &[name, array] : outcome->weights)
            EXPECT_EQ(again->weights.at(name).bytes, array.bytes) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Gallery, Lowered,
    testing::Values(Case{"data-parallel", 2}, Case{"data-parallel", 4}, Case{"tensor-parallel", 2},
        Case{"zero1", 2}, Case{"zero2:micro-batches=2", 2}, Case{"zero3", 2},
        Case{"zero3:micro-batches=2", 4}, Case{"3d:dp=2,tp=2,pp=2,micro-batches=2,zero=3", 8},
        Case{"pipeline:schedule=gpipe,micro-batches=2", 2}, Case{"pipeline:schedule=1f1b,micro-batches=4", 2},
        Case{"pipeline:interleave=2,micro-batches=4", 2}, Case{"3d:dp=2,tp=2,pp=2,micro-batches=2", 8}),
    [](const auto &info) {
        std::string name = info.param.gallery + "_" + std::to_string(info.param.devices);
        for (char &c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                c = '_';
        return name;
    });

class UnevenShards : public testing::TestWithParam<const char *>
{
};

TEST_P(UnevenShards, OfUnitsRunLikeTheModelOnOneDevice)
{
    const GraphSnapshot graph = perceptron(OperatorKind::AdamWStep, 10);
    const auto reference = planned(graph, "single", 1);
    const auto plan = planned(graph, GetParam(), 4, UseUnits::WherePossible);
    ASSERT_TRUE(reference && plan);
    std::int32_t uneven = 0;
    for (const Partition &partition : plan->partitions)
        uneven += unitParts(partition) > 1 && !partition.splits.back().sizes.empty() ? 1 : 0;
    EXPECT_GE(uneven, 2);
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof && proof->ok()) << proof->failure->reason;
    RunOptions options;
    options.randomWeights = true;
    options.keepGradients = true;
    options.steps = 3;
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto report = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(report && report->ok) << report->worstTensor << " " << report->worstError;
}

INSTANTIATE_TEST_SUITE_P(Stages, UnevenShards, testing::Values("zero1", "zero2:micro-batches=2", "zero3"),
    [](const auto &info) { return std::string(info.param, 5); });

/// Whole replicas, written once.
class InUnits : public testing::TestWithParam<Case>
{
};

TEST_P(InUnits, AreProvenAndRunLikeTheModelOnOneDevice)
{
    for (const OperatorKind optimizer : {OperatorKind::SgdStep, OperatorKind::AdamWStep}) {
        const GraphSnapshot graph = perceptron(optimizer);
        const auto reference = planned(graph, "single", 1);
        ASSERT_TRUE(reference) << describe(reference.error());
        const auto plan = planned(graph, GetParam().gallery, GetParam().devices, UseUnits::WherePossible);
        ASSERT_TRUE(plan) << describe(plan.error());
        EXPECT_GT(plan->units.count, 1);
        EXPECT_EQ(static_cast<std::int32_t>(plan->devices.size()) * plan->units.count, GetParam().devices);
        const auto proof = verify(*plan);
        ASSERT_TRUE(proof) << describe(proof.error());
        ASSERT_TRUE(proof->ok()) << proof->failure->reason;
        RunOptions options;
        options.randomWeights = true;
        options.keepGradients = true;
        options.steps = 3;
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const auto report = checkAgainst(*reference, *plan, *outcome, options);
        ASSERT_TRUE(report) << describe(report.error());
        EXPECT_TRUE(report->ok) << report->worstTensor << " " << report->worstError << " first "
                                << report->firstDifference;
    }
}

/// Units share out a weight whose master is narrower than what the model reads.
TEST(NarrowMasters, OfUnitsRunLikeOneDevice)
{
    const GraphSnapshot graph = perceptron(OperatorKind::AdamWStep);
    const auto run = [&](std::int32_t devices, const std::string &rows) {
        const auto table = parseTable(rows + "precision all : optimizer=bf16");
        EXPECT_TRUE(table) << describe(table.error());
        const auto completion = completePlan(graph, devices, *table, {.units = UseUnits::WherePossible});
        EXPECT_TRUE(completion && !firstError(*completion));
        EXPECT_EQ(completion->plan.units.count, devices);
        return lower(completion->plan, *clusterNamed("cpu:" + std::to_string(devices)));
    };
    const auto reference = run(1, "");
    ASSERT_TRUE(reference) << describe(reference.error());
    for (const char *sharding : {"zero1 all", "zero2 all", "zero3 all"}) {
        SCOPED_TRACE(sharding);
        const auto plan = run(2, std::string("mesh x=2\nsplit all : batch over x\n") + sharding + "\n");
        ASSERT_TRUE(plan) << describe(plan.error());
        const auto proof = verify(*plan);
        ASSERT_TRUE(proof) << describe(proof.error());
        ASSERT_TRUE(proof->ok()) << proof->failure->reason;
        RunOptions options;
        options.randomWeights = true;
        options.keepGradients = true;
        options.steps = 2;
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const auto report = checkAgainst(*reference, *plan, *outcome, options);
        ASSERT_TRUE(report) << describe(report.error());
        EXPECT_TRUE(report->ok) << report->worstTensor << " " << report->worstError;
    }
}

INSTANTIATE_TEST_SUITE_P(Gallery, InUnits,
    testing::Values(Case{"data-parallel", 2}, Case{"data-parallel:micro-batches=2", 4}, Case{"zero1", 2},
        Case{"zero1:micro-batches=2", 2}, Case{"zero2:micro-batches=2", 2}, Case{"zero3", 4},
        Case{"zero3:micro-batches=2", 2}, Case{"3d:dp=2,tp=2,pp=2,micro-batches=2,zero=3", 8},
        Case{"3d:dp=2,tp=2,pp=1", 4}, Case{"3d:dp=2,tp=1,pp=2,micro-batches=2", 4},
        Case{"3d:dp=2,tp=2,pp=2,micro-batches=4", 8}, Case{"3d:dp=2,tp=2,pp=2,micro-batches=2,zero1=1", 8},
        Case{"3d:dp=2,tp=1,pp=2,interleave=2,micro-batches=2,zero1=1", 4}),
    [](const auto &info) {
        std::string name = info.param.gallery + "_" + std::to_string(info.param.devices);
        for (char &c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                c = '_';
        return name;
    });

} // namespace
