// A plan file carries what it was made of: it is read, and says the same, where no other file is.

#include "planloom_paths.h"

#include "engine/base/files.h"
#include "engine/design/make_plan.h"
#include "engine/design/remembered.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/execution_plan_json.h"
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
