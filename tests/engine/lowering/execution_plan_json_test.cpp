#include "engine/lowering/program/execution_plan_json.h"

#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

ExecutionPlan samplePlan()
{
    ExecutionPlan plan = galleryPlan(trainingStep(smallModels()[1]), "3d:dp=2,tp=2,pp=2,micro-batches=2", 8);
    plan.origin["model"] = "zoo:gpt";
    return plan;
}

TEST(ExecutionPlanJson, RoundTrips)
{
    const ExecutionPlan plan = samplePlan();
    const std::string text = toJson(plan);
    const auto back = executionPlanFromJson(text);
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(back->devices, plan.devices);
    EXPECT_EQ(back->groups, plan.groups);
    EXPECT_EQ(back->partitions, plan.partitions);
    EXPECT_EQ(back->placement, plan.placement);
    EXPECT_EQ(back->origin, plan.origin);
    EXPECT_EQ(toJson(*back), text);
}

TEST(ExecutionPlanJson, SaysWhichAttentionsKeepTheirProbabilities)
{
    const GraphSnapshot graph = trainingStep(smallModels()[1]);
    ConstraintTable table;
    table.rows.push_back(
        {.selector = *parseSelector("layer:1"), .rule = AttentionRule{AttentionMode::Plain}});
    const auto completion = completePlan(graph, 1, table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("cpu:1"));
    ASSERT_TRUE(plan) << describe(plan.error());
    nlohmann::json json = nlohmann::json::parse(toJson(*plan));
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        const bool plain = graph->operators[i].kind == OperatorKind::Attention
            && graph->operators[i].name.starts_with("h.1");
        EXPECT_EQ(json["decisions"][i].contains("attention"), plain) << graph->operators[i].name;
        if (!plain)
            continue;
        EXPECT_EQ(json["decisions"][i]["attention"], "plain");
        nlohmann::json wrong = json;
        wrong["decisions"][i]["attention"] = "fast";
        const auto refused = executionPlanFromJson(wrong.dump());
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().where, "/decisions/" + std::to_string(i) + "/attention");
    }
    const auto back = executionPlanFromJson(json.dump());
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(back->attention, plan->attention);
    EXPECT_EQ(back->devices, plan->devices);
}

TEST(ExecutionPlanJson, OpensFilesOfWhenStagesSentBothWaysInOneQueue)
{
    const ExecutionPlan plan = samplePlan();
    nlohmann::json document = nlohmann::json::parse(toJson(plan));
    EXPECT_EQ(document["version"], 5);
    const ExecutionPlan withoutStages = galleryPlan(plan.graph, "data-parallel", 2);
    EXPECT_EQ(nlohmann::json::parse(toJson(withoutStages))["version"], 1) << "older readers understand it";
    document["version"] = 3;
    int messages = 0;
    for (nlohmann::json &device : document["devices"])
        for (nlohmann::json &segment : device["segments"])
            for (nlohmann::json &instruction : segment["instructions"]) {
                if (instruction.value("queue", "") != "pipeline-back")
                    continue;
                const bool message = instruction["kind"] == "send" || instruction["kind"] == "recv";
                messages += message ? 1 : 0;
                if (message)
                    instruction.erase("queue");
                else
                    instruction["queue"] = "pipeline";
            }
    EXPECT_GT(messages, 0);
    const auto back = executionPlanFromJson(document.dump());
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(toJson(*back), document.dump());
    const auto report = verify(*back);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok()) << report->failure->reason;
    EXPECT_TRUE(simulate(*back, *clusterNamed("dgx-a100:8")));
}

TEST(ExecutionPlanJson, OpensFilesOfWhenFewerDimensionsWereSplit)
{
    // What combines otherwise than by summing had to stay whole, and no annotation spoke of it.
    const ExecutionPlan plan = galleryPlan(trainingStep(smallModels()[1]), "single", 1);
    nlohmann::json document = nlohmann::json::parse(toJson(plan));
    int changed = 0;
    for (nlohmann::json &op : document["graph"]["operators"]) {
        if (op["kind"] != "Attention" && op["kind"] != "ClassStatistics")
            continue;
        nlohmann::json &annotation = op["annotation"];
        annotation.erase("combinations");
        for (nlohmann::json &dimension : annotation["dimensions"])
            if (dimension[0] == "t" || dimension[0] == "c")
                dimension[2] = "^";
        ++changed;
    }
    EXPECT_EQ(changed, 6); // two attentions and the loss, forward and backward
    const auto back = executionPlanFromJson(document.dump());
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(back->devices, plan.devices);
    for (std::size_t i = 0; i < plan.graph->operators.size(); ++i)
        EXPECT_EQ(back->graph->operators[i].annotation, plan.graph->operators[i].annotation);
    EXPECT_EQ(toJson(*back), toJson(plan));
}

