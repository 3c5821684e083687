#include "engine/hardware/cluster.h"

#include "engine/hardware/cluster_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace planloom {
namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to)
{
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos)
        text.replace(at, from.size(), to);
    return text;
}

TEST(ClusterNamed, ReadsEveryProfileWithASourceForEveryFigure)
{
    const auto names = clusterNames();
    EXPECT_EQ(names,
        (std::vector<std::string>{"b200-simumax", "cpu", "dgx-a100", "dgx-a100-40gb", "dgx-h100", "dgx2-v100",
            "gb200-nvl36", "gb200-nvl72", "gb300-nvl72", "h100-pcie", "hgx-b200", "hgx-b300", "hgx-h100-96gb",
            "hgx-h200", "hgx-h800", "mi300x", "mi325x", "mi350x", "mi355x", "mixed-h100-a100", "rtx4090"}));
    for (const std::string &name : names) {
        SCOPED_TRACE(name);
        const auto cluster = clusterNamed(name + ":4");
        ASSERT_TRUE(cluster) << describe(cluster.error());
        EXPECT_EQ(cluster->name, name + ":4");
        EXPECT_EQ(cluster->deviceCount, 4);
        for (const Sourced *figure :
            {&cluster->device.float32Flops, &cluster->device.tensorFloat32Flops,
                &cluster->device.float16Flops, &cluster->device.float64Flops,
                &cluster->device.productEfficiency, &cluster->device.memory, &cluster->device.memoryBandwidth,
                &cluster->device.memoryEfficiency, &cluster->device.launchLatency,
                &cluster->links.intraBandwidth, &cluster->links.intraChannels, &cluster->links.intraLatency,
                &cluster->links.interBandwidth, &cluster->links.interLatency})
            EXPECT_FALSE(figure->source.empty());
        // No rate is one that made the times of training runs right.
        for (const Sourced &figure : {cluster->device.productEfficiency, cluster->device.attentionEfficiency})
            EXPECT_EQ(figure.source.find("fitted"), std::string::npos) << figure.source;
        // Four devices of a mixed one are of one class, which files refuse.
        if (cluster->otherClasses.empty()) {
            EXPECT_EQ(*clusterFromJson(toJson(*cluster)), *cluster);
        }
    }
}

TEST(ClusterNamed, FindsTheProfileOfADevice)
{
    const std::pair<const char *, const char *> known[]{{"H100", "dgx-h100"}, {"8x H100", "dgx-h100"},
        {"H100-SXM-80GB", "dgx-h100"}, {"h100_sxm", "dgx-h100"}, {"h100_80gb", "dgx-h100"},
        {"DGX-H100", "dgx-h100"}, {"ND_H100_v5_n1344_pytorch", "dgx-h100"}, {"NVIDIA H100 PCIe", "h100-pcie"},
        {"one node, 8 B200 SXM on NVLink 5", "b200-simumax"}, {"8 B200 SXM", "hgx-b200"},
        {"H100 96 GB HBM2e 500 W", "hgx-h100-96gb"}, {"MI350X", "mi350x"}, {"hpg.dgxb200x8.n1", "hgx-b200"},
        {"B200-SXM-180GB", "hgx-b200"}, {"b300_sxm", "hgx-b300"}, {"GB200", "gb200-nvl72"},
        {"GB200 NVL36", "gb200-nvl36"}, {"GB300 NVL72", "gb300-nvl72"}, {"a100_40gb", "dgx-a100-40gb"},
        {"a100_80gb", "dgx-a100"}, {"a100_sxm", "dgx-a100"}, {"A100 80 GB, 400 Gb/s a node", "dgx-a100"},
        {"H200 141 GB", "hgx-h200"}, {"64 H800 (8 a node)", "hgx-h800"}, {"MI300X", "mi300x"},
        {"MI355X", "mi355x"}, {"V100", "dgx2-v100"}, {"RTX 4090", "rtx4090"}};
    for (const auto &[words, profile] : known)
        EXPECT_EQ(profileOfDevice(words), profile) << words;
    for (const char *words : {"", "GH200", "H100 64 GB", "MI999X", "vr200", "80 GB"})
        EXPECT_EQ(profileOfDevice(words), std::nullopt) << words;
}

TEST(ClusterNamed, HasTheFiguresOfTheDataSheets)
{
    const auto h100 = clusterNamed("dgx-h100:16");
    ASSERT_TRUE(h100);
    EXPECT_EQ(h100->device.float16Flops.value, 989e12);
    EXPECT_EQ(h100->device.memory.value, 80e9);
    EXPECT_EQ(h100->links.architecture, LinkArchitecture::Hopper);
    EXPECT_EQ(h100->nodeOf(DeviceId{7}), 0);
    EXPECT_EQ(h100->nodeOf(DeviceId{8}), 1);
    const auto v100 = clusterNamed("dgx2-v100:32");
    ASSERT_TRUE(v100);
    EXPECT_EQ(v100->links.devicesPerNode, 16);
    EXPECT_EQ(v100->nodeOf(DeviceId{31}), 1);
}

