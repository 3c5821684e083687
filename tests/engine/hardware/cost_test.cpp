#include "engine/hardware/cost.h"
#include "tests/engine/hardware/profiles.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(OperatorSeconds, IsTheRoofline)
{
    const DeviceModel a100 = cluster("dgx-a100:8").device;
    const double launch = a100.launchLatency.value;
    const double reached = a100.productEfficiency.value;
    const Work product{.flops = 2e12, .bytes = 1e9};
    EXPECT_DOUBLE_EQ(operatorSeconds(a100, OperatorCategory::Product, product, DataType::Float32),
        2e12 / (19.5e12 * reached) + launch);
    EXPECT_DOUBLE_EQ(operatorSeconds(a100, OperatorCategory::Product, product, DataType::BFloat16),
        2e12 / (312e12 * reached) + launch);
    const Work thin{.flops = 1e9, .bytes = 4e9};
    EXPECT_DOUBLE_EQ(operatorSeconds(a100, OperatorCategory::Attention, product, DataType::BFloat16),
        operatorSeconds(a100, OperatorCategory::Product, product, DataType::BFloat16));
    EXPECT_DOUBLE_EQ(operatorSeconds(a100, OperatorCategory::Product, thin, DataType::Float32),
        4e9 / (2.04e12 * 0.88) + launch);
    EXPECT_DOUBLE_EQ(
        operatorSeconds(a100, OperatorCategory::Elementwise, {.flops = 1e9, .bytes = 8e9}, DataType::Float16),
        8e9 / (2.04e12 * 0.88) + launch);
    EXPECT_DOUBLE_EQ(
        operatorSeconds(a100, OperatorCategory::Activation, {.flops = 1e12, .bytes = 8}, DataType::Float16),
        1e12 / 19.5e12 + launch);
    EXPECT_DOUBLE_EQ(operatorSeconds(a100, OperatorCategory::Other, {}, DataType::Float32), launch);
}

TEST(OperatorSeconds, FallsBackToFloat32WhereATypeHasNoUnits)
{
    DeviceModel device = cluster("dgx-a100:8").device;
    device.float16Flops.value = 0;
    const Work work{.flops = 1e12, .bytes = 0};
    EXPECT_DOUBLE_EQ(operatorSeconds(device, OperatorCategory::Product, work, DataType::Float16),
        operatorSeconds(device, OperatorCategory::Product, work, DataType::Float32));
}

TEST(OperatorSeconds, HasRatesOfItsOwnForTensorFloat32AndEightBits)
{
    DeviceModel h100 = cluster("dgx-h100:8").device;
    const Work work{.flops = 1e15, .bytes = 0};
    const auto seconds = [&](DataType type) {
        return operatorSeconds(h100, OperatorCategory::Product, work, type) - h100.launchLatency.value;
    };
    EXPECT_DOUBLE_EQ(seconds(DataType::TensorFloat32), 1e15 / (495e12 * h100.productEfficiency.value));
    EXPECT_DOUBLE_EQ(seconds(DataType::Float8E4M3),
        1e15 / (1979e12 * efficiencyOf(h100, KernelRate::Product, DataType::Float8E4M3).value));
    EXPECT_DOUBLE_EQ(seconds(DataType::Float8E5M2), seconds(DataType::Float8E4M3));
    h100.float8Flops = {};
    h100.formats.clear();
    h100.tensorFloat32Flops.value = 0;
    EXPECT_DOUBLE_EQ(seconds(DataType::Float8E4M3), seconds(DataType::BFloat16));
    EXPECT_DOUBLE_EQ(seconds(DataType::TensorFloat32), seconds(DataType::Float32));
}

TEST(CopySeconds, ReadsAndWrites)
{
    const DeviceModel cpu = cluster("cpu:2").device;
    EXPECT_DOUBLE_EQ(copySeconds(cpu, Bytes{51'000'000'000}), 2 + 1.4e-6);
}

TEST(CollectiveSeconds, OfAGroupOfOneIsNothing)
{
    EXPECT_EQ(
        collectiveSeconds(cluster("dgx-a100:8"), CollectiveKind::AllReduce, Bytes{1000}, {DeviceId{3}}), 0);
    EXPECT_EQ(collectiveSeconds(cluster("cpu:8"), CollectiveKind::AllReduce, Bytes{1000}, {DeviceId{3}}), 0);
}

TEST(CollectiveSeconds, OfSendsTakesTheSlowestLink)
{
    const Cluster a100 = cluster("dgx-a100:16");
    const Bytes bytes{240'000'000};
    EXPECT_DOUBLE_EQ(collectiveSeconds(a100, CollectiveKind::SendRecv, bytes, {DeviceId{0}, DeviceId{7}}),
        a100.links.intraLatency.value + 1e-3);
    EXPECT_DOUBLE_EQ(
        collectiveSeconds(a100, CollectiveKind::SendRecv, bytes, {DeviceId{0}, DeviceId{8}}), 10.3e-6 + 1e-2);
}

TEST(CollectiveSeconds, OfSharedMemoryIsLatencyAndCopies)
{
    const Cluster cpu = cluster("cpu:4");
    const std::vector<DeviceId> all{DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}};
    const Bytes bytes{1'000'000};
    EXPECT_DOUBLE_EQ(
        collectiveSeconds(cpu, CollectiveKind::AllReduce, bytes, all), 2 * 0.9e-6 + 1.5e6 / 25.5e9);
    EXPECT_DOUBLE_EQ(collectiveSeconds(cpu, CollectiveKind::AllGather, bytes, all), 0.9e-6 + 0.75e6 / 25.5e9);
    EXPECT_DOUBLE_EQ(collectiveSeconds(cpu, CollectiveKind::AllToAll, bytes, all), 0.9e-6 + 0.75e6 / 25.5e9);
    EXPECT_DOUBLE_EQ(collectiveSeconds(cpu, CollectiveKind::Broadcast, bytes, all), 0.9e-6 + 1e6 / 25.5e9);
}

TEST(CollectiveSeconds, OfAllToAllSendsEachPeerItsChunk)
{
    const Cluster a100 = cluster("dgx-a100:16");
    std::vector<DeviceId> node, all;
    for (std::int32_t i = 0; i < 16; ++i) {
        all.push_back(DeviceId{i});
        if (i < 8)
            node.push_back(DeviceId{i});
    }
    const Bytes bytes{1'600'000'000};
    const Interconnect &links = a100.links;
    // Its own chunk it copies.
    EXPECT_DOUBLE_EQ(collectiveSeconds(a100, CollectiveKind::AllToAll, bytes, node),
        links.allToAllLatency.value + 1.4e9 / links.allToAllBandwidth.value
            + 0.2e9 / links.ownCopyBandwidth.value);
    Cluster plain = a100;
    plain.links.allToAllLatency = plain.links.allToAllBandwidth = plain.links.ownCopyBandwidth = {};
    EXPECT_DOUBLE_EQ(collectiveSeconds(plain, CollectiveKind::AllToAll, bytes, node),
        links.intraLatency.value + 1.4e9 / 240e9);
    EXPECT_DOUBLE_EQ(collectiveSeconds(a100, CollectiveKind::AllToAll, bytes, all), 10.3e-6 + 0.8e9 / 24e9);
}

} // namespace
} // namespace planloom
