#include "engine/lowering/program/execution_plan_json.h"
#include "engine/lowering/program/execution_plan_words.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

using nlohmann::json;

void expectSame(const ExecutionPlan &plan)
{
    const std::string text = toFoldedJson(plan);
    const auto back = executionPlanFromJson(text);
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(toJson(*back), toJson(plan));
    EXPECT_EQ(back->devices.size(), plan.devices.size());
    EXPECT_TRUE(back->devices == plan.devices);
    EXPECT_EQ(toFoldedJson(*back), text);
}

TEST(FoldedPlans, AreThePlansTheyStandFor)
{
    for (const std::string &model : smallModels()) {
        const GraphSnapshot graph = trainingStep(model);
        for (const char *gallery : {"single", "data-parallel", "zero3"}) {
            SCOPED_TRACE(model + " " + gallery);
            expectSame(galleryPlan(graph, gallery, std::string(gallery) == "single" ? 1 : 2));
        }
    }
    const GraphSnapshot gpt = trainingStep(smallModels()[1]);
    for (const char *gallery : {"3d:dp=2,tp=2,pp=2,micro-batches=2", "3d:pp=2,cp=2,tp=2,sequence=1",
             "context-parallel:cp=8", "context-parallel:cp=8,ring=0", "context-parallel:cp=2,ulysses=4",
             "3d:tp=4,dp=2,zero=2", "gpipe"}) {
        SCOPED_TRACE(gallery);
        expectSame(galleryPlan(gpt, gallery, 8));
    }
}

ExecutionPlan ringPlan(int layers)
{
    const std::string model =
        "zoo:gpt?layers=" + std::to_string(layers) + "&hidden=16&heads=4&seq=16&batch=1&vocab=24";
    return galleryPlan(trainingStep(model), "context-parallel:cp=8", 8);
}

TEST(FoldedPlans, SayOnceWhatLayersHaveInCommon)
{
    const ExecutionPlan few = ringPlan(4);
    const ExecutionPlan many = ringPlan(8);
    const json a = json::parse(toFoldedJson(few));
    const json b = json::parse(toFoldedJson(many));
    EXPECT_EQ(a["version"], kFoldedVersion);
    EXPECT_EQ(a["templates"].size(), b["templates"].size());
    EXPECT_EQ(a["forms"].size(), b["forms"].size());
    EXPECT_LT(toFoldedJson(many).size() * 2, toJson(many).size());
}

TEST(FoldedPlans, SayOnceWhatDevicesHaveInCommon)
{
    const GraphSnapshot graph = trainingStep(smallModels()[1]);
    const ExecutionPlan plan = galleryPlan(graph, "context-parallel:cp=8,ring=0", 8);
    EXPECT_LE(json::parse(toFoldedJson(plan))["programs"].size(), 2U);
}

TEST(FoldedPlans, AreWhatIsWrittenWherePlansAreLong)
{
    const ExecutionPlan shortOne = galleryPlan(trainingStep(smallModels()[0]), "data-parallel", 2);
    EXPECT_EQ(planFileText(shortOne), toJson(shortOne));
    const ExecutionPlan longOne = ringPlan(24);
    ASSERT_GT(itemCount(longOne), 1 << 14);
    EXPECT_EQ(planFileText(longOne), toFoldedJson(longOne));
    const auto back = executionPlanFromJson(planFileText(longOne));
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_TRUE(back->devices == longOne.devices);
}

/// Where the reader says that `good` is wrong once `pointer` in it is `value`.
std::string placeOf(const json &good, const std::string &pointer, const json &value)
{
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    const auto plan = executionPlanFromJson(bad.dump());
    EXPECT_FALSE(plan) << pointer;
    return plan ? std::string{} : plan.error().where;
}

