// Rows that say what they cut by its meaning (`split all : heads over tp`): bound, lowered, proven and run.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace planloom {
namespace {

Completion completed(const GraphSnapshot &graph, const std::string &row, std::int32_t devices)
{
    const auto table = parseTable("mesh x=" + std::to_string(devices) + "\n" + row + "\n");
    EXPECT_TRUE(table) << describe(table.error());
    auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    return *std::move(completion);
}

/// Forward operators cut over the mesh axis along something other than copies.
std::int64_t cutBy(const Plan &plan)
{
    std::int64_t count = 0;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const auto &splits = plan.decisions[i].partition.splits;
        count += plan.graph->operators[i].direction == Direction::Forward
            && std::any_of(
                splits.begin(), splits.end(), [](const Split &s) { return s.kind == SplitKind::Dimension; });
    }
    return count;
}

struct RowCase {
    const char *model;
    const char *row;
    std::int32_t devices;
    bool runs; ///< Small enough to be run and compared.
};

class MeaningRows : public testing::TestWithParam<RowCase>
{
};

TEST_P(MeaningRows, GiveAPlanThatIsTheModel)
{
    const RowCase &test = GetParam();
    const GraphSnapshot graph = trainingStepOf(test.model);
    if (!graph)
        GTEST_SKIP() << "the model set is not at " << kModelFiles;
    const Completion completion = completed(graph, test.row, test.devices);
    ASSERT_FALSE(firstError(completion)) << describe(*firstError(completion));
    EXPECT_GT(cutBy(completion.plan), 0);
    const auto cluster = clusterNamed("cpu:" + std::to_string(test.devices));
    ASSERT_TRUE(cluster);
    const auto lowered = lower(completion.plan, *cluster);
    ASSERT_TRUE(lowered) << describe(lowered.error());
    const auto report = verify(*lowered);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    if (!test.runs)
        return;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    const auto outcome = runOnCpu(*lowered, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const auto reference = lower(completePlan(graph, 1, ConstraintTable{})->plan, *clusterNamed("cpu:1"));
    ASSERT_TRUE(reference);
    const auto check = checkAgainst(*reference, *lowered, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

constexpr const char *kGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24";
constexpr const char *kLlama = "zoo:llama?layers=1&hidden=16&heads=4&seq=4&batch=2&vocab=24";
constexpr const char *kT5 = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=2&vocab=24";
constexpr const char *kMoe = "zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4";

const RowCase kRows[] = {
    {kGpt, "split all : sequence over x", 2, true},
    {kGpt, "split all : sequence over x", 4, true},
    {kGpt, "split all : heads over x", 2, true},
    {kGpt, "split all : heads over x", 4, true},
    {kGpt, "split all : hidden over x", 2, true},
    {kGpt, "split all : feed-forward over x", 4, true},
    {kGpt, "split all : vocabulary over x", 2, true},
    {kGpt, "split all : batch over x", 2, true},
    {kGpt, "split all : heads into 1,3 over x", 2, true},
    {kGpt, "coshard all : heads by 2", 1, true},
    {kLlama, "split all : sequence over x", 2, true},
    {kLlama, "split all : heads over x", 4, true},
    {kT5, "split all : sequence over x", 2, true},
    {kT5, "split all : heads over x", 2, true},
    {kMoe, "split all : expert over x", 4, true},
    {"zoo:evoformer?layers=1", "split all : sequence over x", 2, false},
    {"zoo:swin", "split all : heads over x", 2, false},
    {"zoo:resnet?batch=4", "split all : channels over x", 2, false},
    {"gpt2_tiny", "split all : sequence over x", 2, true},
    {"gpt2_tiny", "split all : heads over x", 4, true},
    {"bert_tiny", "split all : sequence over x", 4, true},
    {"bert_tiny", "split all : heads over x", 2, true},
    {"bert_tiny_opset17", "split all : sequence over x", 2, true},
    {"bert_tiny_opset17", "split all : heads over x", 4, true},
    {"t5_tiny", "split all : sequence over x", 4, true},
    {"t5_tiny", "split all : heads over x", 2, true},
    {"swin_tiny", "split all : sequence over x", 2, true},
    {"swin_tiny", "split all : heads over x", 2, true},
    {"swin_tiny", "split all : height over x", 2, true},
    {"evoformer_tiny", "split all : heads over x", 2, true},
    {"resnet50_tiny", "split all : channels over x", 2, true},
    {"gpt3_1p3b_full", "split all : sequence over x", 4, false},
    {"gpt3_1p3b_full", "split all : heads over x", 4, false},
    {"bert_large_full", "split all : sequence over x", 4, false},
    {"t5_large_full", "split all : heads over x", 4, false},
    {"swin_large_full", "split all : heads over x", 2, false},
};

INSTANTIATE_TEST_SUITE_P(Rows, MeaningRows, testing::ValuesIn(kRows), [](const auto &info) {
    std::string name;
    for (const char c :
        std::string(info.param.model) + "_" + info.param.row + "_" + std::to_string(info.param.devices))
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
});

std::string refusalOf(const std::string &model, const std::string &row, std::int32_t devices)
{
    const GraphSnapshot graph = trainingStepOf(model);
    const auto error = firstError(completed(graph, row, devices));
    return error ? error->message + " | " + error->advice : "";
}

TEST(MeaningRowsRefused, WhereTheShapeDoesNotDivideWithTheReason)
{
    EXPECT_EQ(refusalOf(kGpt, "split all : heads over x", 3),
        "operator 'h.0.attn.c_attn' has a dimension of 4 (heads), which cannot be cut into 3 equal parts | "
        "use a number of parts that divides it");
    // 16 would divide into 8, but a head would be cut in two.
    EXPECT_EQ(refusalOf(kGpt, "split all : heads over x", 8),
        "operator 'h.0.attn.query.heads' has a dimension of 4 (heads), which cannot be cut into 8 equal "
        "parts | "
        "use a number of parts that divides it");
    EXPECT_EQ(refusalOf(kGpt, "split all : heads into 2,3 over x", 2),
        "operator 'h.0.attn.c_attn' has a dimension of 4 (heads), which cannot be cut into parts of 5 in all "
        "| "
        "use a number of parts that divides it");
}

TEST(MeaningRowsRefused, WhereNothingSelectedHasIt)
{
    EXPECT_EQ(refusalOf(kGpt, "split all : height over x", 2),
        "nothing selected has a dimension that is height | there is batch (2), sequence (8), heads (4), "
        "head-size (4), hidden (16), feed-forward (64), projection (3), vocabulary (24), positions (8)");
    EXPECT_EQ(refusalOf(kGpt, "split kind:LayerNorm : hidden over x", 2),
        "what is selected needs hidden whole | there is batch (2), sequence (8)");
}

TEST(MeaningRowsInAttentions, CutTheQueryAndTheHeads)
{
    const GraphSnapshot graph = trainingStepOf(kGpt);
    const auto partOf = [&](const std::string &row) {
        const Completion completion = completed(graph, row, 2);
        EXPECT_FALSE(firstError(completion)) << describe(*firstError(completion));
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            if (graph->operators[i].name == "h.0.attn.attention")
                return toString(graph->operators[i].annotation, completion.plan.decisions[i].partition);
        }
        return std::string("none");
    };
    EXPECT_EQ(partOf("split all : sequence over x"), "s:2");
    EXPECT_EQ(partOf("split name:h.0.attn.attention : s over x"), "s:2");
    EXPECT_EQ(partOf("split kind:Attention : heads over x"), "h:2");
}

} // namespace
} // namespace planloom
