#include "engine/hardware/nccl_model.h"
#include "tests/engine/hardware/profiles.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

std::vector<DeviceId> firstDevices(std::int32_t count, std::int32_t step = 1)
{
    std::vector<DeviceId> devices;
    for (std::int32_t i = 0; i < count; ++i)
        devices.push_back(DeviceId{i * step});
    return devices;
}

/// nccl-tests' bus bandwidth of an all-reduce, GB/s.
double busGigabytes(double seconds, double bytes, double n)
{
    return bytes / seconds * 2 * (n - 1) / n / 1e9;
}

/// Without what was measured of them: as NCCL's own constants have them.
Interconnect asTuned(const char *name)
{
    Interconnect links = cluster(name).links;
    links.startLatency = links.hopLatency = links.ownCopyBandwidth = {};
    return links;
}

double ringAllReduceBus(const char *name, std::int32_t n)
{
    const Cluster c = cluster(name);
    const auto time = collectiveTime(c.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Ring,
        CollectiveProtocol::Simple, groupShape(c, firstDevices(n)), Bytes{1'000'000'000});
    EXPECT_TRUE(time);
    return busGigabytes(*time, 1e9, n);
}

// The model's values for NCCL 2.28.9 and what was published: 120, 230-232, 370 GB/s (runtime-facts.md,
// section 5).
TEST(NcclModel, GivesThePublishedBusBandwidthOfLargeRings)
{
    EXPECT_NEAR(ringAllReduceBus("dgx2-v100:16", 16), 119, 1.5);
    EXPECT_NEAR(ringAllReduceBus("dgx-a100:8", 8), 231, 0.05 * 231);
    EXPECT_NEAR(ringAllReduceBus("dgx-h100:8", 8), 370, 0.06 * 370);
}

TEST(NcclModel, GivesThePublishedTimeOfSmallMessages)
{
    const auto small = [](const char *name, std::int32_t n, std::int64_t bytes = 16384) {
        return collectiveSeconds(cluster(name), CollectiveKind::AllReduce, Bytes{bytes}, firstDevices(n))
            * 1e6;
    };
    // aiconfigurator's times of nccl-tests.
    EXPECT_NEAR(small("dgx-a100:8", 8), 22.6, 2.3);
    EXPECT_NEAR(small("dgx-h100:8", 8), 19, 2);
    EXPECT_NEAR(small("hgx-b200:8", 8), 26.6, 2.7);
    EXPECT_NEAR(small("gb300-nvl72:4", 4), 16.1, 1.6);
    EXPECT_NEAR(small("dgx2-v100:16", 16, 1024), 25, 0.8);
    EXPECT_NEAR(small("rtx4090:8", 8, 1024), 21, 0.8);
}

TEST(NcclModel, AddsInTheSwitchFromHopperOn)
{
    const Cluster h100 = cluster("dgx-h100:8");
    const auto choice =
        fastestCollective(h100.links, CollectiveKind::AllReduce, {8, 1}, Bytes{1'000'000'000});
    EXPECT_EQ(choice.algorithm, CollectiveAlgorithm::Nvls);
    EXPECT_NEAR(
        busGigabytes(choice.seconds, 1e9, 8), 475, 0.05 * 475); // nccl-tests issues 212 and 272: 475-480.
    EXPECT_FALSE(collectiveCost(cluster("dgx-a100:8").links, CollectiveKind::AllReduce,
        CollectiveAlgorithm::Nvls, CollectiveProtocol::Simple, {8, 1}));
}

TEST(NcclModel, TakesWhatWasMeasuredOfStartsHopsAndCopies)
{
    const GroupShape node{8, 1};
    const auto cost = [&](const Interconnect &links, CollectiveProtocol protocol) {
        return *collectiveCost(links, CollectiveKind::AllGather, CollectiveAlgorithm::Ring, protocol, node);
    };
    const Interconnect tuned = asTuned("dgx-a100:8");
    Interconnect own = tuned;
    own.startLatency.value = 10.6e-6; // NCCL's 6.6 and 4 more
    own.hopLatency.value = 1.6e-6; // and 1 more
    own.ownCopyBandwidth.value = 500e9;
    for (const auto protocol : {CollectiveProtocol::LowLatency, CollectiveProtocol::Simple}) {
        EXPECT_NEAR(cost(own, protocol).latency - cost(tuned, protocol).latency, (4 + 7 * 1) * 1e-6, 1e-12);
        EXPECT_NEAR(
            1 / cost(own, protocol).bandwidth - 1 / cost(tuned, protocol).bandwidth, 1 / 8.0 / 500e9, 1e-16);
    }
}

TEST(NcclModel, IsTheFormulaOfEachAlgorithm)
{
    Cluster a100 = cluster("dgx-a100:32");
    a100.links = asTuned("dgx-a100:32");
    const GroupShape two{16, 2};
    // Ring over two nodes: 30 steps, 2 of them across; the bus is the nodes' 192 GB/s.
    const auto ring = collectiveCost(a100.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Ring,
        CollectiveProtocol::LowLatency128, two);
    ASSERT_TRUE(ring);
    EXPECT_DOUBLE_EQ(ring->latency, (14.0 + 28 * 1.9 + 2 * 4.0) * 1e-6);
    EXPECT_DOUBLE_EQ(ring->bandwidth, 192e9 * 0.92 * 16 / 30);
    // Simple: each step inside costs at least three times the processor's overhead.
    const auto simple = collectiveCost(a100.links, CollectiveKind::ReduceScatter, CollectiveAlgorithm::Ring,
        CollectiveProtocol::Simple, two);
    ASSERT_TRUE(simple);
    EXPECT_DOUBLE_EQ(simple->latency, (8.4 + 14 * 3.4 + 1 * 14.0) * 1e-6);
    EXPECT_DOUBLE_EQ(simple->bandwidth, 192e9 * 16 / 15);
    // Tree: 7 hops inside and log2(2) across, up and down.
    const auto tree = collectiveCost(a100.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Tree,
        CollectiveProtocol::LowLatency, two);
    ASSERT_TRUE(tree);
    EXPECT_DOUBLE_EQ(tree->latency, (6.8 + 2 * (7 * 0.6 + 5.0)) * 1e-6);
    EXPECT_DOUBLE_EQ(tree->bandwidth, 22.5e9 / 2);
    EXPECT_FALSE(collectiveCost(
        a100.links, CollectiveKind::AllGather, CollectiveAlgorithm::Tree, CollectiveProtocol::Simple, two));
    // PAT: one device a node.
    const auto pat = collectiveCost(
        a100.links, CollectiveKind::AllGather, CollectiveAlgorithm::Pat, CollectiveProtocol::Simple, {4, 4});
    ASSERT_TRUE(pat);
    EXPECT_DOUBLE_EQ(pat->latency, (8 + 2 * 14.0 * (1 / 3.5) + 4 * 2.8) * 1e-6);
    EXPECT_DOUBLE_EQ(pat->bandwidth, 192e9 / 8 * 0.75);
    // PCIe has no LL128.
    EXPECT_FALSE(collectiveCost(cluster("rtx4090:8").links, CollectiveKind::AllReduce,
        CollectiveAlgorithm::Ring, CollectiveProtocol::LowLatency128, {8, 1}));
}

TEST(NcclModel, CorrectsTreesAndPlateaus)
{
    const Cluster a100 = cluster("dgx-a100:16");
    const GroupShape two{16, 2};
    const auto cost = collectiveCost(
        a100.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Tree, CollectiveProtocol::Simple, two);
    const auto time = collectiveTime(a100.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Tree,
        CollectiveProtocol::Simple, two, Bytes{1 << 20});
    ASSERT_TRUE(cost && time);
    EXPECT_DOUBLE_EQ(*time, cost->latency + (1 << 20) / (cost->bandwidth * 0.5));
    const auto ring = collectiveCost(
        a100.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Ring, CollectiveProtocol::Simple, two);
    const auto large = collectiveTime(a100.links, CollectiveKind::AllReduce, CollectiveAlgorithm::Ring,
        CollectiveProtocol::Simple, two, Bytes{1 << 30});
    ASSERT_TRUE(ring && large);
    EXPECT_DOUBLE_EQ(*large, ring->latency * 1.4 + (1 << 30) / ring->bandwidth);
}

TEST(NcclModel, FindsTheShapeOfAGroup)
{
    const Cluster a100 = cluster("dgx-a100:32");
    EXPECT_EQ(groupShape(a100, firstDevices(8)), (GroupShape{8, 1}));
    EXPECT_EQ(groupShape(a100, firstDevices(4, 8)), (GroupShape{4, 4}));
    EXPECT_EQ(groupShape(a100, firstDevices(8, 4)), (GroupShape{8, 4}));
    EXPECT_DOUBLE_EQ(busBandwidth(a100.links, {8, 1}), 240e9);
    EXPECT_DOUBLE_EQ(busBandwidth(a100.links, {4, 4}), 24e9); // One adapter of eight.
    EXPECT_DOUBLE_EQ(busBandwidth(a100.links, {32, 4}), 192e9);
}

TEST(NcclModel, NeverTakesLessTimeForMore)
{
    for (const char *name : {"dgx2-v100:64", "dgx-a100:64", "dgx-h100:64", "hgx-b200:64", "gb200-nvl72:64",
             "mi300x:64", "rtx4090:64", "cpu:64"}) {
        const Cluster c = cluster(name);
        for (const auto kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                 CollectiveKind::AllToAll, CollectiveKind::Broadcast, CollectiveKind::SendRecv}) {
            for (const std::int32_t n : {2, 8, 16, 64}) {
                if (kind == CollectiveKind::SendRecv && n != 2)
                    continue;
                double last = 0;
                for (std::int64_t bytes = 1; bytes <= 1LL << 32; bytes *= 4) {
                    const double seconds = collectiveSeconds(c, kind, Bytes{bytes}, firstDevices(n));
                    EXPECT_GE(seconds, last)
                        << name << " " << static_cast<int>(kind) << " " << n << " " << bytes;
                    last = seconds;
                }
            }
        }
    }
}

} // namespace
} // namespace planloom