TEST(FoldedPlans, NameThePlaceOfWhatIsWrong)
{
    const GraphSnapshot graph = trainingStep(smallModels()[1]);
    const json good = json::parse(toFoldedJson(galleryPlan(graph, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8)));
    const auto stays = [&](const std::string &pointer, const json &value) {
        EXPECT_EQ(placeOf(good, pointer, value), pointer);
    };
    stays("/version", 8);
    stays("/templates/0/known", -1);
    stays("/templates/0/new", "many");
    stays("/templates/0/instructions/0/kind", "dance");
    stays("/templates/0/instructions/0/outputs", {1 << 28});
    stays("/devices/0/program", 1 << 20);
    stays("/devices/0/buffers/0", {0, 1 << 20});
    stays("/devices/0/buffers/0", {0, -1});
    stays("/devices/0/buffers/0", {0});
    stays("/programs/0/segments/0/calls/0", {1 << 20, 0});
    stays("/programs/0/segments/0/calls/0", {-1, 0});
    stays("/programs/0/segments/0/calls/0", json::array());
    stays("/programs/0/segments/0/calls/0", {0, 1 << 20});
    stays("/programs/0/segments/0/stage", 77);
    EXPECT_EQ(placeOf(good, "/devices/0/buffers/0", {-1, 0}), "/devices/0/buffers");
    EXPECT_EQ(placeOf(good, "/devices/0/buffers/0", {{"again", {0, 1}}}), "/devices/0/buffers/0/again");
    EXPECT_EQ(placeOf(good, "/devices/0/buffers/1", {{"again", {0}}}), "/devices/0/buffers/1/again");
    EXPECT_EQ(placeOf(good, "/devices/0/buffers/0", 5), "/devices/0/buffers/0");
    EXPECT_EQ(placeOf(good, "/forms/0/box", {{0, 1 << 30}}), "/forms/0/box");
    json withoutForms = good;
    withoutForms.erase("forms");
    const auto refused = executionPlanFromJson(withoutForms.dump());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().where, "/forms");
}

TEST(FoldedPlans, StandForNoMoreThanFitsInMemory)
{
    const json good = json::parse(toFoldedJson(galleryPlan(trainingStep(smallModels()[0]), "single", 1)));
    json doubled = good;
    doubled["devices"][0]["buffers"].push_back({{"again", {0, kMostUnfolded}}});
    const auto tooMany = executionPlanFromJson(doubled.dump());
    ASSERT_FALSE(tooMany);
    EXPECT_NE(tooMany.error().message.find("at most 16777216"), std::string::npos) << tooMany.error().message;
    EXPECT_EQ(tooMany.error().where.find("/devices/0/buffers/"), 0U) << tooMany.error().where;
}

/// A number, a list or a word of `value`, somewhere in it, becomes another.
void damage(json &value, std::mt19937 &random)
{
    if ((value.is_object() || value.is_array()) && !value.empty() && random() % 12 != 0) {
        auto it = value.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(random() % value.size()));
        if (value.is_array() && random() % 8 == 0)
            value.erase(it);
        else
            damage(*it, random);
    } else if (value.is_number_integer()) {
        value = value.get<std::int64_t>() + static_cast<std::int64_t>(random() % 7) - 3;
    } else {
        value = std::array<json, 4>{nullptr, 1, "x", json::array({1, 2})}[random() % 4];
    }
}

TEST(FoldedPlans, NeverCrashOnDamage)
{
    const GraphSnapshot graph = trainingStep(smallModels()[0]);
    const json good = json::parse(toFoldedJson(galleryPlan(graph, "3d:dp=2,pp=2,micro-batches=2", 4)));
    std::mt19937 random(5);
    int read = 0;
    for (int i = 0; i < 300; ++i) {
        json bad = good;
        const std::array<const char *, 4> members{"templates", "forms", "programs", "devices"};
        damage(bad[members[random() % members.size()]], random);
        const auto plan = executionPlanFromJson(bad.dump());
        if (!plan) {
            EXPECT_NE(plan.error().code, ErrorCode::Internal);
            EXPECT_FALSE(plan.error().message.empty());
            continue;
        }
        ++read;
        const auto again = executionPlanFromJson(toFoldedJson(*plan));
        ASSERT_TRUE(again) << describe(again.error());
        EXPECT_TRUE(again->devices == plan->devices);
    }
    EXPECT_GT(read, 0);
}

} // namespace
} // namespace planloom
