#include "engine/design/make_plan.h"
#include "engine/measured/measured_file.h"
#include "engine/measured/predicted_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace planloom {
namespace {

constexpr const char *kRuns = R"({"source": "Megatron-LM", "cluster": "8 H100",
    "fixed": {"sequence": 64, "vocabulary": 256, "precision": "bf16"},
    "models": {"small": {"layers": 4, "hidden": 64, "heads": 4, "ffn": 128}},
    "columns": ["model", "devices", "tensor_parallel", "pipeline_parallel", "micro_batch", "global_batch",
                "step_seconds", "peak_allocated_gib_of_ranks"],
    "rows": [["small", 4, 2, 1, 1, 8, 0.5, [1.5, 2]],
             ["small", 4, 1, 2, 1, 8, 0.25, null],
             ["small", 4, 3, 1, 1, 8, 0.25, null],
             ["unheard-of", 4, 1, 1, 1, 8, 0.25, null]],
    "failed_columns": ["model", "devices", "global_batch"],
    "failed": [["small", 2, 4]]})";

TEST(MeasuredFile, ARunIsWhatItsColumnsTheModelAndTheFileSay)
{
    const auto file = readMeasured(kRuns, "runs.json");
    ASSERT_TRUE(file) << describe(file.error());
    ASSERT_EQ(file->runs.size(), 5U);
    const MeasuredRun &run = file->runs[0];
    EXPECT_EQ(run.count("tensor_parallel"), 2);
    EXPECT_EQ(run.count("layers"), 4);
    EXPECT_EQ(run.count("sequence"), 64);
    EXPECT_EQ(run.device(), "8 H100");
    EXPECT_EQ(run.framework(), "megatron");
    EXPECT_EQ(run.seconds(), 0.5);
    EXPECT_EQ(run.peakBytesOfRanks(), (std::vector<std::int64_t>{3LL << 29, 2LL << 30}));
    EXPECT_FALSE(run.hasFailed());
    EXPECT_TRUE(file->runs[4].hasFailed());
    EXPECT_FALSE(file->runs[4].seconds());
}

TEST(MeasuredFile, RowsThatCannotBePlannedSayWhyAndTheOthersGoOn)
{
    const auto file = readMeasured(kRuns, "runs.json");
    ASSERT_TRUE(file) << describe(file.error());
    for (const std::size_t row : {0U, 1U, 4U}) {
        const auto predicted = predict(file->runs[row]);
        ASSERT_TRUE(predicted) << row << ": " << describe(predicted.error());
        EXPECT_GT(predicted->seconds, 0);
        EXPECT_EQ(predicted->peaks.size(), static_cast<std::size_t>(file->runs[row].count("devices")));
        EXPECT_TRUE(predicted->fits);
    }
    const auto degrees = predict(file->runs[2]);
    ASSERT_FALSE(degrees);
    EXPECT_EQ(degrees.error().where, "degrees");
    const auto model = predict(file->runs[3]);
    ASSERT_FALSE(model);
    EXPECT_NE(model.error().message.find("unheard-of"), std::string::npos);
}

TEST(MeasuredFile, PlansHaveTheDegreesOfTheRun)
{
    const auto file = readMeasured(R"({"source": "Megatron-LM", "cluster": "H100",
        "models": {"small": {"layers": 4, "hidden": 64, "heads": 4, "ffn": 128, "vocabulary": 256}},
        "rows": [{"model": "small", "devices": 8, "tensor_parallel": 2, "pipeline_parallel": 2,
                  "virtual_pipeline": 2, "micro_batch": 2, "batch": 16, "sequence": 64, "precision": "FP8",
                  "recompute_modules": ["core_attn", "mlp"], "offloaded_layers": 2}]})",
        "runs.json");
    ASSERT_TRUE(file) << describe(file.error());
    const auto request = requestOf(file->runs.front());
    ASSERT_TRUE(request) << describe(request.error());
    EXPECT_EQ(request->gallery,
        "3d:dp=2,tp=2,pp=2,pipeline-outermost=1,zero=1,sequence=1,layout=Et*1|t*1|t*1|t*1L,recompute=core_"
        "attn+mlp,"
        "micro-batches=4");
    EXPECT_EQ(request->table.text(), "precision all : fp8\noffload layer:0-1 : activations\n");
    EXPECT_EQ(request->target.cluster, "dgx-h100:8+megatron");
}

TEST(MeasuredFile, ModelsWithoutSizesArePublishedOnes)
{
    const auto file = readMeasured(R"({"source": "Megatron Bridge", "rows": [
        {"model": "LLaMA3 8B, a note", "system": "DGX-H100", "devices": 8, "batch": 8, "sequence": 512}]
})",
        "recipes.json");
    ASSERT_TRUE(file) << describe(file.error());
    const auto request = requestOf(file->runs.front());
    ASSERT_TRUE(request) << describe(request.error());
    EXPECT_EQ(request->model->index->layers().scopes.size(), 32U);
    EXPECT_TRUE(file->runs.front().reducesInBf16());
}

