// The models of ../shared/models, where they are there: structure for all of them, values for those with
// references.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/training/autodiff.h"
#include "tests/engine/frontend/npz_for_tests.h"
#include "tests/engine/frontend/run_graph.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::readNpz;

const std::filesystem::path kFolder = modelFolder();

struct ModelCase {
    const char *name;
    double parameters; ///< As the set's README has them, in its precision.
    double precision;
    std::size_t weights; ///< Number of trained tensors; 0 where the README does not say.
    bool hasLoss;
    bool hasValues;
    double gradientTolerance; ///< 0 where there are no gradients.
};

// resnet50_tiny_eval has fewer parameters than the README says: its batch norms were folded into
// convolutions. The count of light_resnet50 includes running statistics, which are not trained.
const ModelCase kModels[] = {{"bert_large_full", 335.17e6, 0.01e6, 394, true, false, 0},
    {"bert_tiny", 83.3e3, 0.1e3, 42, true, true, 1e-3},
    {"bert_tiny_opset17", 83.3e3, 0.1e3, 42, true, true, 1e-3},
    {"evoformer_48_full", 87.94e6, 0.01e6, 4466, true, false, 0},
    {"evoformer_tiny", 31.2e3, 0.1e3, 188, true, true, 1e-3},
    {"gpt2_small_full", 124.44e6, 0.01e6, 148, true, false, 0},
    {"gpt2_small_full_inputs", 124.44e6, 0.01e6, 148, true, false, 0},
    {"gpt2_tiny", 112.4e3, 0.1e3, 28, true, true, 1e-4},
    {"gpt2_xl_full", 1.56e9, 0.01e9, 580, true, false, 0},
    {"gpt3_175b_full", 174.60e9, 0.01e9, 1156, true, false, 0},
    {"gpt3_1p3b_full", 1.32e9, 0.01e9, 292, true, false, 0},
    {"light_resnet50", 25.557e6, 0.001e6, 161, false, false, 0},
    {"resnet50_full", 25.56e6, 0.01e6, 161, true, false, 0},
    {"resnet50_tiny", 23.0e3, 0.1e3, 161, true, true, 1e-2},
    {"resnet50_tiny_eval", 22.1e3, 0.1e3, 108, false, true, 0},
    {"swin_1b_full", 1.07e9, 0.01e9, 329, true, false, 0},
    {"swin_large_full", 196.74e6, 0.01e6, 329, true, false, 0},
    {"swin_tiny", 35.4e3, 0.1e3, 63, true, true, 1e-4}, {"t5_3b_full", 2.85e9, 0.01e9, 0, true, false, 0},
    {"t5_large_full", 737.67e6, 0.01e6, 0, true, false, 0}, {"t5_tiny", 98.6e3, 0.1e3, 47, true, true, 1e-4}};

class Models : public testing::TestWithParam<ModelCase>
{
protected:
    void SetUp() override
    {
        if (!std::filesystem::exists(kFolder))
            GTEST_SKIP() << "the model set is not at " << kFolder;
    }
    std::filesystem::path file(const std::string &ending) const
    {
        return kFolder / (GetParam().name + ending);
    }
};

TEST_P(Models, ImportsWithEveryTypeStaticAndEveryOperatorAnnotatedOrListed)
{
    const ModelCase &model = GetParam();
    for (const bool fuse : {false, true}) {
        SCOPED_TRACE(fuse ? "fused" : "as exported");
        ImportOptions options;
        options.fuse = fuse;
        const auto graph = importOnnxFile(file(".onnx"), options);
        ASSERT_TRUE(graph) << describe(graph.error());
        const auto valid = validate(*graph);
        EXPECT_TRUE(valid) << describe(valid.error());
        EXPECT_EQ(graph->name, model.name);
        EXPECT_EQ(graph->loss.valid(), model.hasLoss);

        double parameters = 0;
        std::size_t weights = 0;
        for (const Tensor &tensor : graph->tensors) {
            for (const std::int64_t extent : tensor.type.shape)
                ASSERT_GE(extent, 1) << tensor.name;
            if (tensor.role == TensorRole::Weight) {
                parameters += static_cast<double>(elementCount(tensor.type.shape));
                ++weights;
            }
        }
        EXPECT_NEAR(parameters, model.parameters, model.precision);
        if (model.weights > 0) {
            EXPECT_EQ(weights, model.weights);
        }
        for (const Operator &op : graph->operators) {
            EXPECT_NE(op.kind, OperatorKind::Unknown) << op.name;
            EXPECT_EQ(op.annotation.inputs.size(), op.inputs.size()) << op.name;
            EXPECT_FALSE(op.sources.empty()) << op.name;
        }
    }
}

