#include "engine/traces/calibration/span_fit.h"

#include "engine/design/make_plan.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/simulate/simulate.h"
#include "engine/traces/calibration/run_times.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// Figures that a cluster really has, and another one that somebody believes in.
Cluster slower(Cluster cluster, double factor)
{
    cluster.device.productEfficiency.value /= factor;
    cluster.device.memoryEfficiency.value /= factor;
    cluster.device.launchLatency.value *= factor;
    cluster.links.intraLatency.value *= factor;
    cluster.links.intraBandwidth.value /= factor;
    return cluster;
}

/// Two stages of a transformer, each over two devices.
ExecutionPlan transformerPlan(const std::string &rows = {})
{
    PlanRequest request;
    request.model = *openModel({"zoo:gpt?layers=2&hidden=256&heads=4&seq=128&vocab=512&batch=8", {}, {}});
    request.gallery = "3d:dp=1,tp=2,pp=2,micro-batches=2,schedule=1f1b";
    request.table = TableDocument(rows);
    request.target = {"dgx-a100:4", {}, 4};
    request.upTo = PlanGrade::Lowered;
    const auto answer = planOf(request);
    EXPECT_TRUE(answer) << describe(answer.error());
    return expandUnits(*(*answer)->execution);
}

double worstMedian(const std::vector<FitError> &errors)
{
    double worst = 0;
    for (const FitError &error : errors)
        worst = std::max(worst, error.median);
    return worst;
}

class SpanFitOf : public testing::TestWithParam<const char *>
{
};

TEST_P(SpanFitOf, SpansOfAClusterFindsItsFiguresFromAnother)
{
    const auto cluster = clusterNamed(GetParam());
    ASSERT_TRUE(cluster) << describe(cluster.error());
    const ExecutionPlan plan = transformerPlan();
    const Cluster real = slower(*cluster, 3);
    const auto ran = simulate(plan, real);
    ASSERT_TRUE(ran) << describe(ran.error());
    const auto fit = fittedToSpans(*cluster, plan, *ran, "log.jsonl", false);
    ASSERT_TRUE(fit) << describe(fit.error());
    ASSERT_FALSE(fit->errors.empty());
    ASSERT_EQ(fit->before.size(), fit->errors.size());
    for (std::size_t i = 0; i < fit->errors.size(); ++i)
        EXPECT_EQ(fit->before[i].kind, fit->errors[i].kind);
    EXPECT_GT(worstMedian(fit->before), 0.5);
    for (const FitError &error : fit->errors)
        EXPECT_LT(error.median, 0.06) << toString(error);
    EXPECT_NEAR(fit->predicted / fit->measured, 1, 0.06);
    EXPECT_LT(fit->predictedBefore, 0.6 * fit->measured);
    EXPECT_NE(fit->cluster.device.launchLatency.source.find("log.jsonl"), std::string::npos);
    EXPECT_EQ(fit->cluster.device.memory, cluster->device.memory);
    EXPECT_EQ(fit->cluster.deviceCount, cluster->deviceCount);
}

INSTANTIATE_TEST_SUITE_P(SpanFit, SpanFitOf, testing::Values("cpu:4", "dgx-a100:4"));

TEST(SpanFit, OfDevicesThatAreFasterThanTheirPeakIsRefused)
{
    const auto cluster = clusterNamed("cpu:4");
    const auto fast = clusterNamed("dgx-h100:4");
    ASSERT_TRUE(cluster && fast);
    const ExecutionPlan plan = transformerPlan("precision all : fp32\n");
    const auto ran = simulate(plan, *fast);
    ASSERT_TRUE(ran);
    const auto fit = fittedToSpans(*cluster, plan, *ran, "log.jsonl", false);
    ASSERT_FALSE(fit);
    EXPECT_EQ(fit.error().where, "--base");
    EXPECT_NE(fit.error().message.find("times the peak of CPU core"), std::string::npos)
        << fit.error().message;
}

TEST(SpanFit, CollectivesTakeFromTheLastArrivalToTheEnd)
{
    const auto cluster = clusterNamed("dgx-a100:4");
    ASSERT_TRUE(cluster);
    const ExecutionPlan plan = transformerPlan();
    auto ran = simulate(plan, *cluster);
    ASSERT_TRUE(ran);
    const RunTimes before = runTimesOf(plan, *ran, *cluster);
    ASSERT_FALSE(before.collectives.empty());
    // Device 0 comes to each collective earlier, and waits.
    for (std::size_t row = ran->deviceBegin[0]; row < ran->deviceBegin[1]; ++row)
        if (ran->spans.queue[row] != QueueKind::Compute) {
            ran->spans.start[row] -= 1000;
            ran->spans.duration[row] += 1000;
        }
    const RunTimes after = runTimesOf(plan, *ran, *cluster);
    ASSERT_EQ(after.collectives.size(), before.collectives.size());
    for (std::size_t i = 0; i < before.collectives.size(); ++i)
        EXPECT_DOUBLE_EQ(after.collectives[i].seconds, before.collectives[i].seconds);
}

TEST(SpanFit, WithoutSpansIsAnError)
{
    const auto cluster = clusterNamed("cpu:4");
    ASSERT_TRUE(cluster);
    const ExecutionPlan plan = transformerPlan();
    Timeline nothing;
    nothing.deviceBegin.assign(plan.devices.size() + 1, 0);
    const auto fit = fittedToSpans(*cluster, plan, nothing, "log.jsonl", true);
    ASSERT_FALSE(fit);
    EXPECT_EQ(fit.error().code, ErrorCode::InvalidInput);
}

} // namespace
} // namespace planloom