TEST(ClusterNamed, RefusesWhatItDoesNotKnow)
{
    const auto unknown = clusterNamed("dgx-1:8");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
    EXPECT_NE(unknown.error().advice.find("dgx-a100"), std::string::npos);
    for (const char *name :
        {"cpu", "cpu:", "cpu:0", "cpu:-1", "cpu:16385", "cpu:4x", "cpu:4:4", "cpu:99999999999999"}) {
        SCOPED_TRACE(name);
        const auto cluster = clusterNamed(name);
        ASSERT_FALSE(cluster);
        EXPECT_EQ(cluster.error().code, ErrorCode::InvalidInput);
    }
    ASSERT_TRUE(clusterNamed("cpu:16384"));
    const auto missing = clusterNamed("/nowhere/at/all.json");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
}

TEST(ClusterNamed, ReadsAFile)
{
    auto expected = clusterNamed("dgx-a100:24");
    ASSERT_TRUE(expected);
    expected->name = "mine";
    const auto path = std::filesystem::temp_directory_path() / "planloom-cluster-test.json";
    std::ofstream(path) << toJson(*expected);
    const auto cluster = clusterNamed(path.string());
    ASSERT_TRUE(cluster) << describe(cluster.error());
    EXPECT_EQ(*cluster, *expected);

    std::ofstream(path) << replaced(toJson(*expected), "\"ampere\"", "\"pascal\"");
    const auto wrong = clusterNamed(path.string());
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().where, path.string() + "#/links/architecture");
    std::filesystem::remove(path);
}

/// Of a field that is missing because its name is misspelt, the name that stands there is said.
TEST(ClusterJson, AMisspeltFieldIsNamed)
{
    const std::string text = toJson(*clusterNamed("dgx-a100:8"));
    for (const auto &[right, wrong] : {std::pair{"intraBandwidth", "intraBandwith"},
             std::pair{"memoryEfficiency", "memoryEficiency"}, std::pair{"interLatency", "intreLatency"}}) {
        std::string changed = text;
        const std::size_t at = changed.find("\"" + std::string(right) + "\"");
        ASSERT_NE(at, std::string::npos) << right;
        changed.replace(at + 1, std::string(right).size(), wrong);
        const auto read = clusterFromJson(changed);
        ASSERT_FALSE(read) << wrong;
        EXPECT_NE(read.error().advice.find(wrong), std::string::npos)
            << read.error().message << " / " << read.error().advice;
    }
    // Where nothing is nearly called so, nothing is guessed.
    std::string other = text;
    const std::size_t at = other.find("\"intraBandwidth\"");
    other.replace(at + 1, 14, "zzzzzzzz");
    const auto read = clusterFromJson(other);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().advice.find("zzzz"), std::string::npos);
}

TEST(ClusterFromJson, NamesThePlaceOfWhatIsWrong)
{
    const auto cluster = clusterNamed("dgx-h100:8");
    ASSERT_TRUE(cluster);
    const std::string text = toJson(*cluster);
    ASSERT_TRUE(clusterFromJson(text));
    struct Case {
        const char *from;
        const char *to;
        const char *where;
    };
    const std::string value =
        "\"value\": " + std::to_string(cluster->device.productEfficiency.value).substr(0, 5);
    const auto cut = value.find_last_not_of('0');
    const std::string share = value.substr(0, cut + 1);
    for (const Case &c : {Case{"\"deviceCount\": 8", "\"deviceCount\": 0", "/deviceCount"},
             Case{"\"deviceCount\": 8", "\"deviceCount\": 8.5", "/deviceCount"},
             Case{"\"deviceCount\": 8", "\"deviceCount\": 1e400", "/"},
             Case{"\"deviceCount\": 8", "\"devices\": 8", "/deviceCount"},
             Case{"\"version\": 1", "\"version\": 2", "/version"},
             Case{"\"format\": \"planloom-cluster\"", "\"format\": \"x\"", "/format"},
             Case{share.c_str(), "\"value\": 1.72", "/device/productEfficiency/value"},
             Case{share.c_str(), "\"value\": \"0.72\"", "/device/productEfficiency/value"},
             Case{share.c_str(), "\"value\": 0", "/device/productEfficiency/value"},
             Case{share.c_str(), "\"v\": 0", "/device/productEfficiency/value"},
             Case{"\"name\": \"dgx-h100:8\"", "\"name\": \"\"", "/name"},
             Case{"\"name\": \"dgx-h100:8\"", "\"name\": \"a\", \"extra\": 1", "/extra"},
             Case{"{", "[", "/"}}) {
        SCOPED_TRACE(c.to);
        const auto result = clusterFromJson(replaced(text, c.from, c.to));
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(result.error().where, c.where) << describe(result.error());
    }
    EXPECT_FALSE(clusterFromJson(""));
    EXPECT_FALSE(clusterFromJson("[]"));
    EXPECT_FALSE(clusterFromJson("null"));
    EXPECT_FALSE(clusterFromJson("\"\xff\""));
    EXPECT_FALSE(clusterFromJson(std::string(100000, '[')));
}

} // namespace
} // namespace planloom
