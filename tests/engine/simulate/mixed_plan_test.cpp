#include "engine/analyse/bound.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/simulate.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace planloom {
namespace {

struct PlannedStep {
    ExecutionPlan plan{};
    Timeline timeline{};
};

/// A GPT's step by rows of the gallery.
Result<PlannedStep> plannedStep(const std::string &gallery, const Cluster &cluster, UseUnits units)
{
    TRY(const Graph forward, buildZooModel("zoo:gpt?layers=4&hidden=256&heads=8&seq=64&batch=16&vocab=512"));
    TRY(Graph training, buildTrainingStep(forward, {.optimizer = OperatorKind::AdamWStep}));
    const auto graph = std::make_shared<const Graph>(std::move(training));
    TRY(const ConstraintTable table, galleryTable(gallery, graph, cluster.deviceCount));
    TRY(const Completion completion,
        completePlan(graph, cluster.deviceCount, table,
            {.units = units, .alike = [&](const ScaleUnits &alike) { return unitsAlike(cluster, alike); }}));
    if (const auto error = firstError(completion))
        return *error;
    TRY(ExecutionPlan plan, lower(completion.plan, cluster));
    TRY(Timeline timeline, simulate(plan, cluster));
    return PlannedStep{std::move(plan), std::move(timeline)};
}

std::int64_t longestKernel(const PlannedStep &step, std::size_t device)
{
    std::int64_t longest = 0;
    const auto [begin, end] = rowsOf(step.timeline, device, QueueKind::Compute);
    for (std::size_t row = begin; row < end; ++row)
        longest = std::max(longest, step.timeline.spans.duration[row]);
    return longest;
}

TEST(MixedPlan, RunsEachStageAsFastAsItsDevicesAre)
{
    const Cluster mixed = *clusterNamed("mixed-h100-a100:16");
    const auto step = plannedStep("3d:dp=1,tp=8,pp=2,micro-batches=4", mixed, UseUnits::Never);
    ASSERT_TRUE(step) << describe(step.error());
    const auto fast =
        plannedStep("3d:dp=1,tp=8,pp=2,micro-batches=4", *clusterNamed("dgx-h100:16"), UseUnits::Never);
    ASSERT_TRUE(fast) << describe(fast.error());
    EXPECT_EQ(longestKernel(*step, 0), longestKernel(*fast, 0));
    EXPECT_GT(longestKernel(*step, 8), longestKernel(*fast, 8));
    for (std::size_t d = 0; d < 8; ++d)
        for (std::size_t other = 8; other < 16; ++other)
            EXPECT_NE(step->timeline.symmetryClass[d], step->timeline.symmetryClass[other]);
    const double bound = stepBound(step->plan, costModelOf(mixed));
    EXPECT_GT(bound, stepBound(fast->plan, costModelOf(*clusterNamed("dgx-h100:16"))));
    EXPECT_LT(bound, static_cast<double>(step->timeline.step.count()) * 1e-9);
}

TEST(MixedPlan, UnitsShareLinksAndMustLookAlike)
{
    Cluster scarce = *clusterNamed("dgx-a100:16");
    scarce.links.devicesPerNode = 4;
    scarce.links.interPorts = {1, "test"};
    scarce.links.interBandwidth.value = 2e9;
    scarce.links.outer = {{"rack", 2, {3e9, "test"}, {2e-5, "test"}}};
    const auto units = plannedStep("3d:dp=2,tp=2,pp=4,micro-batches=2", scarce, UseUnits::WherePossible);
    ASSERT_TRUE(units) << describe(units.error());
    EXPECT_EQ(units->plan.units.count, 2);
    const auto off = simulate(units->plan, scarce, {.sharedLinks = false});
    ASSERT_TRUE(off);
    EXPECT_LT(off->step, units->timeline.step);
    // An H100 node is no A100 node.
    const auto apart =
        plannedStep("3d:dp=2,tp=8,pp=1", *clusterNamed("mixed-h100-a100:16"), UseUnits::WherePossible);
    ASSERT_TRUE(apart) << describe(apart.error());
    EXPECT_TRUE(apart->plan.units.isOne());
}

} // namespace
} // namespace planloom