/// max |x - reference| over the elements, and max |reference|.
std::pair<double, double> distance(const std::vector<double> &values, const TensorData &reference)
{
    double most = 0;
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        float expected = 0;
        std::memcpy(&expected, reference.bytes.data() + i * sizeof(float), sizeof(float));
        const double difference = std::abs(values[i] - static_cast<double>(expected));
        most = std::isnan(difference) ? INFINITY : std::max(most, difference);
        largest = std::max(largest, std::abs(static_cast<double>(expected)));
    }
    return {most, largest};
}

/// Runs a model on the inputs of its references and compares outputs and gradients with them.
/// @param onlyThese  all that is trained has a reference
void expectPyTorchsValues(const std::filesystem::path &folder, const std::string &name, bool fuse,
    double gradientTolerance, bool onlyThese, const std::map<std::string, std::int64_t> &dimensions = {})
{
    SCOPED_TRACE(fuse ? "fused" : "as exported");
    ImportOptions options;
    options.dimensions = dimensions;
    options.fuse = fuse;
    auto graph = importOnnxFile(folder / (name + ".onnx"), options);
    ASSERT_TRUE(graph) << describe(graph.error());
    const std::vector<TensorId> outputs = graph->outputs;
    if (gradientTolerance > 0) {
        const auto done = appendBackward(*graph);
        ASSERT_TRUE(done) << describe(done.error());
    }
    GraphRunner runner(*graph);
    const auto values = readNpz(folder / (name + ".io.npz"));
    for (const TensorId input : graph->inputs) {
        const Tensor &tensor = graph->at(input);
        const TensorData &given = values.at("in." + tensor.name);
        ASSERT_EQ(given.type, tensor.type) << tensor.name;
        for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i) {
            double value = 0;
            if (tensor.type.dataType == DataType::Int64) {
                std::int64_t whole = 0;
                std::memcpy(
                    &whole, given.bytes.data() + static_cast<std::size_t>(i) * sizeof whole, sizeof whole);
                value = static_cast<double>(whole);
            } else {
                float real = 0;
                std::memcpy(
                    &real, given.bytes.data() + static_cast<std::size_t>(i) * sizeof real, sizeof real);
                value = real;
            }
            runner.set(input, i, value);
        }
    }
    ASSERT_TRUE(runner.run());
    for (const TensorId output : outputs) {
        const TensorData &reference = values.at("out." + graph->at(output).name);
        ASSERT_EQ(reference.type, graph->at(output).type) << graph->at(output).name;
        const auto [most, largest] = distance(runner.all(output), reference);
        EXPECT_LE(most, (output == graph->loss ? 1e-5 : 1e-4) * largest) << graph->at(output).name;
    }
    if (gradientTolerance == 0)
        return;
    const auto gradients = readNpz(folder / (name + ".grads.npz"));
    std::map<std::string, TensorId> made;
    for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
        const Tensor &tensor = graph->tensors[i];
        if (tensor.role == TensorRole::Gradient && graph->at(tensor.of).role == TensorRole::Weight)
            made.emplace("grad." + graph->at(tensor.of).name, TensorId{static_cast<std::int32_t>(i)});
    }
    double largestOfAll = 0;
    for (const auto &[weight, reference] : gradients) {
        const std::vector<double> zeros(static_cast<std::size_t>(elementCount(reference.type.shape)), 0.0);
        largestOfAll = std::max(largestOfAll, distance(zeros, reference).second);
    }
    if (onlyThese) {
        EXPECT_EQ(made.size(), gradients.size());
    }
    for (const auto &[weight, reference] : gradients) {
        ASSERT_EQ(made.count(weight), 1U) << weight;
        const auto [most, largest] = distance(runner.all(made.at(weight)), reference);
        EXPECT_LE(most, gradientTolerance * std::max(largest, 1e-3 * largestOfAll)) << weight;
    }
}

