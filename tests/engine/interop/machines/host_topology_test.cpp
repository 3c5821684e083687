#include "engine/interop/machines/host_topology.h"

#include "tests/engine/interop/machines/machine_texts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(NcclTopology, ReadsDevicesLinksAndCards)
{
    const auto host = readNcclTopology(hgxTopology());
    ASSERT_TRUE(host) << describe(host.error());
    ASSERT_EQ(host->devices.size(), 8U);
    for (const HostDevice &device : host->devices) {
        EXPECT_EQ(device.product, "H100 SXM 80GB");
        EXPECT_EQ(device.architecture, "sm 90");
        EXPECT_EQ(device.switchLinks, 18);
        EXPECT_DOUBLE_EQ(device.pcieBandwidth, 48e9);
    }
    ASSERT_EQ(host->nics.size(), 9U);
    EXPECT_EQ(host->nics.front(), (HostNic{"mlx5_0", 50e9}));
    EXPECT_EQ(host->nics.back(), (HostNic{"eth0", 3.125e9}));
    EXPECT_FALSE(host->isAmd);
}

TEST(NcclTopology, ReadsLinksBetweenDevices)
{
    const auto host = readNcclTopology(meshTopology());
    ASSERT_TRUE(host) << describe(host.error());
    ASSERT_EQ(host->devices.size(), 4U);
    for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t b = 0; b < 4; ++b)
            EXPECT_EQ(host->linksBetween(a, b), a == b ? 0 : 4);
}

TEST(NcclTopology, ReadsSecondVersionOfRccl)
{
    const auto host = readNcclTopology(
        "<system version=\"2\"><cpu numaid=\"0\">"
        "<pci busid=\"0000:05:00.0\" vendor=\"0x1002\" device=\"0x74a1\"><gpu dev=\"0\" sm=\"94\" "
        "gcn=\"gfx942\">"
        "<xgmi target=\"0000:26:00.0\" count=\"1\" tclass=\"0x038000\"/></gpu></pci>"
        "<pci busid=\"0000:26:00.0\" vendor=\"0x1002\" device=\"0x74a1\"><gpu dev=\"1\" sm=\"94\" "
        "gcn=\"gfx942\">"
        "<xgmi target=\"0000:05:00.0\" count=\"1\" tclass=\"0x038000\"/></gpu></pci></cpu></system>");
    ASSERT_TRUE(host) << describe(host.error());
    EXPECT_TRUE(host->isAmd);
    EXPECT_EQ(host->devices.front().product, "MI300X");
    EXPECT_EQ(host->linksBetween(0, 1), 1);
}

TEST(NcclTopology, TakesHostsOfADomainApart)
{
    // Both hosts call their places on the bus alike.
    std::string xml = "<system version=\"1\">";
    for (const char *host : {"0xa", "0xb"})
        xml += "<cpu host_hash=\"" + std::string(host)
            + "\" numaid=\"0\"><pci busid=\"0009:06:00.0\" vendor=\"0x10de\" device=\"0x31c2\"><gpu "
              "dev=\"0\" sm=\"103\">"
              "<nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/><c2c bw=\"44712\" "
              "count=\"5\"/></gpu></pci></cpu>";
    const auto host = readNcclTopology(xml + "</system>");
    ASSERT_TRUE(host) << describe(host.error());
    ASSERT_EQ(host->devices.size(), 2U);
    EXPECT_EQ(host->devices[1].switchLinks, 18);
    EXPECT_EQ(host->devices[1].product, "GB300");
}

TEST(SmiTopology, ReadsTheMatrixTheCardsAndTheLegend)
{
    const auto host = readSmiTopology(matrixText(8, "NV18"));
    ASSERT_TRUE(host) << describe(host.error());
    ASSERT_EQ(host->devices.size(), 8U);
    EXPECT_EQ(host->devices[3].name, "GPU3");
    EXPECT_EQ(host->devices[3].line, 5);
    EXPECT_EQ(host->linksBetween(2, 5), 18);
    EXPECT_EQ(host->linksBetween(2, 2), 0);
    EXPECT_EQ(host->nics, (std::vector<HostNic>{{"mlx5_0", 0}, {"mlx5_1", 0}}));
    const auto plain = readSmiTopology(matrixText(2, "SYS"));
    ASSERT_TRUE(plain) << describe(plain.error());
    EXPECT_EQ(plain->linksBetween(0, 1), 0);
    EXPECT_TRUE(readSmiTopology(matrixText(2, "SOC")));
}

TEST(SmiTopology, RefusesAMatrixThatContradictsItself)
{
    const auto placed = [](const std::string &text) {
        const auto host = readSmiTopology(text);
        EXPECT_FALSE(host);
        return host ? std::string() : host.error().where;
    };
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 X NV4\nGPU1 NV3 X\n"), "line:3:1");
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 X NV4\nGPU2 NV4 X\n"), "line:3:1");
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4\n"), "line:3:1");
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 NV4 X\nGPU1 X NV4\n"), "line:2:1");
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 X NV0\nGPU1 NV0 X\n"), "line:2:1");
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 X NV-4\nGPU1 NV-4 X\n"), "line:2:1");
    EXPECT_EQ(placed("GPU0 GPU0\nGPU0 X NV1\n"), "line:1:1");
    EXPECT_EQ(placed("GPU0 NIC0 GPU1\n"), "line:1:1");
    EXPECT_EQ(placed("GPU0 GPU1\nGPU0 X NV4\n"), "line:3:1");
}

TEST(SmiQuery, ReadsProductsMemoryPcieAndDomains)
{
    const auto host = readSmiQuery(queryText(2, "NVIDIA GB200", 189471, "7f2c-11"));
    ASSERT_TRUE(host) << describe(host.error());
    ASSERT_EQ(host->devices.size(), 2U);
    const HostDevice &device = host->devices[1];
    EXPECT_EQ(device.product, "NVIDIA GB200");
    EXPECT_DOUBLE_EQ(device.memory, 189471.0 * 1048576);
    EXPECT_DOUBLE_EQ(device.pcieBandwidth, 48e9);
    EXPECT_EQ(device.domain, "7f2c-11 clique 1");
    const auto alone = readSmiQuery(queryText(1, "NVIDIA H100 80GB HBM3", 81559, "00000000-0000-0000"));
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->devices.front().domain, "");
}

TEST(SmiQuery, SaysWhereItIsCutOff)
{
    const std::string whole = queryText(4, "NVIDIA H100 80GB HBM3", 81559);
    const auto cut = readSmiQuery(whole.substr(0, whole.size() / 2));
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().where, "line:7:1");
    EXPECT_NE(cut.error().message.find("4 devices are attached"), std::string::npos);
}

TEST(HostTopology, CountsPciExpressAsNcclDoes)
{
    EXPECT_DOUBLE_EQ(pcieBandwidth(8, 16), 12e9);
    EXPECT_DOUBLE_EQ(pcieBandwidth(16, 16), 24e9);
    EXPECT_DOUBLE_EQ(pcieBandwidth(32, 8), 24e9);
    EXPECT_EQ(deviceOfPci("0X10DE", "0x2330"), "H100 SXM 80GB");
    EXPECT_EQ(deviceOfPci("0x10de", "0xffff"), "");
}

} // namespace
} // namespace planloom
