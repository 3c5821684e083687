// Plans whose stages have groups of devices of different sizes.

#include "engine/search/search_rows.h"
#include "engine/search/stages/unequal_rows.h"
#include "engine/search/time/step_estimate.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/search/search_site.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace planloom {
namespace {

/// A chain of products, each of a width of its own, and a loss.
GraphSnapshot chainOf(const std::vector<std::int64_t> &widths, std::int64_t batch, bool activations = false)
{
    GraphBuilder builder("chain");
    TensorId last = builder.input("x", {DataType::Float32, {batch, widths.front()}});
    for (std::size_t i = 1; i < widths.size(); ++i) {
        const std::string number = std::to_string(i);
        const TensorId weight = builder.weight("w" + number, {widths[i - 1], widths[i]});
        last = builder.one(OperatorKind::Linear, {last, weight, {}}, {}, "product" + number);
        if (activations)
            last = builder.one(OperatorKind::Relu, {last}, {}, "relu" + number);
    }
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {last},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    auto forward = builder.finish({}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward, {.optimizer = OperatorKind::AdamWStep});
    EXPECT_TRUE(graph) << describe(graph.error());
    return shared(*std::move(graph));
}

/// A model that reads no weights and does nothing but add up its input: of that no stage can be made.
TEST(UnequalPlans, NeedOperatorsToMakeStagesOf)
{
    GraphBuilder builder("sum");
    const TensorId x = builder.input("x", {DataType::Float32, {2, 16}});
    const TensorId sum = builder.one(OperatorKind::ReduceSum, {x},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "sum");
    auto graph = builder.finish({sum});
    ASSERT_TRUE(graph) << describe(graph.error());
    const Site site(shared(*std::move(graph)), 16, "mixed-h100-a100");
    const auto found = site.search("");
    ASSERT_TRUE(found) << describe(found.error());
    site.expectHolds("", *found);
}

/// What is found beside meshes is faster than what is found of meshes alone, which a row that allows all of
/// them asks for; it holds.
void expectFasterThanMeshes(const Site &site)
{
    const auto found = site.search("");
    ASSERT_TRUE(found) << describe(found.error());
    EXPECT_TRUE(found->best.configuration.isUnequal()) << toString(found->best.configuration);
    site.expectHolds("", *found);
    const auto meshes = site.search("degree data at least 1\n");
    ASSERT_TRUE(meshes) << describe(meshes.error());
    EXPECT_FALSE(meshes->best.configuration.isUnequal());
    EXPECT_LT(found->best.simulatedSeconds, 0.95 * meshes->best.simulatedSeconds);
}

/// Three devices divide neither the batch nor a dimension, and one of two products has two thirds of the
/// work.
Site lopsided()
{
    return {chainOf({4096, 4096, 8192}, 65'536), 3};
}

TEST(UnequalPlans, GiveAHeavyLayerMoreDevices)
{
    expectFasterThanMeshes(lopsided());
}

/// An H100 and four A100, for three products that are alike.
TEST(UnequalPlans, GiveSlowerDevicesALargerGroup)
{
    Site site(chainOf({8192, 8192, 8192, 8192}, 65'536), 5);
    const Cluster slower = *clusterNamed("dgx-a100:5");
    DeviceClass other{slower.device, slower.links};
    other.links.devicesPerNode = site.cluster.links.devicesPerNode;
    other.links.outer = site.cluster.links.outer;
    other.where = {DeviceRange{1, 4, 0}};
    site.cluster.otherClasses.push_back(std::move(other));
    site.costs = costModelOf(site.cluster);
    expectFasterThanMeshes(site);
}

TEST(UnequalPlans, ComeOnlyWhereRowsLeaveThem)
{
    const Site site = lopsided();
    for (const char *rows :
        {"mesh pp=3\n", "degree pipeline at least 1\n", "place name:product1 : devices 0\n",
            "split name:product1 : m by 2\n", "stage name:product1 : 0\n", "parts all : in all at least 1\n",
            "together name:product1 with name:product2\n", "schedule gpipe\ndegree stages at most 3\n"}) {
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        for (const SearchedPlan &seen : found->seen)
            EXPECT_FALSE(seen.configuration.isUnequal());
    }
    for (const char *rows : {"micro-batches 16\n", "zero1 all\n", "precision all : fp16\n",
             "limit memory 60GiB\n", "schedule gpipe\n", "off mesh pp=3\n"}) {
        SCOPED_TRACE(rows);
        const auto found = site.search(rows);
        ASSERT_TRUE(found) << describe(found.error());
        site.expectHolds(rows, *found);
        EXPECT_TRUE(std::any_of(found->seen.begin(), found->seen.end(),
            [](const SearchedPlan &seen) { return seen.configuration.isUnequal(); }));
    }
}

TEST(UnequalPlans, AreSaidInWords)
{
    Configuration configuration{.ranks = 3, .microBatches = 8, .schedule = ScheduleKind::OneFOneB, .zero = 1};
    configuration.groups = {{0, 2, 2}, {4, 2, 1}, {6, 1, 1}};
    EXPECT_EQ(toString(configuration), "stages on 4 (tp 2), 2, 1 devices, 8 micro-batches, 1f1b, zero1");
    EXPECT_EQ(configuration.devices(), 7);
    EXPECT_EQ(configuration.ofStage(1).devices(), 2);
    EXPECT_EQ(configuration.ofStage(1).firstDevice, 4);
}

/// Whatever is proposed, faster or not, is proven to compute what the model does, and does.
TEST(UnequalPlans, ComputeWhatTheModelDoes)
{
    std::mt19937 random(5);
    const auto count = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random);
    };
    int ran = 0;
    for (int round = 0; round < 12; ++round) {
        SCOPED_TRACE(round);
        std::vector<std::int64_t> widths;
        for (int i = count(3, 5); i >= 0; --i)
            widths.push_back(8 * count(1, 4));
        const GraphSnapshot graph = chainOf(widths, 8, true);
        const Site site(graph, count(3, 7));
        const ConstraintTable rows;
        const auto space = searchSpaceOf(site.model, site.cluster, site.devices, rows);
        ASSERT_TRUE(space);
        const auto estimator = StepEstimator::make(
            site.model, site.cluster, site.devices, rows, *space, site.costs, PrecisionPreset::Float32);
        ASSERT_TRUE(estimator);
        StepEstimate slow;
        slow.seconds = 1;
        slow.configuration.zero = count(0, 3);
        slow.configuration.recompute = count(0, 2) == 0 ? RecomputeWord::Full : RecomputeWord::None;
        const auto proposed = (*estimator)->unequalPlans(slow, {});
        ASSERT_TRUE(proposed) << describe(proposed.error());
        for (const StepEstimate &each : *proposed) {
            SCOPED_TRACE(toString(each.configuration));
            const auto table = unequalRowsOf(each, **estimator, site.model, *space, rows);
            ASSERT_TRUE(table) << describe(table.error());
            const auto plan = loweredRows(graph, print(*table), site.devices);
            ASSERT_TRUE(plan) << describe(plan.error()) << print(*table);
            expectLikeTheModel(graph, *plan);
            ++ran;
        }
    }
    EXPECT_GT(ran, 10);
}

} // namespace
} // namespace planloom