TEST_P(Models, ComputesPyTorchsValuesAndGradients)
{
    const ModelCase &model = GetParam();
    if (!model.hasValues)
        GTEST_SKIP() << "no reference values";
    for (const bool fuse : {false, true})
        expectPyTorchsValues(kFolder, model.name, fuse, model.gradientTolerance, true);
}

INSTANTIATE_TEST_SUITE_P(Set, Models, testing::ValuesIn(kModels),
    [](const testing::TestParamInfo<ModelCase> &model) { return std::string(model.param.name); });

/// How many attentions an exported model has.
struct AttentionCase {
    const char *folder;
    const char *name;
    std::int64_t attentions;
    double gradientTolerance = 0; ///< 0 where models_test compares values elsewhere, or there are none.
};

const AttentionCase kAttentions[] = {{"models", "bert_large_full", 24}, {"models", "bert_tiny", 2},
    {"models", "bert_tiny_opset17", 2}, {"models", "evoformer_48_full", 192}, {"models", "evoformer_tiny", 8},
    {"models", "gpt2_small_full", 12}, {"models", "gpt2_small_full_inputs", 12}, {"models", "gpt2_tiny", 2},
    {"models", "gpt2_xl_full", 48}, {"models", "gpt3_175b_full", 96}, {"models", "gpt3_1p3b_full", 24},
    {"models", "swin_1b_full", 24}, {"models", "swin_large_full", 24}, {"models", "swin_tiny", 4},
    {"models", "t5_3b_full", 72}, {"models", "t5_large_full", 72}, {"models", "t5_tiny", 6},
    {"models-modern", "bert_dynamic", 2, 1e-4}, {"models-modern", "bert_fp16", 2},
    {"models-modern", "gemma3_dynamo", 2, 1e-4}, {"models-modern", "gpt2_dynamo", 2, 1e-4},
    {"models-modern", "llama_bf16", 2}, {"models-modern", "llama_dynamo", 2, 1e-4},
    {"models-modern", "llama_dynamo_unoptimized", 2, 1e-4}, {"models-modern", "qwen3_moe_dynamo", 2, 1e-4},
    {"models-modern", "vit_dynamo", 2, 1e-3}, {"models-modern", "vit_opset23", 2, 1e-3}};

class Attentions : public testing::TestWithParam<AttentionCase>
{
protected:
    std::filesystem::path folder() const { return kFolder / ".." / GetParam().folder; }
    std::map<std::string, std::int64_t> dimensions() const
    {
        using Sizes = std::map<std::string, std::int64_t>;
        return std::string_view(GetParam().name) == "bert_dynamic" ? Sizes{{"batch", 2}} : Sizes{};
    }
    void SetUp() override
    {
        if (!std::filesystem::exists(folder()))
            GTEST_SKIP() << "the model set is not at " << folder();
    }
};

TEST_P(Attentions, AreAllFusedAndHaveNoSoftmaxLeftBesideARouters)
{
    ImportOptions options;
    options.dimensions = dimensions();
    const auto graph = importOnnxFile(folder() / (GetParam().name + std::string(".onnx")), options);
    ASSERT_TRUE(graph) << describe(graph.error());
    std::int64_t attentions = 0;
    for (const Operator &op : graph->operators) {
        attentions += op.kind == OperatorKind::Attention ? 1 : 0;
        EXPECT_EQ(op.annotationProblem, "") << op.name;
        if (op.kind == OperatorKind::Softmax) {
            EXPECT_EQ(graph->at(op.inputs[0]).type.shape.size(), 2U) << op.name;
        }
    }
    EXPECT_EQ(attentions, GetParam().attentions);
}

TEST_P(Attentions, ComputePyTorchsValuesAndGradients)
{
    const AttentionCase &model = GetParam();
    if (model.gradientTolerance == 0)
        GTEST_SKIP() << "compared elsewhere, or no reference values";
    expectPyTorchsValues(folder(), model.name, true, model.gradientTolerance, false, dimensions());
}

INSTANTIATE_TEST_SUITE_P(Set, Attentions, testing::ValuesIn(kAttentions),
    [](const testing::TestParamInfo<AttentionCase> &model) { return std::string(model.param.name); });

} // namespace
} // namespace planloom
