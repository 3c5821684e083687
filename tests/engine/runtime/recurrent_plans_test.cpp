// Recurrent models under data, tensor and pipeline plans: what they compute is what the model computes.

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/runtime/devices/box_copy.h"
#include "tests/engine/frontend/recurrent_models.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

namespace planloom {
namespace {

struct RecurrentPlan {
    const char *gallery;
    std::int32_t devices;
};

class RecurrentPlans : public testing::TestWithParam<RecurrentPlan>
{
};

/// A language model of two LSTM layers as PyTorch exports it. Tensor parallelism cuts the columns of what
/// weights make of the input, whose pieces are gathered for the recurrence.
TEST_P(RecurrentPlans, OfALanguageModelComputeWhatItComputes)
{
    const GraphSnapshot graph = trainingStepOf("../models-modern/lstm_dynamo");
    if (!graph)
        GTEST_SKIP() << "the model set is not beside this checkout";
    expectLikeTheModel(graph, galleryPlan(graph, GetParam().gallery, GetParam().devices));
}

INSTANTIATE_TEST_SUITE_P(Gallery, RecurrentPlans,
    testing::Values(RecurrentPlan{"data-parallel", 2}, RecurrentPlan{"tensor-parallel", 2},
        RecurrentPlan{"tensor-parallel", 4}, RecurrentPlan{"pipeline:micro-batches=2", 2},
        RecurrentPlan{"3d:dp=2,tp=2", 4}, RecurrentPlan{"zero3", 2}),
    [](const auto &one) {
        std::string name = one.param.gallery + ("_on_" + std::to_string(one.param.devices));
        std::replace_if(
            name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
            '_');
        return name;
    });

/// Unrolled, tensor parallelism cuts their hidden dimension, too.
TEST(UnrolledRecurrences, AreCutByTensorParallelism)
{
    for (const auto &form : testing_support::recurrentForms()) {
        SCOPED_TRACE(form.name);
        auto step =
            buildTrainingStep(testing_support::unrolledModel(testing_support::recurrentModel(form, 3)),
                {.optimizer = OperatorKind::SgdStep});
        ASSERT_TRUE(step) << describe(step.error());
        const auto graph = std::make_shared<const Graph>(*std::move(step));
        const ExecutionPlan plan = galleryPlan(graph, "tensor-parallel", 2);
        for (const BufferInfo &buffer : plan.devices[1].buffers) {
            if (graph->at(buffer.tensor).name == "r" && buffer.persistent) {
                EXPECT_EQ(2 * elementCount(buffer.index), elementCount(graph->at(buffer.tensor).type.shape));
            }
        }
        expectLikeTheModel(graph, plan);
    }
}

/// x [time batch width] through a recurrence in both directions.
GraphSnapshot bothDirections(OperatorKind kind, std::int64_t gates)
{
    constexpr std::int64_t kHidden = 6;
    GraphBuilder builder{"both"};
    const TensorId x = builder.input("x", {DataType::Float32, {5, 4, 3}});
    const TensorId w = builder.weight("w", {2, gates * kHidden, 3});
    const TensorId r = builder.weight("r", {2, gates * kHidden, kHidden});
    const TensorId bias = builder.weight("b", {2, 2 * gates * kHidden});
    const auto made = builder.add(kind, {x, w, r, bias},
        attributesOf({{"direction", std::string("bidirectional")}, {"hidden_size", kHidden}}), "recurrence");
    const TensorId squares = builder.one(OperatorKind::Mul, {made[0], made[0]}, {}, "squares");
    const TensorId loss = builder.one(
        OperatorKind::ReduceSum, {squares}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

TEST(RecurrentRows, SplitDirectionsAndBatch)
{
    for (const auto &[kind, gates] :
        {std::pair(OperatorKind::Lstm, 4), {OperatorKind::Gru, 3}, {OperatorKind::Rnn, 1}}) {
        const GraphSnapshot graph = bothDirections(kind, gates);
        for (const char *rows : {"split name:recurrence : d by 2", "split name:recurrence : b by 2",
                 "split name:recurrence : d by 2 then b by 2"}) {
            SCOPED_TRACE(std::string(nameOf(kind)) + " " + rows);
            const auto plan = loweredRows(graph, rows, 4);
            ASSERT_TRUE(plan) << describe(plan.error());
            expectLikeTheModel(graph, *plan);
        }
    }
}

/// Step by step, the hidden dimension is cut: weights, gates and states. The state is put together for each
/// step.
TEST(RecurrentRows, SplitTheHiddenDimensionOfUnrolledOnes)
{
    for (const auto &form : testing_support::recurrentForms()) {
        auto step =
            buildTrainingStep(testing_support::unrolledModel(testing_support::recurrentModel(form, 3)),
                {.optimizer = OperatorKind::SgdStep});
        ASSERT_TRUE(step) << describe(step.error());
        const auto graph = std::make_shared<const Graph>(*std::move(step));
        for (const auto &[mesh, parts] : {std::pair("mesh tp=2\n", 2), {"mesh tp=4\n", 4},
                 {"mesh dp=2 tp=2\nsplit all : batch over dp\n", 2}}) {
            SCOPED_TRACE(std::string(form.name) + "\n" + mesh);
            const std::string rows = std::string(mesh) + "split all : hidden over tp\n";
            const auto plan = loweredRows(graph, rows, rows.starts_with("mesh tp=2") ? 2 : 4);
            ASSERT_TRUE(plan) << describe(plan.error());
            // No device has a whole recurrent weight.
            for (const DeviceProgram &device : plan->devices) {
                for (const BufferInfo &buffer : device.buffers) {
                    if (graph->at(buffer.tensor).name == "r" && buffer.persistent) {
                        EXPECT_EQ(elementCount(buffer.index) * parts,
                            elementCount(graph->at(buffer.tensor).type.shape));
                    }
                }
            }
            expectLikeTheModel(graph, *plan);
        }
    }
}

} // namespace
} // namespace planloom
