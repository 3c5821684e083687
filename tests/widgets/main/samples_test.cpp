#include "widgets/main/samples.h"

#include "widgets/design/plan_update.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Samples, AreBundledGpt2First)
{
    ASSERT_EQ(samples().size(), 6u);
    EXPECT_EQ(samples().front().name, "gpt2");
    EXPECT_EQ(samples().front().devices, 4);
    EXPECT_TRUE(sampleNamed("mlp"));
    const auto unknown = sampleNamed("nothing");
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().advice.find("gpt2"), std::string::npos);
}

TEST(Samples, EachGivesAVerifiedPlanThatFits)
{
    for (const Sample &sample : samples()) {
        SCOPED_TRACE(sample.name);
        const auto model = openModel({sample.model, {}, {}}, {});
        ASSERT_TRUE(model) << describe(model.error());
        PlanRequest request;
        request.model = *model;
        request.gallery = sample.gallery;
        request.target = {sample.cluster, {}, sample.devices};
        PlanUpdateSnapshot last;
        makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
        ASSERT_TRUE(last);
        ASSERT_FALSE(last->error) << describe(*last->error);
        ASSERT_TRUE(last->verdict);
        EXPECT_TRUE(last->verdict->ok()) << last->verdict->failure->reason;
        EXPECT_LE(static_cast<double>(last->summary.largestPeak.count), last->cluster.device.memory.value);
    }
}

TEST(Samples, MalformedOnesSayWhere)
{
    EXPECT_EQ(sampleFromJson("a", "[]").error().where, "/");
    EXPECT_EQ(sampleFromJson("a", "{").error().where, "/");
    const std::string texts =
        R"("title":"t","about":"a","model":"zoo:mlp","cluster":"cpu","gallery":"single")";
    EXPECT_EQ(sampleFromJson("a", "{" + texts + "}").error().where, "/devices");
    EXPECT_EQ(sampleFromJson("a", "{" + texts + R"(,"devices":0})").error().where, "/devices");
    EXPECT_EQ(sampleFromJson("a", R"({"title":3})").error().where, "/title");
    EXPECT_TRUE(sampleFromJson("a", "{" + texts + R"(,"devices":2})"));
}

} // namespace
} // namespace planloom
