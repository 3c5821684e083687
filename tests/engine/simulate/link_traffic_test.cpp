#include "engine/simulate/link_traffic.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Two nodes of four devices in two racks, two cards a node.
Cluster smallCluster()
{
    Cluster cluster = *clusterNamed("dgx-h100:8");
    cluster.links.devicesPerNode = 4;
    cluster.links.interPorts.value = 2;
    cluster.links.outer = {{.name = "rack", .size = 1}};
    return cluster;
}

ExecutionPlan planOf(std::size_t devices, std::vector<std::vector<DeviceId>> groups)
{
    ExecutionPlan plan;
    plan.devices.resize(devices);
    plan.groups = std::move(groups);
    return plan;
}

std::vector<DeviceId> ids(std::initializer_list<std::int32_t> devices)
{
    std::vector<DeviceId> ids;
    for (const std::int32_t device : devices)
        ids.push_back(DeviceId{device});
    return ids;
}

TEST(LinkTraffic, SendsGoTheirWayLevelByLevel)
{
    const ExecutionPlan plan = planOf(8, {});
    const std::vector<Traffic> traffic{
        {InstructionKind::Send, -1, DeviceId{0}, DeviceId{1}, Bytes{100}, 1}, // inside node 0
        {InstructionKind::Send, -1, DeviceId{0}, DeviceId{4}, Bytes{10}, 1},
        {InstructionKind::Send, -1, DeviceId{1}, DeviceId{5}, Bytes{20}, 1}, // of the same card as 0
        {InstructionKind::Send, -1, DeviceId{3}, DeviceId{7}, Bytes{25}, 1},
        {InstructionKind::Send, -1, DeviceId{4}, DeviceId{0}, Bytes{40}, 1}};
    EXPECT_EQ(levelTraffic(traffic, plan, smallCluster()),
        (std::vector<LevelTraffic>{{"device", Bytes{100}, 0}, {"card", Bytes{40}, 2}, {"node", Bytes{55}, 0},
            {"rack", Bytes{55}, 0}}));
}

TEST(LinkTraffic, CollectivesSendToTheNextMemberAndAllToAllsToAllOthers)
{
    const ExecutionPlan plan = planOf(8, {ids({0, 1, 4, 5}), ids({2, 3, 6, 7})});
    std::vector<Traffic> traffic;
    for (const DeviceId from : plan.groups[0])
        traffic.push_back({InstructionKind::AllReduce, 0, from, {}, Bytes{60}, 1});
    for (const DeviceId from : plan.groups[1])
        traffic.push_back({InstructionKind::AllToAll, 1, from, {}, Bytes{30}, 1});
    // 1 sends to 4, 5 to 0; of the others each sends 10 to each.
    EXPECT_EQ(levelTraffic(traffic, plan, smallCluster()),
        (std::vector<LevelTraffic>{{"device", Bytes{60}, 0}, {"card", Bytes{60}, 0}, {"node", Bytes{100}, 0},
            {"rack", Bytes{100}, 0}}));
}

/// Units of two devices each, so that a node holds two units: what leaves it is of both.
TEST(LinkTraffic, AllUnitsThatShareALinkCount)
{
    ExecutionPlan plan = planOf(2, {});
    plan.units = {.count = 4, .inner = 2};
    const std::vector<Traffic> traffic{
        {InstructionKind::AllReduce, -1, DeviceId{0}, {}, Bytes{8}, 1}, // with the same device of other units
        {InstructionKind::Send, -1, DeviceId{0}, DeviceId{1}, Bytes{3}, 1}};
    const auto levels = levelTraffic(traffic, plan, smallCluster());
    // Units 0 and 1 lie on node 0: unit 0 sends to unit 1 inside, unit 1 to unit 2 outside.
    EXPECT_EQ(levels,
        (std::vector<LevelTraffic>{
            {"device", Bytes{11}, 0}, {"card", Bytes{8}, 1}, {"node", Bytes{8}, 0}, {"rack", Bytes{8}, 0}}));
}

TEST(LinkTraffic, ALimitNamesWhatItMeans)
{
    const std::vector<LevelTraffic> levels{
        {"device", Bytes{9}, 0}, {"node", Bytes{5}, 0}, {"rack", Bytes{2}, 0}};
    EXPECT_EQ(mostCarried(Bytes{11}, levels, ""), Bytes{11});
    EXPECT_EQ(mostCarried(Bytes{11}, levels, "link"), Bytes{9});
    EXPECT_EQ(mostCarried(Bytes{11}, levels, "node"), Bytes{5});
    EXPECT_EQ(mostCarried(Bytes{11}, levels, "rack"), Bytes{2});
    EXPECT_EQ(mostCarried(Bytes{11}, levels, "site"), std::nullopt);
}

} // namespace
} // namespace planloom
