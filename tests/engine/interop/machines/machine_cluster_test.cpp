#include "engine/interop/machines/machine_cluster.h"

#include "engine/hardware/cluster_json.h"
#include "tests/engine/interop/machines/machine_texts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

MachineCluster made(
    const std::vector<NamedText> &files, const std::string &device = {}, std::int32_t hosts = 0)
{
    auto cluster = machineCluster({files, device, hosts});
    EXPECT_TRUE(cluster) << describe(cluster.error());
    if (!cluster)
        return {};
    // Whatever is made may be written and read again.
    const auto again = clusterFromJson(toJson(cluster->cluster));
    EXPECT_TRUE(again) << describe(again.error());
    if (again) {
        EXPECT_EQ(*again, cluster->cluster);
    }
    EXPECT_EQ(cluster->read.size(), files.size());
    return *std::move(cluster);
}

Error refused(const std::vector<NamedText> &files, const std::string &device = {}, std::int32_t hosts = 0)
{
    const auto cluster = machineCluster({files, device, hosts});
    EXPECT_FALSE(cluster);
    return cluster ? Error{} : cluster.error();
}

bool assumes(const MachineCluster &cluster, const std::string &words)
{
    return std::any_of(cluster.assumed.begin(), cluster.assumed.end(),
        [&](const std::string &sentence) { return sentence.find(words) != std::string::npos; });
}

TEST(MachineCluster, OfAnHgxHostHasItsLinksAndCards)
{
    const MachineCluster one = made({{"node1.xml", hgxTopology()}});
    EXPECT_EQ(one.cluster.device.name, "H100-SXM5-80GB");
    EXPECT_EQ(one.cluster.deviceCount, 8);
    EXPECT_EQ(one.cluster.links.devicesPerNode, 8);
    EXPECT_DOUBLE_EQ(one.cluster.links.intraBandwidth.value, 18 * 20.6e9);
    EXPECT_DOUBLE_EQ(one.cluster.links.interBandwidth.value, 8 * 48e9);
    EXPECT_EQ(one.cluster.links.interPorts.value, 0);
    EXPECT_TRUE(assumes(one, "1 card at most half as fast"));
    EXPECT_NE(one.cluster.links.intraBandwidth.source.find("node1.xml"), std::string::npos);
    EXPECT_EQ(one.cluster.links.intraBandwidth.value, clusterNamed("dgx-h100:8")->links.intraBandwidth.value);
    // Fewer links are less bandwidth.
    EXPECT_DOUBLE_EQ(made({{"a", hgxTopology(4, 8)}}).cluster.links.intraBandwidth.value, 8 * 20.6e9);
    // Several hosts are several nodes; one stands for as many as it is said.
    const auto two = made({{"node1.xml", hgxTopology()}, {"node2.xml", hgxTopology()}}).cluster;
    EXPECT_EQ(two.deviceCount, 16);
    EXPECT_EQ(two.links.devicesPerNode, 8);
    const MachineCluster many = made({{"node1.xml", hgxTopology()}}, {}, 4);
    EXPECT_EQ(many.cluster.deviceCount, 32);
    EXPECT_TRUE(assumes(many, "all 4 hosts are like that"));
}

TEST(MachineCluster, OfAMeshHasTheSumOfItsLinks)
{
    const auto cluster = made({{"mesh.xml", meshTopology()}}).cluster;
    EXPECT_EQ(cluster.device.name, clusterNamed("dgx-a100-40gb:1")->device.name);
    EXPECT_DOUBLE_EQ(cluster.links.intraBandwidth.value, 12 * 20e9);
    EXPECT_DOUBLE_EQ(
        cluster.links.interBandwidth.value, clusterNamed("dgx-a100-40gb:8")->links.interBandwidth.value);
}

