#include "engine/interop/configs/config_request.h"
#include "engine/interop/configs/read_config.h"
#include "engine/interop/configs/rows_config.h"
#include "engine/interop/configs/write_config.h"
#include "engine/table/table_text.h"
#include "tests/dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace planloom {
namespace {

const char *const kModel =
    "zoo:llama?layers=8&hidden=64&heads=8&kv_heads=8&ffn=128&seq=64&batch=32&vocab=256";

ModelSnapshot opened(const std::string &spec)
{
    const auto model = openModel({spec, {}, {}}, {}, KeepContent::No);
    EXPECT_TRUE(model) << describe(model.error());
    return model ? *model : ModelSnapshot{};
}

/// A gallery plan as rows.
PlanRequest rowsOf(const ModelSnapshot &model, const std::string &gallery, std::int32_t devices,
    const std::string &rows = {})
{
    PlanRequest request;
    request.model = model;
    request.gallery = gallery;
    request.table = TableDocument("precision all : bf16\n" + rows);
    request.target = {"dgx-h100:" + std::to_string(devices), {}, devices};
    request.upTo = PlanGrade::Checked;
    const auto answer = planOf(request);
    EXPECT_TRUE(answer) << gallery << ": " << describe(answer.error());
    if (answer)
        request.table = TableDocument(print((*answer)->table.table()));
    request.gallery.clear();
    return request;
}

WrittenConfig writtenAs(const char *format, const PlanRequest &request)
{
    const auto known = configFormatNamed(format);
    EXPECT_TRUE(known);
    const auto written = writeConfig(**known, request);
    EXPECT_TRUE(written) << format << ": " << describe(written.error());
    return written ? *written : WrittenConfig{};
}

std::string unsaidOf(const WrittenConfig &written)
{
    std::string all = written.isWhole ? "whole\n" : "";
    for (const UnsaidRow &row : written.unsaid)
        all += row.text + "\n";
    for (const std::string &row : written.instead)
        all += "instead: " + row + "\n";
    for (const std::string &note : written.notes)
        all += "note: " + note + "\n";
    return all + written.text;
}

TEST(WriteConfig, MegatronGetsWhatIsNotItsDefault)
{
    const PlanRequest request = rowsOf(opened(kModel),
        "3d:dp=2,tp=2,pp=2,zero=1,sequence=1,layout=Et*3|t*5L,recompute=core_attn,micro-batches=4", 8);
    const WrittenConfig written = writtenAs("megatron", request);
    EXPECT_TRUE(written.isWhole) << unsaidOf(written);
    for (const char *line :
        {"--tensor-model-parallel-size 2\n", "--pipeline-model-parallel-layout 'Et*3|t*5L'\n",
            "--sequence-parallel\n", "--use-distributed-optimizer\n", "--recompute-granularity selective\n",
            "--recompute-modules core_attn\n", "--bf16\n", "--num-layers 8\n", "--micro-batch-size 4\n",
            "torchrun --nproc_per_node 8", "--max-position-embeddings 64\n"})
        EXPECT_NE(written.text.find(line), std::string::npos) << line << written.text;
    for (const char *none : {"context-parallel", "expert-model", "fp16", "null"})
        EXPECT_EQ(written.text.find(none), std::string::npos) << none << written.text;
}

TEST(WriteConfig, RowsThatAFormatHasNoWordsForAreListed)
{
    const ModelSnapshot model = opened(kModel);
    const PlanRequest request =
        rowsOf(model, "3d:dp=2,tp=2,pp=2,zero=1,micro-batches=4", 8, "split-backward layer:0\n");
    const WrittenConfig written = writtenAs("megatron", request);
    EXPECT_FALSE(written.isWhole);
    ASSERT_EQ(written.unsaid.size(), 1U) << unsaidOf(written);
    EXPECT_EQ(written.unsaid.front().text, "split-backward layer:0");
    EXPECT_GT(written.planSeconds, 0);
    EXPECT_GT(written.configSeconds, 0);
    EXPECT_GT(written.unsaid.front().secondsWithout, 0);
    PlanRequest without = request;
    ConstraintTable rows = request.table.table();
    rows.rows.erase(rows.rows.begin() + written.unsaid.front().row.index);
    without.table = TableDocument(print(rows));
    EXPECT_TRUE(writtenAs("megatron", without).isWhole);
    const WrittenConfig deepspeed = writtenAs("deepspeed", request); // has no pipeline
    EXPECT_FALSE(deepspeed.isWhole);
    EXPECT_FALSE(deepspeed.unsaid.empty());
}

TEST(WriteConfig, SequencesByHeadsSomeLayersAndGroupsOfReplicas)
{
    const ModelSnapshot model = opened(kModel);
    struct Case {
        const char *format, *gallery, *rows;
        std::vector<const char *> words;
    };
    const Case kCases[] = {
        {"megatron", "3d:dp=2,ulysses=4,zero=1", "", {"--context-parallel-size 4\n", "--cp-comm-type a2a\n"}},
        {"megatron", "3d:cp=2,zigzag=1,ulysses=4,zero=1", "",
            {"--context-parallel-size 8\n", "--cp-comm-type a2a+p2p\n",
                "--hierarchical-context-parallel-sizes 4 2\n"}},
        {"bridge", "3d:dp=2,tp=2,ulysses=2", "", {"model.cp_comm_type='[a2a]'"}},
        {"deepspeed", "3d:dp=2,ulysses=4,zero=1", "", {"\"sequence_parallel_size\": 4"}},
        {"megatron", "3d:dp=8", "zero1 weight:* by 4\n", {"--num-distributed-optimizer-instances 2\n"}},
        {"megatron", "3d:dp=4,pp=2", "", {"--use-tp-pp-dp-mapping\n"}},
        {"megatron", "3d:dp=2,pp=2,tp=2,sequence=1,layout=Et*4|t*4L",
            "recompute layer:0-1 per layer\nrecompute layer:4-5 per layer\n",
            {"--recompute-method block\n", "--recompute-num-layers 2\n"}},
        {"megatron", "3d:dp=8", "recompute layer:0-3\nrecompute layer:4-7\n",
            {"--recompute-method uniform\n", "--recompute-num-layers 4\n"}},
    };
    for (const Case &each : kCases) {
        SCOPED_TRACE(std::string(each.format) + ": " + each.gallery + "\n" + each.rows);
        const WrittenConfig written = writtenAs(each.format, rowsOf(model, each.gallery, 8, each.rows));
        EXPECT_TRUE(written.isWhole) << unsaidOf(written);
        for (const char *word : each.words)
            EXPECT_NE(written.text.find(word), std::string::npos) << word << "\n" << written.text;
    }
}

/// Frameworks number ranks with those of a pipeline far apart; a plan may have its replicas there.
TEST(WriteConfig, RanksLieWhereThePlanHasThem)
{
    const ModelSnapshot model = opened(kModel);
    const char *const pipelineInside = "3d:dp=2,pp=2,tp=2,sequence=1,zero=3,layout=Et*4|t*4L,micro-batches=4";
    const WrittenConfig titan = writtenAs("torchtitan", rowsOf(model, pipelineInside, 8));
    EXPECT_TRUE(titan.isWhole) << unsaidOf(titan);
    std::vector<std::int32_t> devices;
    for (const DeviceId device : titan.ranks)
        devices.push_back(device.index);
    EXPECT_EQ(devices, (std::vector<std::int32_t>{0, 1, 4, 5, 2, 3, 6, 7}));
    const WrittenConfig outside =
        writtenAs("torchtitan", rowsOf(model, std::string(pipelineInside) + ",pipeline-outermost=1", 8));
    EXPECT_TRUE(outside.isWhole) << unsaidOf(outside);
    EXPECT_TRUE(outside.ranks.empty());
}

/// Rows of kinds that no format has words for, some of them beside plans that they all say: without those
/// that are listed, the plan is said.
TEST(WriteConfig, WithoutTheRowsThatAreListedThePlanIsSaid)
{
    const ModelSnapshot model = opened(kModel);
    const std::vector<std::string> kBeyond{"split-backward layer:0", "recompute layer:2 per layer",
        "replicate kind:Softmax : by 1", "offload layer:3 : activations",
        "precision kind:RmsNorm : storage=fp32", "order layer:1 before layer:2 at +1",
        "attention layer:5 : plain"};
    Dice dice(19);
    int listed = 0;
    for (const char *format : {"megatron", "bridge", "deepspeed", "torchtitan", "nanotron"})
        for (int i = 0; i < 6; ++i) {
            const bool isTitan = std::string_view(format) == "torchtitan";
            const std::string gallery = isTitan ? "3d:dp=4,tp=2,sequence=1,zero=3,micro-batches=2"
                                                : "3d:dp=4,tp=2,sequence=1,zero=1,micro-batches=2";
            std::string rows;
            for (const std::string &row : kBeyond)
                rows += dice.below(3) == 0 ? row + "\n" : "";
            SCOPED_TRACE(std::string(format) + "\n" + rows);
            const PlanRequest request = rowsOf(model, gallery, 8, rows);
            const WrittenConfig written = writtenAs(format, request);
            listed += static_cast<int>(written.unsaid.size());
            EXPECT_EQ(written.isWhole, written.unsaid.empty()) << unsaidOf(written);
            PlanRequest without = request;
            ConstraintTable rest = request.table.table();
            for (auto row = written.unsaid.rbegin(); row != written.unsaid.rend(); ++row)
                rest.rows.erase(rest.rows.begin() + row->row.index);
            without.table = TableDocument(print(rest));
            const WrittenConfig again = writtenAs(format, without);
            EXPECT_TRUE(again.isWhole) << unsaidOf(again);
        }
    EXPECT_GT(listed, 20);
}

/// Random plans that each format has words for, written, read and planned again.
TEST(WriteConfig, WhatIsWrittenIsReadAsTheSamePlan)
{
    struct Case {
        const char *format;
        bool pipelines, context, sharded;
    };
    const ModelSnapshot model = opened(kModel);
    Dice dice(7);
    const auto pick = [&dice](std::initializer_list<std::int64_t> values) {
        return *(values.begin() + dice.below(static_cast<std::int32_t>(values.size())));
    };
    for (const Case &each : {Case{"megatron", true, true, true}, Case{"bridge", true, true, true},
             Case{"verl", true, true, false}, Case{"nemo-rl", true, true, true},
             Case{"torchtitan", true, true, false}, Case{"deepspeed", false, false, true},
             Case{"accelerate", false, true, false}, Case{"nanotron", true, true, false},
             Case{"nnscaler", false, false, false}}) {
        for (int i = 0; i < 12; ++i) {
            const std::string name = each.format;
            const std::int64_t tp = pick({1, 2, 4});
            const std::int64_t pp = each.pipelines ? pick({1, 2}) : 1;
            const std::int64_t cp = each.context ? pick({1, 1, 2}) : 1;
            const std::int64_t dp = pick({1, 2});
            // accelerate's file has no word for several micro-batches under FSDP: that is the training
            // script's.
            const std::int64_t micro = std::string_view(each.format) == "accelerate" ? 1 : pick({1, 2, 4});
            const bool isTitan = name == "torchtitan";
            const std::int64_t zero = dp * cp == 1 ? 0
                : isTitan                          ? 3
                : each.sharded                     ? pick({0, 1})
                : name == "accelerate"             ? pick({2, 3})
                                                   : pick({0, 1});
            std::string spec = "3d:dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp)
                + ",pp=" + std::to_string(pp) + ",cp=" + std::to_string(cp) + (cp > 1 ? ",zigzag=1" : "")
                + ",zero=" + std::to_string(zero) + ",micro-batches=" + std::to_string(micro);
            const bool isFree = name == "megatron" || name == "bridge" || name == "verl" || name == "nemo-rl";
            if (tp > 1
                && (isTitan || name == "deepspeed" || name == "accelerate" || name == "nnscaler"
                    || pick({0, 1}) == 1))
                spec += ",sequence=1";
            if (pp > 1)
                spec += (isFree || isTitan) && pick({0, 1}) == 1 ? ",layout=Et*3|t*5L" : ",layout=Et*4|t*4L";
            if (isFree)
                spec += pick({0, 1}) == 1 ? ",recompute=core_attn+mlp" : "";
            SCOPED_TRACE(name + ": " + spec);
            const WrittenConfig written =
                writtenAs(each.format, rowsOf(model, spec, static_cast<std::int32_t>(dp * tp * pp * cp)));
            EXPECT_TRUE(written.isWhole) << unsaidOf(written);
        }
    }
}

TEST(WriteConfig, ModelsOfTheZooHaveTheSameSizesAgain)
{
    for (const char *spec : {kModel, "zoo:gpt?layers=2&hidden=64&heads=4&seq=32&batch=4&vocab=100",
             "zoo:llama-3-8b", "zoo:mixtral-8x7b", "zoo:deepseek-v3"}) {
        SCOPED_TRACE(spec);
        const auto sizes = sizesOfZoo(spec);
        ASSERT_TRUE(sizes);
        const auto again = zooSpecOf(*sizes);
        ASSERT_TRUE(again);
        const auto same = sizesOfZoo(*again);
        ASSERT_TRUE(same);
        for (const auto &[field, entry] : sizes->entries()) {
            const ConfigEntry *const there = same->find(field);
            EXPECT_EQ(field == "model" || (there != nullptr && there->value == entry.value), true) << field;
        }
    }
}

} // namespace
} // namespace planloom
