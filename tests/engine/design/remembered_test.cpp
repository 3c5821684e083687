#include "engine/design/remembered.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace planloom {
namespace {

using Origin = std::map<std::string, std::string>;

TEST(Remembered, IsWhatThePlanWasMadeOf)
{
    ModelSource source{"models/bert.onnx", "bytes", {}};
    source.options.dimensions = {{"batch", 8}, {"length", 64}};
    source.options.inference = true;
    source.options.learningRate = 0.1;
    ExecutionPlan plan;
    plan.origin = originOf(source, "cpu:2", "mesh dp=2\n");
    const std::string absolute = std::filesystem::absolute("models/bert.onnx").string();
    EXPECT_EQ(plan.origin,
        (Origin{{"model", absolute}, {"cluster", "cpu:2"}, {"dim", "batch=8,length=64"}, {"inference", "1"},
            {"learning-rate", "0.1"}, {"rows", "mesh dp=2\n"}}));
    EXPECT_EQ(*rowsRemembered(plan), "mesh dp=2\n");
    const auto back = rememberedModel(plan);
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(*back, (ModelSource{absolute, {}, source.options}));
    EXPECT_EQ(rememberedCluster(plan), "cpu:2");
}

TEST(Remembered, LeavesZooModelsAsTheyAre)
{
    EXPECT_EQ(originOf({"zoo:gpt?layers=2", {}, {}}, "cpu:1", {}),
        (Origin{{"model", "zoo:gpt?layers=2"}, {"cluster", "cpu:1"}, {"rows", ""}}));
}

TEST(Remembered, ReadsPlansThatNameEveryOption)
{
    ExecutionPlan plan;
    plan.origin = {
        {"model", "zoo:mlp"}, {"optimizer", "adamw"}, {"weight-decay", "0"}, {"made by", "somebody"}};
    const auto back = rememberedModel(plan);
    ASSERT_TRUE(back) << describe(back.error());
    EXPECT_EQ(*back, (ModelSource{"zoo:mlp", {}, {}}));
    EXPECT_EQ(rowsRemembered(plan).error().where, "/origin/rows");
    plan.devices.resize(3);
    EXPECT_EQ(rememberedCluster(plan), "cpu:3");
}

TEST(Remembered, SaysWhatIsWrong)
{
    ExecutionPlan plan;
    EXPECT_EQ(rememberedModel(plan).error().where, "/origin/model");
    plan.origin = {{"model", "zoo:mlp"}, {"optimizer", "adam"}};
    EXPECT_EQ(rememberedModel(plan).error().where, "/origin/optimizer");
    plan.origin = {{"model", "zoo:mlp"}, {"dim", "batch"}};
    EXPECT_EQ(rememberedModel(plan).error().where, "/origin/dim");
}

} // namespace
} // namespace planloom
