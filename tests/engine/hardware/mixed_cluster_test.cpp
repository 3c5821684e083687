#include "engine/hardware/cluster_json.h"
#include "engine/hardware/cost_model.h"
#include "engine/hardware/kernel_cost.h"
#include "tests/engine/hardware/profiles.h"

#include <nlohmann/json.hpp>

#include <functional>

namespace planloom {
namespace {

/// Devices `first`, `first` + `step`, ...
std::vector<DeviceId> devicesFrom(std::int32_t first, std::int32_t count, std::int32_t step = 1)
{
    std::vector<DeviceId> devices;
    for (std::int32_t i = 0; i < count; ++i)
        devices.push_back({first + i * step});
    return devices;
}

TEST(MixedCluster, EveryOtherNodeIsOfTheOtherClass)
{
    const Cluster mixed = cluster("mixed-h100-a100:32");
    for (std::int32_t d = 0; d < 32; ++d) {
        EXPECT_EQ(mixed.classOf({d}), d / 8 % 2) << d;
        EXPECT_EQ(mixed.deviceAt({d}), cluster(d / 8 % 2 == 0 ? "dgx-h100:8" : "dgx-a100:8").device);
    }
    EXPECT_EQ(mixed.linksAt({8}).intraBandwidth, cluster("dgx-a100:8").links.intraBandwidth);
    EXPECT_EQ(deviceNames(mixed), "H100-SXM5-80GB, A100-SXM4-80GB");
    EXPECT_EQ(leastMemory(mixed), 80e9);
    const auto again = clusterFromJson(toJson(mixed));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(*again, mixed);
}

TEST(MixedCluster, ProfilesWithoutClassesAreOneClass)
{
    const Cluster plain = cluster("dgx-h100:16");
    EXPECT_EQ(plain.classOf({15}), 0);
    EXPECT_EQ(groupShape(plain, devicesFrom(0, 16)), (GroupShape{16, 2}));
    EXPECT_TRUE(costModelOf(plain).deviceClasses.empty());
}

TEST(MixedCluster, KernelsAndCopiesTakeWhatTheirDeviceTakes)
{
    const CostModel costs = costModelOf(cluster("mixed-h100-a100:16"));
    const CostModel slow = costModelOf(cluster("dgx-a100:8"));
    EXPECT_EQ(costs.classOf({3}), 0);
    EXPECT_EQ(costs.classOf({11}), 1);
    EXPECT_EQ(costs.copy(Bytes{1 << 28}, 1), slow.copy(Bytes{1 << 28}, 0));
    EXPECT_LT(costs.copy(Bytes{1 << 28}, 0), costs.copy(Bytes{1 << 28}, 1));
}

TEST(MixedCluster, CollectivesAreAsFastAsTheirSlowestMember)
{
    const Cluster mixed = cluster("mixed-h100-a100:32");
    const auto seconds = [](const Cluster &of, const std::vector<DeviceId> &members) {
        return collectiveSeconds(of, CollectiveKind::AllReduce, Bytes{1 << 28}, members);
    };
    EXPECT_EQ(seconds(mixed, devicesFrom(0, 8)), seconds(cluster("dgx-h100:8"), devicesFrom(0, 8)));
    EXPECT_EQ(seconds(mixed, devicesFrom(8, 8)), seconds(cluster("dgx-a100:8"), devicesFrom(0, 8)));
    // A hop takes an H100 a little longer than an A100; all else is the A100's.
    const double slower = seconds(cluster("dgx-a100:16"), devicesFrom(0, 16));
    EXPECT_GE(seconds(mixed, devicesFrom(0, 16)), slower);
    EXPECT_LT(seconds(mixed, devicesFrom(0, 16)), 1.02 * slower);
    // The way out of a rack is narrower than the cards of its nodes together, and further.
    const Cluster flat = cluster("dgx-a100:32");
    EXPECT_GE(seconds(mixed, devicesFrom(0, 32)), seconds(flat, devicesFrom(0, 32)));
    const std::vector<DeviceId> far{{0}, {16}};
    EXPECT_GT(collectiveSeconds(mixed, CollectiveKind::SendRecv, Bytes{0}, far),
        collectiveSeconds(cluster("dgx-h100:32"), CollectiveKind::SendRecv, Bytes{0}, far));
}

TEST(LinkLevels, ShapesSeeEveryLevelThatTheyCross)
{
    Cluster deep = cluster("dgx-h100:128");
    deep.links.outer = {
        {"rack", 2, {1e11, "test"}, {2e-5, "test"}}, {"site", 2, {5e10, "test"}, {1e-3, "test"}}};
    const auto outer = [&](const std::vector<DeviceId> &members) {
        const GroupShape shape = groupShape(deep, members);
        return std::tuple(shape.nodes, shape.outer[0], shape.outer[1]);
    };
    EXPECT_EQ(outer(devicesFrom(0, 16)), std::tuple(2, 1, 1));
    EXPECT_EQ(outer(devicesFrom(0, 32)), std::tuple(4, 2, 1));
    EXPECT_EQ(outer(devicesFrom(0, 8, 16)), std::tuple(8, 8, 4));
    // A larger message is as slow as the narrowest level that it crosses.
    const Bytes bytes{std::int64_t{1} << 30};
    const auto send = [&](std::int32_t to) {
        return collectiveSeconds(deep, CollectiveKind::SendRecv, bytes, {{0}, {to}});
    };
    const double card = 48e9;
    EXPECT_DOUBLE_EQ(send(8), 10.3e-6 + static_cast<double>(bytes.count) / card);
    EXPECT_DOUBLE_EQ(send(16), 2e-5 + static_cast<double>(bytes.count) / card);
    deep.links.outer[1].bandwidth.value = 2e10;
    EXPECT_DOUBLE_EQ(send(32), 1e-3 + static_cast<double>(bytes.count) / 2e10);
    EXPECT_DOUBLE_EQ(busBandwidth(deep.links, groupShape(deep, devicesFrom(0, 64))), 2e10);
    // Three hops between four sites of 1 ms, four racks: once round and back.
    const auto ring = collectiveCost(deep.links, CollectiveKind::AllGather, CollectiveAlgorithm::Ring,
        CollectiveProtocol::Simple, groupShape(deep, devicesFrom(0, 128)));
    Cluster flat = deep;
    flat.links.outer.clear();
    const auto near = collectiveCost(flat.links, CollectiveKind::AllGather, CollectiveAlgorithm::Ring,
        CollectiveProtocol::Simple, groupShape(flat, devicesFrom(0, 128)));
    EXPECT_NEAR(ring->latency - near->latency, 7 * (2e-5 - 10.3e-6) + 3 * (1e-3 - 2e-5), 1e-12);
}

TEST(SharedCards, GiveOneDeviceTheWholeCard)
{
    Cluster one = cluster("rtx4090:16");
    const Bytes bytes{12'000'000};
    const auto send = [&] { return collectiveSeconds(one, CollectiveKind::SendRecv, bytes, {{0}, {8}}); };
    EXPECT_DOUBLE_EQ(send(), 10.3e-6 + 8e-3); // a card for each: an eighth of the node's
    one.links.interPorts = {1, "one adapter"};
    EXPECT_DOUBLE_EQ(send(), 10.3e-6 + 1e-3);
}

// The rates of a load are what its time says, and never more than its links give.
TEST(CommunicationLoads, FitTheLinks)
{
    for (const char *name : {"dgx-h100:64", "dgx-a100:64", "rtx4090:16", "mixed-h100-a100:64"}) {
        const Cluster c = cluster(name);
        const CostModel costs = costModelOf(c);
        for (const auto kind :
            {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                CollectiveKind::AllToAll, CollectiveKind::Broadcast, CollectiveKind::SendRecv})
            for (const std::int32_t ranks : {2, 4, 8, 16})
                for (const std::int32_t step : {1, c.deviceCount / ranks})
                    for (std::int64_t bytes = 64; bytes <= std::int64_t{1} << 32; bytes *= 64) {
                        if (kind == CollectiveKind::SendRecv && ranks != 2)
                            continue;
                        SCOPED_TRACE(testing::Message() << name << " " << static_cast<int>(kind) << " "
                                                        << ranks << " by " << step << ", " << bytes);
                        const auto members = devicesFrom(0, ranks, step);
                        const GroupShape shape = groupShape(c, members);
                        const CommunicationLoad load = costs.load(kind, Bytes{bytes}, shape);
                        EXPECT_LE(load.latency, costs.collective(kind, Bytes{bytes}, shape) * (1 + 1e-12));
                        EXPECT_LE(load.device, c.links.intraBandwidth.value * 1.001);
                        EXPECT_LE(
                            load.network, c.links.interBandwidth.value / c.links.devicesPerNode * 1.001);
                        EXPECT_EQ(load.network > 0, shape.nodes > 1);
                    }
    }
}

TEST(UnitsAlike, OnlyWhereNothingTellsThemApart)
{
    EXPECT_TRUE(unitsAlike(cluster("dgx-h100:32"), {4, 8}));
    EXPECT_TRUE(unitsAlike(cluster("dgx-h100:32"), {2, 4})); // both halves of each node
    // Units of twelve devices: the first has eight on its first node, the second four.
    EXPECT_FALSE(unitsAlike(cluster("dgx-h100:24"), {2, 12}));
    EXPECT_FALSE(unitsAlike(cluster("mixed-h100-a100:16"), {2, 8})); // an H100 node and an A100 node
    EXPECT_TRUE(unitsAlike(cluster("mixed-h100-a100:32"), {2, 16}));
    Cluster cards = cluster("dgx-h100:16");
    cards.links.interPorts = {4, "test"};
    EXPECT_TRUE(unitsAlike(cards, {2, 8}));
    EXPECT_TRUE(unitsAlike(cards, {2, 2}));
    EXPECT_TRUE(unitsAlike(cards, {2, 1})); // each card has a device of both
    cards.links.interPorts = {0, ""};
    cards.links.outer = {{"rack", 1, {1e11, "test"}, {1e-5, "test"}}};
    EXPECT_TRUE(unitsAlike(cards, {2, 8}));
}

using Json = nlohmann::json;

TEST(MixedClusterJson, SaysWhereWhatIsWrong)
{
    const Json good = Json::parse(toJson(cluster("mixed-h100-a100:16")));
    struct Case {
        std::function<void(Json &)> spoil;
        const char *where;
    };
    const std::vector<Case> cases{
        {[](Json &j) { j["classes"][0]["devices"][0]["count"] = 0; }, "/classes/0/devices/0/count"},
        {[](Json &j) { j["classes"][0]["devices"][0]["first"] = -1; }, "/classes/0/devices/0/first"},
        {[](Json &j) { j["classes"][0]["devices"][0]["every"] = 7; }, "/classes/0/devices/0/every"},
        {[](Json &j) { j["classes"][0]["devices"][0]["first"] = 16; }, "/classes/0"},
        {[](Json &j) { j["classes"][0]["devices"][0].erase("first"); }, "/classes/0/devices/0/first"},
        {[](Json &j) { j["classes"][0].erase("devices"); }, "/classes/0/nodes"},
        {[](Json &j) { j["classes"][0]["devices"] = 3; }, "/classes/0/devices"},
        {[](Json &j) { j["classes"][0]["device"]["memory"]["value"] = -1; },
            "/classes/0/device/memory/value"},
        {[](Json &j) { j["classes"][0]["device"]["memory"]["value"] = nullptr; },
            "/classes/0/device/memory/value"}, // how JSON writes what is not a number
        {[](Json &j) { j["classes"][0]["device"]["name"] = j["device"]["name"]; }, "/classes/0/device/name"},
        {[](Json &j) { j["classes"][0]["links"]["architecture"] = "pascal"; },
            "/classes/0/links/architecture"},
        {[](Json &j) { j["classes"][0]["links"]["devicesPerNode"] = 4; }, "/classes/0/links/devicesPerNode"},
        {[](Json &j) { j["classes"][0]["links"]["intraBandwidth"]["value"] = 0; },
            "/classes/0/links/intraBandwidth/value"},
        {[](Json &j) {
             Json other = j["classes"][0];
             other["device"]["name"] = "a third";
             other["devices"] = Json::array({{{"first", 12}, {"count", 1}}});
             j["classes"].push_back(other);
         },
            "/classes/1"}, // device 12 is of two classes
        {[](Json &j) {
             for (int i = 0; i < 8; ++i)
                 j["classes"].push_back(j["classes"][0]);
         },
            "/classes"},
        {[](Json &j) { j["links"]["levels"][0]["size"] = 0; }, "/links/levels/0/size"},
        {[](Json &j) { j["links"]["levels"][0]["bandwidth"]["value"] = 0; },
            "/links/levels/0/bandwidth/value"},
        {[](Json &j) { j["links"]["levels"][0]["latency"]["value"] = -1e-6; },
            "/links/levels/0/latency/value"},
        {[](Json &j) { j["links"]["levels"][0]["name"] = ""; }, "/links/levels/0/name"},
        {[](Json &j) {
             for (int i = 0; i < 4; ++i)
                 j["links"]["levels"].push_back(j["links"]["levels"][0]);
         },
            "/links/levels"},
        {[](Json &j) {
             j["links"]["interPorts"] = {{"value", 3}, {"source", "test"}};
         },
            "/links/interPorts/value"},
        {[](Json &j) {
             j["links"]["interPorts"] = {{"value", 16}, {"source", "test"}};
         },
            "/links/interPorts/value"},
    };
    ASSERT_TRUE(clusterFromJson(good.dump()));
    for (const Case &c : cases) {
        Json bad = good;
        c.spoil(bad);
        SCOPED_TRACE(c.where);
        const auto result = clusterFromJson(bad.dump());
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(result.error().where, c.where) << describe(result.error());
    }
}

} // namespace
} // namespace planloom