TEST(MachineCluster, OfAMatrixNeedsToKnowTheDevice)
{
    const Error error = refused({{"topo.txt", matrixText(8, "NV18")}});
    EXPECT_EQ(error.code, ErrorCode::NotFound);
    EXPECT_EQ(error.where, "--device");
    EXPECT_NE(error.advice.find("dgx-h100"), std::string::npos);
    const MachineCluster h200 = made({{"topo.txt", matrixText(8, "NV18")}}, "H200");
    EXPECT_DOUBLE_EQ(h200.cluster.links.intraBandwidth.value, 18 * 20.6e9);
    EXPECT_EQ(h200.cluster.links.interPorts.value, 2);
    EXPECT_DOUBLE_EQ(h200.cluster.links.interBandwidth.value, 2 * 48e9);
    EXPECT_TRUE(assumes(h200, "how fast a card is does not stand in the file"));
    EXPECT_EQ(made({{"topo.txt", matrixText(8, "NV18")}}, "hgx-h200").cluster, h200.cluster);
    // A query says it, and its memory.
    const auto asked =
        made({{"topo.txt", matrixText(8, "NV18")}, {"q.txt", queryText(8, "NVIDIA H200", 143771)}});
    EXPECT_EQ(asked.cluster.device, h200.cluster.device);
    // More links than such a device has.
    EXPECT_EQ(refused({{"topo.txt", matrixText(8, "NV18")}}, "A100 80GB").where, "topo.txt:line:2:1");
    EXPECT_EQ(refused({{"topo.txt", matrixText(8, "NV18")}}, "no such thing").code, ErrorCode::NotFound);
    // An H800 has eight.
    EXPECT_EQ(refused({{"node.xml", hgxTopology()}}, "H800").where, "node.xml:line:5:1");
    EXPECT_DOUBLE_EQ(
        made({{"node.xml", hgxTopology(8, 8)}}, "H800").cluster.links.intraBandwidth.value, 8 * 20.6e9);
}

TEST(MachineCluster, WithoutNvlinkPassesPciExpress)
{
    // Bridges join pairs of cards alone.
    const std::string pairs = "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV12 SYS SYS\nGPU1 NV12 X SYS SYS\n"
                              "GPU2 SYS SYS X NV12\nGPU3 SYS SYS NV12 X\n";
    EXPECT_EQ(
        made({{"pairs.txt", pairs}}, "A100 80GB").cluster.links.architecture, LinkArchitecture::PcieOnly);
    const MachineCluster cards =
        made({{"topo.txt", matrixText(4, "PHB")}, {"q.txt", queryText(4, "NVIDIA H100 PCIe", 81559)}});
    EXPECT_EQ(cards.cluster.links.architecture, LinkArchitecture::PcieOnly);
    EXPECT_DOUBLE_EQ(cards.cluster.links.intraBandwidth.value, 48e9 / 1.2);
    const MachineCluster unknown = made({{"topo.txt", matrixText(2, "SYS")}}, "A100 80GB");
    EXPECT_EQ(unknown.cluster.links.architecture, LinkArchitecture::PcieOnly);
    EXPECT_TRUE(assumes(unknown, "whose width is not said"));
}

TEST(MachineCluster, JoinsHostsOfAnNvlinkDomain)
{
    std::vector<NamedText> files;
    for (int h = 0; h < 18; ++h)
        files.push_back({"q" + std::to_string(h), queryText(4, "NVIDIA GB200", 189471, "7f2c")});
    const auto cluster = made(files).cluster;
    EXPECT_EQ(cluster.deviceCount, 72);
    EXPECT_EQ(cluster.links.devicesPerNode, 72);
    EXPECT_DOUBLE_EQ(cluster.links.intraBandwidth.value, 18 * 40.1e9);
    // Two domains are two nodes.
    for (int h = 0; h < 18; ++h)
        files.push_back({"r" + std::to_string(h), queryText(4, "NVIDIA GB200", 189471, "81aa")});
    const auto both = made(files).cluster;
    EXPECT_EQ(both.deviceCount, 144);
    EXPECT_EQ(both.links.devicesPerNode, 72);
    // One host stands for all of one.
    const MachineCluster one = made({{"q", queryText(4, "NVIDIA GB200", 189471, "7f2c")}}, {}, 36);
    EXPECT_EQ(one.cluster.links.devicesPerNode, 72);
    EXPECT_EQ(one.cluster.deviceCount, 144);
    EXPECT_TRUE(assumes(one, "18 hosts are an NVLink domain"));
    EXPECT_EQ(refused({{"q", queryText(4, "NVIDIA GB200", 189471, "7f2c")}}, {}, 20).where, "--hosts");
}

TEST(MachineCluster, HasTheSwitchesOfSlurmAboveItsNodes)
{
    const MachineCluster tree = made({{"node.xml", hgxTopology()}, {"topology.conf", kTopologyConf}});
    EXPECT_EQ(tree.cluster.deviceCount, 64);
    ASSERT_EQ(tree.cluster.links.outer.size(), 1U);
    EXPECT_EQ(tree.cluster.links.outer[0].name, "switch");
    EXPECT_EQ(tree.cluster.links.outer[0].size, 4);
    EXPECT_DOUBLE_EQ(
        tree.cluster.links.outer[0].bandwidth.value, 4 * tree.cluster.links.interBandwidth.value);
    EXPECT_TRUE(assumes(tree, "carry all that its nodes send"));
    EXPECT_EQ(made({{"node.xml", hgxTopology()}, {"topology.yaml", kTopologyYaml}}).cluster, tree.cluster);
    EXPECT_EQ(refused({{"topology.conf", kTopologyConf}}).code, ErrorCode::InvalidInput);
    EXPECT_EQ(refused({{"node.xml", hgxTopology()}, {"t", kTopologyConf}}, {}, 4).where, "--hosts");
    EXPECT_EQ(
        refused({{"a", hgxTopology()}, {"b", hgxTopology()}, {"t", kTopologyConf}}).where, "--topology");
}

