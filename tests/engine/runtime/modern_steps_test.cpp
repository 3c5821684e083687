// Eight AdamW steps of the models in ../shared/models-modern whose metadata say what is trained: the losses
// and parameters that PyTorch has after them (tests/interop/make_modern_steps.py).

#include "engine/design/models/opened_model.h"
#include "engine/interop/npz.h"
#include "planloom_paths.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace planloom {
namespace {

const std::filesystem::path kSteps =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/runtime/modern";
constexpr double kRate = 0.01;

struct ModernFile {
    const char *name;
    bool withMetadata = false;
};

class ModernTraining : public testing::TestWithParam<ModernFile>
{
protected:
    void SetUp() override
    {
        if (!std::filesystem::exists(modernModelFolder()))
            GTEST_SKIP() << "the model set is not at " << modernModelFolder();
    }
    static ModelSource source()
    {
        const std::string name = GetParam().name;
        const auto folder =
            GetParam().withMetadata ? modernModelFolder() / "with_metadata" : modernModelFolder();
        ModelSource source{(folder / (name + ".onnx")).string(), {}, {}};
        source.options.learningRate = kRate;
        if (name == "bert_dynamic")
            source.options.dimensions = {{"batch", 2}};
        return source;
    }
    static RunOptions optionsFor(std::int32_t steps)
    {
        RunOptions options;
        options.steps = steps;
        options.keepGradients = true;
        auto inputs = readInputs((modernModelFolder() / (GetParam().name + std::string(".io.npz"))).string());
        EXPECT_TRUE(inputs) << describe(inputs.error());
        options.inputs = *std::move(inputs);
        return options;
    }
};
std::vector<float> singlesOf(const TensorData &data)
{
    std::vector<float> values(data.bytes.size() / sizeof(float));
    std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
    return values;
}

double largestOf(const std::vector<float> &values)
{
    double largest = 0;
    for (const float value : values)
        largest = std::max(largest, std::abs(static_cast<double>(value)));
    return largest;
}

TEST_P(ModernTraining, HasPyTorchsGradients)
{
    const std::string name = GetParam().name;
    const auto model = openModel(source(), {}, KeepContent::No);
    ASSERT_TRUE(model) << describe(model.error());
    const auto plan = loweredRows((*model)->graph, {}, 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto outcome = runOnCpu(*plan, optionsFor(1));
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto arrays = readNpz((modernModelFolder() / (name + ".grads.npz")).string());
    ASSERT_TRUE(arrays) << describe(arrays.error());
    double least = 0; // biases of keys have no gradient but rounding
    for (const auto &[array, data] : *arrays)
        least = std::max(least, 1e-3 * largestOf(singlesOf(data)));
    for (const auto &[array, data] : *arrays) {
        const auto found = outcome->gradients.find(array.substr(5)); // "grad."
        ASSERT_NE(found, outcome->gradients.end()) << array;
        const std::vector<float> expected = singlesOf(data);
        const std::vector<float> own = singlesOf(found->second);
        ASSERT_EQ(own.size(), expected.size()) << array;
        const double allowed = 1e-4 * std::max(largestOf(expected), least);
        for (std::size_t i = 0; i < own.size(); ++i)
            ASSERT_NEAR(own[i], expected[i], allowed) << array << " " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Set, ModernTraining,
    testing::Values(ModernFile{"bert_dynamic"}, ModernFile{"gemma3_dynamo"},
        ModernFile{"gemma3_dynamo", true}, ModernFile{"gpt2_dynamo"}, ModernFile{"gpt2_dynamo", true},
        ModernFile{"gpt2_dynamo_unoptimized"}, ModernFile{"llama_dynamo"}, ModernFile{"llama_dynamo", true},
        ModernFile{"llama_dynamo_unoptimized"}, ModernFile{"llama_dynamo_unoptimized", true},
        ModernFile{"llama_opset23"}, ModernFile{"lstm_dynamo"}, ModernFile{"qwen3_moe_dynamo"},
        ModernFile{"qwen3_moe_dynamo", true}, ModernFile{"vit_dynamo"}, ModernFile{"vit_dynamo", true},
        ModernFile{"vit_opset23"}));

class ModernSteps : public ModernTraining
{
};

TEST_P(ModernSteps, AreThoseOfPyTorch)
{
    const std::string name = GetParam().name;
    const auto model = openModel(source(), {}, KeepContent::No);
    ASSERT_TRUE(model) << describe(model.error());
    const auto plan = loweredRows((*model)->graph, {}, 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto outcome = runOnCpu(*plan, optionsFor(8));
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
    testing::Values(ModernFile{"gemma3_dynamo", true}, ModernFile{"gpt2_dynamo", true},
        ModernFile{"llama_dynamo", true}, ModernFile{"llama_dynamo_unoptimized", true},
        ModernFile{"qwen3_moe_dynamo", true}, ModernFile{"vit_dynamo", true}));

} // namespace
} // namespace planloom