TEST(MeasuredFile, SettingsBesideItCompleteRunsOfTheSameDegrees)
{
    const auto folder =
        std::filesystem::temp_directory_path() / ("planloom-measured-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "measured");
    const auto write = [](const std::filesystem::path &path, const char *text) {
        std::ofstream(path) << text;
    };
    write(folder / "measured" / "settings.json", R"({"rows": [
        {"recipe": "llama3_70b_64gpu_gb300", "device": "gb300", "devices": 64, "precision": "fp8_cs",
         "tensor_parallel": 2, "offloaded_layers": 1, "global_batch": 9},
        {"recipe": "llama3_70b_64gpu_b300", "device": "b300", "devices": 64, "precision": "fp8_cs",
         "offloaded_layers": 2},
        {"recipe": "llama3_70b_64gpu_gb300", "device": "gb300", "devices": 64, "precision": "fp8_cs",
         "tensor_parallel": 1, "offloaded_layers": 3, "global_batch": 9}]})");
    write(folder / "runs.json", R"({"rows": [{"model": "LLAMA3_70B", "system": "DGX-GB300", "devices": 64,
        "precision": "FP8", "tensor_parallel": 1, "batch": 128}]})");
    const auto file = readMeasuredFile(folder / "runs.json");
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(file) << describe(file.error());
    EXPECT_EQ(file->runs.front().count("offloaded_layers", 0), 3);
    EXPECT_EQ(file->runs.front().count("global_batch"), 128); // what the run says of itself goes before
}

/// One layer of a published mixture, forward beside backward: what is predicted is what the pair adds to a
/// step, which is less than a whole step and more than nothing.
TEST(MeasuredFile, ATraceOfOverlappedPassesIsOneRun)
{
    const std::string trace = R"json({"source": "a trace", "cluster": "4 H800 (8 a node)",
        "model": "Mixtral 8x7B: one layer each way", "fixed": {"expert_parallel": 4, "sequence": 128,
        "tokens_of_a_rank": 128, "precision": "bf16"}, "whole": {"span_us": 2500},
        "columns": ["phase", "begin_us"], "rows": [["attn(F)", 0], ["mlp(B)", 3], ["mlp(F)", 5],
        ["attn(B)", 9]]})json";
    const auto file = readMeasured(trace, "trace.json");
    ASSERT_TRUE(file) << describe(file.error());
    ASSERT_EQ(file->runs.size(), 1U);
    const MeasuredRun &pair = file->runs[0];
    EXPECT_EQ(pair.text("model"), "Mixtral 8x7B");
    EXPECT_EQ(pair.count("layers"), 1);
    EXPECT_EQ(pair.count("devices"), 4);
    EXPECT_DOUBLE_EQ(pair.seconds().value_or(0), 2.5e-3);
    const auto predicted = predict(pair);
    ASSERT_TRUE(predicted) << describe(predicted.error());
    EXPECT_EQ(predicted->peaks.size(), 4U);
    RunValues columns = pair.columns();
    columns["global_batch"] = 16.0;
    const auto step = predict(MeasuredRun(columns, {}, pair.surroundings()));
    ASSERT_TRUE(step) << describe(step.error());
    EXPECT_GT(predicted->seconds, 0);
    EXPECT_LT(predicted->seconds, step->seconds);

    std::string uneven = trace;
    uneven.replace(uneven.find("attn(B)"), 7, "mlp(B)"); // twice
    const auto refused = readMeasured(uneven, "trace.json");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().where, "trace.json/rows");
}

TEST(MeasuredFile, DamageIsNamedWithItsPlace)
{
    const std::pair<const char *, const char *> damages[]{{"", "runs.json"}, {"[]", "runs.json"},
        {"{\"rows\": 3}", "runs.json"}, {R"({"rows": [3]})", "runs.json/rows/0"},
        {R"({"columns": ["a"], "rows": [[1], [1, 2]]})", "runs.json/rows/1"},
        {R"({"columns": [7], "rows": [[1]]})", "runs.json/columns/0"},
        {R"({"rows": [], "failed": {}})", "runs.json/failed"}};
    for (const auto &[text, where] : damages) {
        const auto file = readMeasured(text, "runs.json");
        ASSERT_FALSE(file) << text;
        EXPECT_EQ(file.error().where, where) << text;
        EXPECT_EQ(file.error().code, ErrorCode::InvalidInput);
        EXPECT_FALSE(file.error().advice.empty());
    }
}

TEST(MeasuredFile, NumbersOfStrangersDoNoHarm)
{
    for (const char *row : {R"("devices": -1)", R"("devices": 1e300)", R"("devices": "many")",
             R"("devices": 8, "tensor_parallel": 0)", R"("devices": 8, "pipeline_parallel": 1e18)",
             R"("devices": 8, "micro_batch": 0, "global_batch": -3)", R"("devices": 8, "expert_parallel": 3)",
             R"("devices": 8, "layout": "tE||L")", R"("devices": 8, "hidden": -4)"}) {
        const auto file = readMeasured(
            std::string(R"({"cluster": "H100", "rows": [{"model": "llama-2-7b", )") + row + "}]}",
            "runs.json");
        ASSERT_TRUE(file) << row;
        EXPECT_NO_FATAL_FAILURE((void)predict(file->runs.front())) << row;
    }
}

} // namespace
} // namespace planloom