TEST(MachineCluster, HasClassesOfHostsThatDiffer)
{
    std::string a100 = hgxTopology(8, 12);
    for (std::size_t at = a100.find("0x2330"); at != std::string::npos; at = a100.find("0x2330"))
        a100.replace(at, 6, "0x20b2");
    const auto cluster = made({{"h100.xml", hgxTopology()}, {"a100.xml", a100}}).cluster;
    ASSERT_EQ(cluster.otherClasses.size(), 1U);
    EXPECT_EQ(cluster.classAt(7), 0);
    EXPECT_EQ(cluster.classAt(8), 1);
    EXPECT_EQ(cluster.classAt(15), 1);
    EXPECT_EQ(cluster.otherClasses[0].device.name, "A100-SXM4-80GB");
    EXPECT_DOUBLE_EQ(cluster.otherClasses[0].links.intraBandwidth.value, 12 * 20e9);
    EXPECT_EQ(refused({{"a", hgxTopology(8)}, {"b", hgxTopology(4)}}).code, ErrorCode::InvalidInput);
}

TEST(MachineCluster, ReadsFilesOfOtherSimulators)
{
    const auto simumax = made({{"a100.json", kSimumaxSystem}}, {}, 2).cluster;
    EXPECT_EQ(simumax.deviceCount, 16);
    EXPECT_DOUBLE_EQ(simumax.device.memory.value, 80e9);
    EXPECT_DOUBLE_EQ(simumax.device.productEfficiency.value, 0.7);
    EXPECT_DOUBLE_EQ(simumax.links.intraBandwidth.value, 210e9);
    EXPECT_DOUBLE_EQ(simumax.links.interBandwidth.value, 8 * 12.5e9);
    EXPECT_DOUBLE_EQ(simumax.links.interLatency.value, 20e-6);
    EXPECT_NE(simumax.links.intraBandwidth.source.find("a100.json"), std::string::npos);
    const auto aic = made({{"h100_sxm.yaml", kAiconfiguratorSystem}}).cluster;
    EXPECT_EQ(aic.device.name, "H100-SXM5-80GB");
    EXPECT_EQ(aic.deviceCount, 8);
    EXPECT_DOUBLE_EQ(aic.links.intraBandwidth.value, 450e9);
    EXPECT_DOUBLE_EQ(aic.links.interBandwidth.value, 400e9);
    EXPECT_EQ(refused({{"a", kSimumaxSystem}, {"b", hgxTopology()}}).where, "--topology");
    EXPECT_EQ(refused({{"a", kSimumaxSystem}, {"b", kAiconfiguratorSystem}}).where, "b");
}

TEST(MachineCluster, KnowsFilesByWhatTheyHold)
{
    EXPECT_EQ(machineFileOf(hgxTopology()), MachineFile::NcclTopology);
    EXPECT_EQ(machineFileOf(matrixText(2, "SYS")), MachineFile::SmiTopology);
    EXPECT_EQ(machineFileOf(queryText(1, "x", 1)), MachineFile::SmiQuery);
    EXPECT_EQ(machineFileOf(kTopologyConf), MachineFile::SlurmConf);
    EXPECT_EQ(machineFileOf(kTopologyYaml), MachineFile::SlurmYaml);
    EXPECT_EQ(machineFileOf(kSimumaxSystem), MachineFile::SimumaxSystem);
    EXPECT_EQ(machineFileOf(kAiconfiguratorSystem), MachineFile::AiconfiguratorSystem);
    EXPECT_EQ(machineFileOf("{\"a\": 1}"), std::nullopt);
    EXPECT_EQ(machineFileOf("hello"), std::nullopt);
    EXPECT_EQ(refused({{"notes.txt", "hello"}}).where, "notes.txt");
    EXPECT_EQ(refused({}).where, "--topology");
    EXPECT_EQ(refused({{"a.xml", hgxTopology()}}, {}, 16384).code, ErrorCode::ResourceLimit);
}

} // namespace
} // namespace planloom
