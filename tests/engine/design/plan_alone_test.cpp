// A plan file carries what it was made of: it is read, and says the same, where no other file is.

#include "planloom_paths.h"

#include "engine/base/files.h"
#include "engine/design/make_plan.h"
#include "engine/design/remembered.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/simulate/simulate.h"
#include "engine/simulate/summary.h"
#include "engine/verify/verify.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace planloom {
namespace {

const std::filesystem::path kPlans = std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/design/plans";

/// A cluster that is no profile.
Cluster oddCluster()
{
    Cluster cluster = *clusterNamed("rtx4090:2");
    cluster.name = "under my desk";
    cluster.device.memory.value /= 2;
    return cluster;
}

TEST(PlanAlone, CarriesItsCluster)
{
    PlanRequest request;
    request.model = *openModel({"zoo:mlp?layers=2&hidden=8&batch=4", {}, {}});
    request.table = TableDocument("mesh dp=2\nsplit all : batch over dp\n");
    request.target.cluster = "under my desk";
    request.target.clusterJson = toJson(oddCluster());
    request.upTo = PlanGrade::Timed;
    const auto answer = planOf(request);
    ASSERT_TRUE(answer) << describe(answer.error());
    const auto plan = executionPlanFromJson(toJson(*(*answer)->execution));
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto target = resolve(rememberedTarget(*plan));
    ASSERT_TRUE(target) << describe(target.error());
    EXPECT_EQ(target->cluster, (*answer)->cluster);
    const auto timeline = simulate(*plan, target->cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_EQ(summaryOf(*timeline).stepSeconds, (*answer)->summary.stepSeconds);
}

struct Made {
    const char *name;
    ModelSource model;
    Cluster cluster;
    const char *rows;
    bool search = false;
};

/// Of what a plan file has to carry: devices of two classes, host memory, sizes that a model leaves open,
/// room for what data choose, what a search chose.
std::vector<Made> plansOfAllKinds()
{
    Cluster mixed = *clusterNamed("mixed-h100-a100:16");
    mixed.name = "two halls";
    mixed.device.memory.value /= 4;
    Cluster slow = *clusterNamed("dgx-a100:4");
    slow.name = "behind a slow switch";
    slow.device.memoryBandwidth.value /= 3;
    ModelSource open{
        (std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/frontend/pt2/transformer.pt2").string(),
        {}, {}};
    open.options.dimensions["s52"] = 8;
    open.options.learningRate = 0.25;
    ModelSource roomy{"zoo:moe?layers=2&hidden=32&heads=4&experts=4&seq=8&batch=4&vocab=48", {}, {}};
    roomy.options.capacities["*"] = {Capacity::Kind::Expected, 2};
    const ModelSource gpt{"zoo:gpt?layers=2&hidden=32&heads=4&seq=16&batch=16&vocab=64", {}, {}};
    return {{"two classes of devices", gpt, mixed, "mesh dp=16\nsplit all : batch over dp\n"},
        {"states in host memory", gpt, slow,
            "mesh dp=4\nsplit all : batch over dp\nzero1 weight:*\noffload all : states\n"},
        {"open sizes", open, slow, "mesh dp=4\nsplit all : batch over dp\n"},
        {"room for what data choose", roomy, slow, "mesh dp=2 tp=2\nsplit all : batch over dp\n"},
        {"found", gpt, slow, "", true}};
}

/// What a file says, planned anew, is the plan in it.
TEST(PlanAlone, IsMadeAgainFromItsFile)
{
    for (const Made &made : plansOfAllKinds()) {
        SCOPED_TRACE(made.name);
        PlanRequest request;
        const auto model = openModel(made.model);
        ASSERT_TRUE(model) << describe(model.error());
        request.model = *model;
        request.table = TableDocument(made.rows);
        request.target.cluster = made.cluster.name;
        request.target.clusterJson = toJson(made.cluster);
        request.search = made.search;
        request.upTo = PlanGrade::Timed;
        const auto answer = planOf(request);
        ASSERT_TRUE(answer) << describe(answer.error());
        ASSERT_FALSE((*answer)->error) << describe(*(*answer)->error);

        const auto read = executionPlanFromJson(toJson(*(*answer)->execution));
        ASSERT_TRUE(read) << describe(read.error());
        const auto report = verify(*read);
        ASSERT_TRUE(report) << describe(report.error());
        EXPECT_TRUE(report->ok()) << report->failure->reason;
        const auto source = rememberedModel(*read);
        ASSERT_TRUE(source) << describe(source.error());
        const auto rows = rowsRemembered(*read);
        ASSERT_TRUE(rows) << describe(rows.error());
        PlanRequest again;
        const auto reopened = openModel(*source);
        ASSERT_TRUE(reopened) << describe(reopened.error());
        again.model = *reopened;
        again.table = TableDocument(*rows);
        again.target = rememberedTarget(*read);
        again.upTo = PlanGrade::Timed;
        const auto second = planOf(again);
        ASSERT_TRUE(second) << describe(second.error());
        EXPECT_EQ((*second)->cluster, made.cluster);
        EXPECT_EQ((*second)->summary.stepSeconds, (*answer)->summary.stepSeconds);
        EXPECT_EQ(toJson(*(*second)->execution), toJson(*read));
    }
}

TEST(PlanAlone, PlansOfEveryOlderVersionOpen)
{
    // Written by 4fd8d027: Float32, bfloat16, sums of exponentials, versions of weights, sends in both
    // directions.
    for (int version = 1; version <= 5; ++version) {
        SCOPED_TRACE(version);
        const auto text = readFile(kPlans / ("v" + std::to_string(version) + ".json"));
        ASSERT_TRUE(text) << describe(text.error());
        const auto plan = executionPlanFromJson(*text);
        ASSERT_TRUE(plan) << describe(plan.error());
        const auto report = verify(*plan);
        ASSERT_TRUE(report) << describe(report.error());
        EXPECT_TRUE(report->ok()) << report->failure->reason;
        const auto target = resolve(rememberedTarget(*plan)); // by name, as they carry none
        ASSERT_TRUE(target) << describe(target.error());
        EXPECT_TRUE(simulate(*plan, target->cluster));
        const auto model = rememberedModel(*plan);
        ASSERT_TRUE(model) << describe(model.error());
        EXPECT_TRUE(openModel(*model));
        EXPECT_TRUE(rowsRemembered(*plan));
    }
}

} // namespace
} // namespace planloom
