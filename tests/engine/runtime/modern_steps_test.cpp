// Eight AdamW steps of the models in ../shared/models-modern whose metadata say what is trained: the losses
// and parameters that PyTorch has after them (tests/interop/make_modern_steps.py).

#include "engine/design/opened_model.h"
#include "engine/interop/npz.h"
#include "planloom_paths.h"
#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace planloom {
namespace {

const std::filesystem::path kSteps =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/runtime/modern";
constexpr double kRate = 0.01;

class ModernSteps : public testing::TestWithParam<const char *>
{
protected:
    static std::filesystem::path folder()
    {
        if (const char *models = std::getenv("PLANLOOM_MODELS"))
            return std::filesystem::path(models).parent_path() / "models-modern";
        return std::filesystem::path(PLANLOOM_SOURCE_DIR).parent_path() / "shared" / "models-modern";
    }
    void SetUp() override
    {
        if (!std::filesystem::exists(folder()))
            GTEST_SKIP() << "the model set is not at " << folder();
    }
};

std::vector<float> singlesOf(const TensorData &data)
{
    std::vector<float> values(data.bytes.size() / sizeof(float));
    std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
    return values;
}

TEST_P(ModernSteps, AreThoseOfPyTorch)
{
    const std::string name = GetParam();
    ModelSource source{(folder() / "with_metadata" / (name + ".onnx")).string(), {}, {}};
    source.options.learningRate = kRate;
    const auto model = openModel(source, {}, KeepContent::No);
    ASSERT_TRUE(model) << describe(model.error());
    const auto plan = loweredRows((*model)->graph, {}, 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    RunOptions options;
    options.steps = 8;
    options.keepGradients = true;
    auto inputs = readInputs((folder() / (name + ".io.npz")).string());
    ASSERT_TRUE(inputs) << describe(inputs.error());
    options.inputs = *std::move(inputs);
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto arrays = readNpz((kSteps / (name + ".npz")).string());
    ASSERT_TRUE(arrays) << describe(arrays.error());
    const std::vector<float> losses = singlesOf(arrays->at("losses"));
    ASSERT_EQ(outcome->losses.size(), losses.size());
    for (std::size_t step = 0; step < losses.size(); ++step)
        EXPECT_NEAR(outcome->losses[step], losses[step], 2e-4 * losses[step]) << step;
    std::size_t compared = 0;
    for (const auto &[array, data] : *arrays) {
        if (!array.starts_with("after."))
            continue;
        auto found = outcome->weights.find(array.substr(6));
        for (const Tensor &tensor : (*model)->graph->tensors) {
            // One of several equal slices is left of the class token: it goes by its own name.
            if (found == outcome->weights.end() && nameInFiles(tensor) == array.substr(6))
                found = outcome->weights.find(tensor.name);
        }
        ASSERT_NE(found, outcome->weights.end()) << array;
        const std::vector<float> expected = singlesOf(data);
        const std::vector<float> own = singlesOf(found->second);
        const std::size_t stride = (own.size() + 15) / 16; // as the script takes them
        ASSERT_EQ(expected.size(), (own.size() + stride - 1) / stride) << array;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (std::isnan(expected[i]))
                continue; // its gradient is rounding
            EXPECT_NEAR(own[i * stride], expected[i], 0.02 * kRate) << array << " " << i;
            ++compared;
        }
    }
    EXPECT_GT(compared, 300U);
}

INSTANTIATE_TEST_SUITE_P(Set, ModernSteps,
    testing::Values("gemma3_dynamo", "gpt2_dynamo", "llama_dynamo", "llama_dynamo_unoptimized",
        "qwen3_moe_dynamo", "vit_dynamo"));

} // namespace
} // namespace planloom