TEST(ExecutionPlanJson, NamesThePlaceOfWhatIsWrong)
{
    const nlohmann::json good = nlohmann::json::parse(toJson(samplePlan()));
    const auto errorOf = [&](const std::string &pointer, const nlohmann::json &value) {
        nlohmann::json bad = good;
        bad[nlohmann::json::json_pointer(pointer)] = value;
        const auto plan = executionPlanFromJson(bad.dump());
        EXPECT_FALSE(plan) << pointer;
        return plan ? std::string{} : plan.error().where;
    };
    EXPECT_EQ(errorOf("/version", 99), "/version");
    EXPECT_EQ(errorOf("/micro_batches", 0), "/micro_batches");
    EXPECT_EQ(errorOf("/updates", 0), "/updates");
    EXPECT_EQ(errorOf("/updates", 1000), "/updates");
    EXPECT_EQ(errorOf("/decisions/0/weight_versions", 0), "/decisions/0/weight_versions");
    EXPECT_EQ(errorOf("/devices/0/buffers/0/staleness", -1), "/devices/0/buffers/0/staleness");
    EXPECT_EQ(errorOf("/devices/0/buffers/0/tensor", 1 << 30), "/devices/0/buffers/0/tensor");
    EXPECT_EQ(errorOf("/devices/1/segments/0/instructions/0/kind", "dance"),
        "/devices/1/segments/0/instructions/0/kind");
    EXPECT_EQ(errorOf("/devices/1/segments/0/instructions/0/outputs", {-7}),
        "/devices/1/segments/0/instructions/0/outputs");
    EXPECT_EQ(errorOf("/devices/1/segments/0/instructions/0/queue", "side"),
        "/devices/1/segments/0/instructions/0/queue");
    EXPECT_EQ(errorOf("/groups/0", {0, 99}), "/groups/0");
    EXPECT_EQ(errorOf("/graph/operators/0/kind", "Magic"), "/graph/operators/0/kind");
    std::size_t weight = 0;
    while (good["graph"]["tensors"][weight]["role"] != "weight")
        ++weight;
    const std::string part = "/graph/tensors/" + std::to_string(weight) + "/file_part";
    nlohmann::json whole = good["graph"]["tensors"][weight]["shape"];
    whole[0] = whole[0].get<int>() + 2;
    const auto partOf = [&](const nlohmann::json &shape, int axis, int begin) {
        return nlohmann::json{{"name", "all"}, {"shape", shape}, {"axis", axis}, {"begin", begin}};
    };
    EXPECT_EQ(errorOf(part, partOf(whole, 0, 3)), part); // ends behind its end
    EXPECT_EQ(errorOf(part, partOf(whole, 9, 0)), part + "/axis");
    EXPECT_EQ(errorOf(part, partOf(nlohmann::json::array({1}), 0, 0)), part);
    EXPECT_EQ(errorOf(part, 5), part);
    EXPECT_EQ(errorOf("/decisions/0/devices", {12}), "/decisions/0/devices");
    EXPECT_EQ(errorOf("/format", 7), "/format");
    EXPECT_EQ(errorOf("/stages", 18446744073709551615ULL), "/stages");
    EXPECT_EQ(errorOf("/batch/whole_batches", 1), "/batch/whole_batches");
    EXPECT_EQ(errorOf("/devices/0/buffers/0/persistent", "yes"), "/devices/0/buffers/0/persistent");
    EXPECT_EQ(
        errorOf("/devices/0/buffers/0/per_micro_batch", nullptr), "/devices/0/buffers/0/per_micro_batch");
    EXPECT_EQ(errorOf("/devices/0/segments/0/instructions/0/recompute", 0),
        "/devices/0/segments/0/instructions/0/recompute");
    EXPECT_EQ(errorOf("/origin/model", 5), "/origin/model");
    EXPECT_FALSE(executionPlanFromJson("{"));
    EXPECT_FALSE(executionPlanFromJson("[]"));
    EXPECT_FALSE(executionPlanFromJson(""));
}

TEST(ExecutionPlanJson, NeverCrashesOnDamage)
{
    const std::string text = toJson(galleryPlan(trainingStep(smallModels()[0]), "data-parallel", 2));
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
        std::string damaged = text;
        for (int k = 0; k < 3; ++k)
            damaged[std::uniform_int_distribution<std::size_t>(0, damaged.size() - 1)(random)] =
                static_cast<char>(std::uniform_int_distribution<int>(32, 126)(random));
        if (const auto plan = executionPlanFromJson(damaged); !plan) {
            EXPECT_FALSE(plan.error().message.empty());
        }
    }
}

} // namespace
} // namespace planloom
