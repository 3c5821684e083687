// Models as PyTorch saved them (tests/interop/make_pt2_files.py): eight steps of AdamW have its losses, and
// models whose values are floats of 16 bits run, alone and in parts, with its gradients.

#include "engine/design/make_plan.h"
#include "engine/interop/npz.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/verify/verify.h"
#include "planloom_paths.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace planloom {
namespace {

const std::filesystem::path kSaved = std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/frontend/pt2";

/// The program `name`, trained with a rate of 0.01; sizes of the arrays beside it where it leaves them open.
Result<ModelSnapshot> openSaved(const std::string &name)
{
    TRY(const auto arrays, readInputs((kSaved / (name + ".npz")).string()));
    ModelSource source{(kSaved / (name + ".pt2")).string(), {}, {}};
    source.options.learningRate = 0.01;
    TRY(const auto dimensions, openDimensions(source));
    for (const InputDimension &each : dimensions) {
        const std::string &place = each.places.front(); // "tokens.0": all of them are batches
        source.options.dimensions[each.name] =
            arrays.at(place.substr(0, place.rfind('.'))).type.shape.front();
    }
    return openModel(source, {}, KeepContent::No);
}

RunOptions optionsFor(const std::string &name, std::int32_t steps)
{
    RunOptions options;
    options.keepGradients = true;
    options.steps = steps;
    auto arrays = readInputs((kSaved / (name + ".npz")).string());
    EXPECT_TRUE(arrays) << describe(arrays.error());
    options.inputs = *std::move(arrays);
    return options;
}

std::vector<float> floatsOf(const TensorData &data)
{
    std::vector<float> values(data.bytes.size() / sizeof(float));
    std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
    return values;
}

TEST(SavedModels, TrainEightStepsLikePyTorch)
{
    for (const auto &[name, tolerance] : {std::pair("transformer", 2e-5), std::pair("convolutions", 1e-4),
             std::pair("writes", 1e-5), std::pair("transformer_bf16", 0.02)}) {
        SCOPED_TRACE(name);
        const auto model = openSaved(name);
        ASSERT_TRUE(model) << describe(model.error());
        const auto plan = loweredRows((*model)->graph, {}, 1);
        ASSERT_TRUE(plan) << describe(plan.error());
        const auto outcome = runOnCpu(*plan, optionsFor(name, 8));
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const auto arrays = readNpz((kSaved / (name + std::string(".npz"))).string());
        ASSERT_TRUE(arrays);
        const std::vector<float> expected = floatsOf(arrays->at("losses"));
        ASSERT_EQ(outcome->losses.size(), expected.size());
        for (std::size_t step = 0; step < expected.size(); ++step)
            EXPECT_NEAR(outcome->losses[step], expected[step], tolerance * expected[step]) << step;
    }
}

class HalfModels : public testing::TestWithParam<const char *>
{
};

TEST_P(HalfModels, HavePyTorchsGradientsAndTrain)
{
    const std::string name = GetParam();
    const auto model = openSaved(name);
    ASSERT_TRUE(model) << describe(model.error());
    const auto plan = loweredRows((*model)->graph, {}, 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto outcome = runOnCpu(*plan, optionsFor(name, 1));
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto arrays = readNpz((kSaved / (name + ".npz")).string());
    ASSERT_TRUE(arrays);
    EXPECT_NEAR(outcome->losses.front(), floatsOf(arrays->at("loss")).front(), 0.05);
    double distance = 0;
    double size = 0;
    for (const auto &[weight, gradient] : outcome->gradients) {
        ASSERT_EQ(sizeOf(gradient.type.dataType), 2) << weight;
        const auto found = arrays->find("grad." + weight);
        ASSERT_NE(found, arrays->end()) << weight;
        const std::vector<float> expected = floatsOf(found->second);
        std::vector<float> made(expected.size());
        ASSERT_TRUE(convertFloats(gradient.bytes.data(), gradient.type.dataType,
            reinterpret_cast<std::byte *>(made.data()), DataType::Float32, made.size()));
        for (std::size_t i = 0; i < made.size(); ++i) {
            distance += std::pow(made[i] - expected[i], 2);
            size += std::pow(expected[i], 2);
        }
    }
    EXPECT_LT(std::sqrt(distance / size), name == "transformer_bf16" ? 0.03 : 0.004);
    // PyTorch's states of 16 bits end float16 in NaN at the second step.
    const auto longer = runOnCpu(*plan, optionsFor(name, 8));
    ASSERT_TRUE(longer) << describe(longer.error());
    EXPECT_LT(longer->losses.back(), longer->losses.front() / 2);
}

TEST_P(HalfModels, InPartsAreLikeTheModel)
{
    const std::string name = GetParam();
    const auto model = openSaved(name);
    ASSERT_TRUE(model) << describe(model.error());
    const GraphSnapshot &graph = (*model)->graph;
    for (const auto &[rows, devices] : {std::pair("mesh x=3\nsplit all : batch over x", 3),
             std::pair("mesh x=2\nsplit all : heads over x\nsplit all : feed-forward over x", 2),
             std::pair("recompute layer:* per layer", 1),
             std::pair("mesh x=3\nsplit all : batch over x\nzero1 all over x", 3)}) {
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, rows, devices);
        ASSERT_TRUE(plan) << describe(plan.error());
        const auto report = verify(*plan);
        ASSERT_TRUE(report) << describe(report.error());
        ASSERT_TRUE(report->ok()) << report->failure->reason;
        const RunOptions options = optionsFor(name, 2);
        const auto outcome = runOnCpu(*plan, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        const auto reference = loweredRows(graph, {}, 1);
        ASSERT_TRUE(reference) << describe(reference.error());
        const auto check = checkAgainst(*reference, *plan, *outcome, options);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    }
}

INSTANTIATE_TEST_SUITE_P(Saved, HalfModels, testing::Values("transformer_bf16", "transformer_fp16"),
    [](const auto &info) { return std::string(info.param); });

/// What PyTorch's exporter writes of models of 16 bits, in ../shared/models-modern.
TEST(HalfModelsOfTheSet, RunAndTrain)
{
    const auto folder = modernModelFolder();
    if (!std::filesystem::exists(folder))
        GTEST_SKIP() << "the model set is not at " << folder;
    for (const char *name : {"llama_bf16", "bert_fp16"}) {
        SCOPED_TRACE(name);
        PlanRequest request;
        const auto model = openModel({(folder / (name + std::string(".onnx"))).string(), {}, {}});
        ASSERT_TRUE(model) << describe(model.error());
        request.model = *model;
        request.needsTraining = true;
        request.gallery = "tensor-parallel";
        request.target = {"cpu:2", {}, 2};
        request.upTo = PlanGrade::Lowered;
        const auto plan = planOf(request);
        ASSERT_TRUE(plan) << describe(plan.error());
        RunOptions options;
        options.steps = 6;
        const auto outcome = runOnCpu(*(*plan)->execution, options);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        ASSERT_EQ(outcome->losses.size(), 6U);
        EXPECT_GT(outcome->losses.front(), 4); // of 192 or so classes, drawn at random
        EXPECT_LT(outcome->losses.front(), 7);
        EXPECT_LT(outcome->losses.back(), outcome->losses.front() - 0.02);
    }
}

} // namespace
} // namespace planloom
