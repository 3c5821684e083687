#include "engine/simulate/symmetry.h"

#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace planloom {
namespace {

using test::Order;
using test::PipelineShape;

std::vector<std::int32_t> classesOf(const ExecutionPlan &plan, const char *profile = "dgx2-v100")
{
    const auto symmetry = findSymmetry(plan, test::clusterOf(plan, profile));
    EXPECT_TRUE(symmetry);
    return symmetry ? symmetry->deviceClass : std::vector<std::int32_t>{};
}

TEST(FindSymmetry, MergesReplicasAndShardsOfAStage)
{
    const auto classes = classesOf(
        test::pipelinePlan({.stages = 2, .microBatches = 2, .replicas = 2, .shards = 2, .optimizer = true}));
    EXPECT_EQ(classes, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(FindSymmetry, MergesTheDeviceThatStoresWithThoseThatDoNot)
{
    const auto plan = test::pipelinePlan({.stages = 2, .microBatches = 2, .replicas = 3, .stores = true});
    EXPECT_EQ(classesOf(plan), (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_TRUE(timeline);
    EXPECT_EQ(static_cast<std::int64_t>(timeline->spans.size()), instructionCount(plan));
}

TEST(FindSymmetry, SeparatesAStoreThatWaitsForCommunication)
{
    const auto plan = test::pipelinePlan({.microBatches = 2, .replicas = 2, .shards = 2, .stores = true});
    EXPECT_EQ(classesOf(plan), (std::vector<std::int32_t>{0, 1, 2, 2}));
}

TEST(HiddenStores, AreThoseOfWhatWasJustComputed)
{
    using enum InstructionKind;
    Segment segment;
    segment.instructions = {{.kind = Kernel, .outputs = {0}}, {.kind = Store, .inputs = {0}},
        {.kind = Store, .inputs = {0}}, {.kind = AllReduce, .inputs = {0}, .outputs = {1}},
        {.kind = Store, .inputs = {0}}, {.kind = Kernel, .outputs = {2}}, {.kind = Store, .inputs = {1}},
        {.kind = Store, .inputs = {2}}, {.kind = Store, .inputs = {3}}};
    // 4 follows communication; 6 waits for it; 8 stores what another segment made.
    EXPECT_EQ(hiddenStores(segment), (std::vector<std::int32_t>{1, 2, 7}));
}

TEST(FindSymmetry, SeparatesWhatMeetsADifferentDevice)
{
    auto plan = test::pipelinePlan({.stages = 3, .microBatches = 2, .replicas = 2, .shards = 2});
    // One device of the last stage does more: it differs, its shard mate meets it, and so do those before
    // them.
    auto &instructions = plan.devices[11].segments.edit()[0].instructions;
    instructions.insert(instructions.begin(), instructions[0]);
    EXPECT_EQ(classesOf(plan), (std::vector<std::int32_t>{0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8}));
}

TEST(FindSymmetry, SeparatesLinksThatCrossNodes)
{
    // 24 devices, 8 a node: the middle stage's replicas lie over two nodes, transfers stay alike by distance.
    const auto plan = test::pipelinePlan({.stages = 2, .microBatches = 1, .replicas = 6});
    const auto classes = classesOf(plan, "dgx-a100");
    // Devices 0 and 1 send to 6 and 7 on their own node, 2 to 5 send to the other.
    EXPECT_EQ(classes, (std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 3}));
}

TEST(FindSymmetry, SeparatesDeviceClassesAndWhoSharesLinks)
{
    const auto plan = test::pipelinePlan({.microBatches = 1, .replicas = 4});
    Cluster cluster = test::clusterOf(plan);
    const auto classes = [&] { return findSymmetry(plan, cluster)->deviceClass; };
    EXPECT_EQ(classes(), (std::vector<std::int32_t>{0, 0, 0, 0}));
    cluster.otherClasses.push_back({cluster.device, cluster.links, {{.first = 1, .count = 1}}});
    EXPECT_EQ(classes(), (std::vector<std::int32_t>{0, 1, 0, 0}));
    // Device 0 shares its card with one of the other class, 2 and 3 with one another.
    cluster.links.interPorts.value = 4;
    EXPECT_EQ(classes(), (std::vector<std::int32_t>{0, 1, 2, 2}));
}

TEST(FindSymmetry, KeepsAllDevicesApartWhenAsked)
{
    const auto plan = test::pipelinePlan({.stages = 2, .replicas = 3});
    const auto symmetry = findSymmetry(plan, test::clusterOf(plan), false);
    ASSERT_TRUE(symmetry);
    EXPECT_EQ(symmetry->representative, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
}

bool sameMemory(const MemoryCurve &a, const MemoryCurve &b)
{
    return a.time == b.time && a.bytes == b.bytes && a.peak == b.peak && a.atPeak == b.atPeak;
}

TEST(Symmetry, DoesNotChangeTheTimeline)
{
    std::mt19937 random(11);
    int merged = 0;
    for (int round = 0; round < 60; ++round) {
        const PipelineShape shape{.stages = 1 + static_cast<std::int32_t>(random() % 4),
            .microBatches = 1 + static_cast<std::int32_t>(random() % 4),
            .order = random() % 2 == 0 ? Order::GPipe : Order::OneFOneB,
            .replicas = 1 + static_cast<std::int32_t>(random() % 3),
            .shards = 1 + static_cast<std::int32_t>(random() % 3),
            .kernels = 1 + static_cast<std::int32_t>(random() % 2),
            .stores = random() % 2 == 0,
            .optimizer = random() % 2 == 0,
            .width = 1 << (4 + random() % 16)};
        SCOPED_TRACE(testing::Message() << "round " << round);
        auto plan = test::pipelinePlan(shape);
        for (std::size_t odd = random() % 3; odd > 0; --odd) { // A few devices do something of their own.
            auto &instructions =
                plan.devices[random() % plan.devices.size()].segments.edit()[random() % 2].instructions;
            const auto kernel = std::find_if(instructions.begin(), instructions.end(),
                [](const Instruction &i) { return i.kind == InstructionKind::Kernel; });
            Instruction copy = *kernel;
            copy.deaths.clear();
            instructions.insert(kernel, copy);
        }
        if (random() % 2 == 0
            && !plan.groups.empty()) // Who comes first in a communicator makes no difference.
            std::reverse(plan.groups[0].begin(), plan.groups[0].end());
        const auto cluster = test::clusterOf(plan, random() % 2 == 0 ? "dgx-a100" : "rtx4090");
        const auto together = simulate(plan, cluster);
        const auto apart = simulate(plan, cluster, SimulateOptions{.mergeSymmetric = false});
        ASSERT_TRUE(together) << describe(together.error());
        ASSERT_TRUE(apart) << describe(apart.error());
        EXPECT_EQ(together->step, apart->step);
        EXPECT_EQ(together->busy, apart->busy);
        EXPECT_EQ(together->exposedCommunication, apart->exposedCommunication);
        EXPECT_EQ(together->deviceBegin, apart->deviceBegin);
        EXPECT_EQ(together->spans.device, apart->spans.device);
        EXPECT_EQ(together->spans.queue, apart->spans.queue);
        EXPECT_EQ(together->spans.segment, apart->spans.segment);
        EXPECT_EQ(together->spans.instruction, apart->spans.instruction);
        EXPECT_EQ(together->spans.microBatch, apart->spans.microBatch);
        EXPECT_EQ(together->spans.start, apart->spans.start);
        EXPECT_EQ(together->spans.duration, apart->spans.duration);
        ASSERT_EQ(together->memory.size(), apart->memory.size());
        for (std::size_t d = 0; d < together->memory.size(); ++d)
            EXPECT_TRUE(sameMemory(together->memory[d], apart->memory[d])) << d;
        ASSERT_EQ(together->traffic.size(), apart->traffic.size());
        for (std::size_t i = 0; i < together->traffic.size(); ++i) {
            EXPECT_EQ(together->traffic[i].bytes, apart->traffic[i].bytes);
            EXPECT_EQ(together->traffic[i].from, apart->traffic[i].from);
            EXPECT_EQ(together->traffic[i].to, apart->traffic[i].to);
            EXPECT_EQ(together->traffic[i].group, apart->traffic[i].group);
        }
        const std::set<std::int32_t> classes(together->symmetryClass.begin(), together->symmetryClass.end());
        merged += classes.size() < plan.devices.size() ? 1 : 0;
    }
    EXPECT_GT(merged, 20); // The property is not vacuous.
}

} // namespace
} // namespace planloom
