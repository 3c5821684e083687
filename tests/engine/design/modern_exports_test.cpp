// The models of ../shared/models-modern, with and without metadata, as plans: what is trained, which layers
// there are, and pipelines of micro-batches on them.

#include "engine/design/make_plan.h"
#include "engine/design/models/opened_model.h"
#include "engine/table/layers.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace planloom {
namespace {

struct ModernCase {
    const char *name;
    bool withMetadata;
    std::int64_t parameters; ///< PyTorch's: as in the set's README, to the last one.
};

// llama's and qwen's files without metadata are told apart by names, positions and shapes alone.
const ModernCase kModern[] = {{"bert_dynamic", false, 59184}, {"bert_fp16", false, 59184},
    {"gemma3_dynamo", false, 55792}, {"gemma3_dynamo", true, 55792}, {"gpt2_dynamo", false, 75072},
    {"gpt2_dynamo", true, 75072}, {"gpt2_dynamo_unoptimized", false, 75072}, {"lstm_dynamo", false, 34496},
    {"llama_bf16", false, 60144}, {"llama_dynamo", false, 60144}, {"llama_dynamo", true, 60144},
    {"llama_dynamo_unoptimized", false, 60144}, {"llama_dynamo_unoptimized", true, 60144},
    {"llama_opset23", false, 60144}, {"qwen3_moe_dynamo", false, 74416}, {"qwen3_moe_dynamo", true, 74416},
    {"vit_dynamo", false, 48634}, {"vit_dynamo", true, 48634}, {"vit_opset23", false, 48634}};

class ModernExports : public testing::TestWithParam<ModernCase>
{
protected:
    void SetUp() override
    {
        if (!std::filesystem::exists(folder()))
            GTEST_SKIP() << "the model set is not at " << folder();
    }
    static std::filesystem::path folder() { return modernModelFolder(); }
    static ModelSource source()
    {
        const auto file = GetParam().withMetadata ? folder() / "with_metadata" : folder();
        ModelSource source{(file / (GetParam().name + std::string(".onnx"))).string(), {}, {}};
        if (std::string_view(GetParam().name) == "bert_dynamic")
            source.options.dimensions = {{"batch", 2}};
        return source;
    }
};

TEST_P(ModernExports, KnowTheirLayersAndParametersAndSolveInMicroBatches)
{
    const auto model = openModel(source(), {}, KeepContent::No);
    ASSERT_TRUE(model) << describe(model.error());
    EXPECT_EQ((*model)->parameters, GetParam().parameters);
    // The two layers of the LSTM are of different widths: no repetition shows them.
    const bool isRecurrent = std::string_view(GetParam().name) == "lstm_dynamo";
    EXPECT_EQ(findLayers(*(*model)->graph).scopes.size(), isRecurrent ? 0U : 2U);
    for (const TensorId id : storedTensors(*(*model)->graph))
        EXPECT_FALSE((*model)->graph->at(id).classification->why.empty());
    for (const auto &[gallery, devices] :
        {std::pair("pipeline:micro-batches=2", 2), std::pair("3d:dp=1,pp=2,tp=2,micro-batches=2", 4)}) {
        SCOPED_TRACE(gallery);
        PlanRequest request;
        request.model = *model;
        request.needsTraining = true;
        request.target.cluster = "cpu";
        request.target.deviceCount = devices;
        request.gallery = gallery;
        request.upTo = PlanGrade::Timed;
        const auto solved = planOf(request);
        ASSERT_TRUE(solved) << describe(solved.error());
        EXPECT_EQ((*solved)->execution->microBatches, 2);
        EXPECT_EQ((*solved)->execution->stageCount, 2);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Set, ModernExports, testing::ValuesIn(kModern), [](const testing::TestParamInfo<ModernCase> &model) {
        return std::string(model.param.name) + (model.param.withMetadata ? "_with_metadata" : "");
    });

} // namespace
} // namespace planloom
