// Files that want to do harm are refused with a place and a reason; whatever bytes a file has, it is read or
// refused.

#include "engine/hardware/cluster_json.h"
#include "engine/interop/machines/machine_cluster.h"

#include "tests/engine/interop/machines/machine_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace planloom {
namespace {

struct HostileFile {
    const char *name = "";
    std::string text{};
    std::string where{}; ///< Of the error.
    ErrorCode code = ErrorCode::InvalidInput;
};

std::string repeated(const std::string &text, int times)
{
    std::string all;
    for (int i = 0; i < times; ++i)
        all += text;
    return all;
}

std::string replaced(std::string text, const std::string &part, const std::string &by)
{
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), by);
}

std::vector<HostileFile> hostileFiles()
{
    const std::string host = hgxTopology();
    return {
        {"entities that grow",
            "<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\n<system version=\"1\"/>",
            "f:line:1:1"},
        {"an entity that names a file", "<system version=\"&passwd;\"/>", "f:line:1:18"},
        {"deep elements", "<system version=\"1\">" + repeated("<pci busid=\"1\">", 100'000), "f:line:1:966",
            ErrorCode::ResourceLimit},
        {"many elements", "<system version=\"1\">\n" + repeated("<cpu/>\n", 200'000), "f:line:100001:1",
            ErrorCode::ResourceLimit},
        {"a version that is none", "<system version=\"9\"/>", "f:line:1:1"},
        {"a width below zero",
            replaced(host, "link_width=\"16\">\n        <gpu", "link_width=\"-16\">\n        <gpu"),
            "f:line:4:1"},
        {"a count that overflows", replaced(host, "count=\"5\"", "count=\"99999999999999999999\""),
            "f:line:6:1"},
        {"a device twice", replaced(host, "busid=\"0000:11:00.0\"", "busid=\"0000:10:00.0\""), "f:line:20:1"},
        {"a link to nobody", replaced(meshTopology(), "target=\"0001:03:00.0\"", "target=\"0009:03:00.0\""),
            "f:line:5:1"},
        {"a link one way", replaced(meshTopology(), "count=\"4\"", "count=\"3\""), "f:line:3:1"},
        {"a file that was cut off", host.substr(0, host.size() / 2), ""},
        {"a switch below itself",
            "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=a\n", "f:line:1:1"},
        {"very many hosts", "SwitchName=a Nodes=node[1-999999999]\n", "f:line:1:1", ErrorCode::ResourceLimit},
        {"hosts by brackets in brackets", "SwitchName=a Nodes=n[0-99][0-99][0-99][0-99]\n", "f:line:1:1",
            ErrorCode::ResourceLimit},
        {"a host twice", "SwitchName=a Nodes=n[1-4],n3\n", "f:line:1:1"},
        {"aliases that grow",
            "- topology: &a [x,x,x,x,x,x,x,x]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c "
            "[*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "  d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\n  f: &f "
            "[*e,*e,*e,*e,*e,*e,*e,*e]\n  g: [*f,*f,*f,*f,*f,*f,*f,*f]\n",
            "f:line:1:1", ErrorCode::ResourceLimit},
        {"deep YAML", "- topology: " + repeated("[", 5000), ""},
        {"a share above one",
            replaced(kSimumaxSystem, "\"efficient_factor\": 0.7,", "\"efficient_factor\": 7,"),
            "f:line:13:1"},
        {"a bandwidth that is no number", replaced(kAiconfiguratorSystem, "450000000000", ".nan"),
            "f:line:11:1"},
        {"a bandwidth below zero", replaced(kAiconfiguratorSystem, "450000000000", "-1"), "f:line:11:1"},
        {"a figure twice", std::string(kAiconfiguratorSystem) + "  intra_node_bw: 1\n", "f:line:13:1"},
        {"a matrix without a mirror", replaced(matrixText(4, "NV4"), "NV4", "NV5"), "f:line:3:1"},
        {"a query of fewer devices", replaced(queryText(2, "NVIDIA H100", 80000), ": 2\n", ": 9\n"),
            "f:line:7:1"},
        {"a terminal's commands", "GPU0 GPU1\nGPU0 X \x1b]0;owned\x07\nGPU1 NV1 X\n", "f:line:2:1"},
        {"binary junk", std::string("GPU0\0\x01\xff\xfe GPU1\n\x80\x81", 18), ""},
        {"nothing", "", "f"},
    };
}

/// Nothing in it moves a terminal.
bool isPrintable(const std::string &text)
{
    return std::none_of(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

TEST(HostileMachineFiles, AreRefusedWithPlaceAndReason)
{
    for (const HostileFile &file : hostileFiles()) {
        SCOPED_TRACE(file.name);
        const auto made = machineCluster({{{"f", file.text}}, "H100", 0});
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code, file.code) << describe(made.error());
        EXPECT_FALSE(made.error().message.empty());
        EXPECT_TRUE(made.error().where.starts_with("f")) << describe(made.error());
        if (!file.where.empty()) {
            EXPECT_EQ(made.error().where, file.where) << describe(made.error());
        }
        EXPECT_LT(describe(made.error()).size(), 1000U);
        EXPECT_TRUE(isPrintable(made.error().message)) << describe(made.error());
    }
}

/// Some bytes of a good file are others, gone, or there twice.
std::string mutated(std::string text, std::mt19937 &random)
{
    for (std::uint32_t i = 1 + random() % 4; i > 0 && !text.empty(); --i) {
        const std::size_t at = random() % text.size();
        switch (random() % 5) {
        case 0:
            text[at] = static_cast<char>(random() % 256);
            break;
        case 1:
            text.erase(at, 1 + random() % 20);
            break;
        case 2:
            text.insert(at, text.substr(random() % text.size(), random() % 40));
            break;
        case 3:
            text[at] = "0123456789-[]<>\"=&*:,"[random() % 21];
            break;
        default:
            text.resize(at);
        }
    }
    return text;
}

/// A name of bytes that are no text is one that cluster files can hold.
TEST(HostileMachineFiles, NamesAreText)
{
    const std::string file = replaced(kSimumaxSystem, "\"sys_name\": \"", "\"sys_name\": \"a100_R\xec\x13 ");
    const auto made = machineCluster({{{"file", file}}, "A100", 0});
    ASSERT_TRUE(made) << describe(made.error());
    for (const char c : made->cluster.name)
        EXPECT_TRUE(c >= ' ' && c < 0x7f) << made->cluster.name;
    const auto again = clusterFromJson(toJson(made->cluster));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, made->cluster);
}

TEST(HostileMachineFiles, OfMutatedBytesAreReadOrRefused)
{
    const std::vector<std::string> seeds{hgxTopology(2), meshTopology(), matrixText(3, "NV4"),
        queryText(2, "NVIDIA H100 80GB HBM3", 81559, "7f2c"), kTopologyConf, kTopologyYaml, kSimumaxSystem,
        kAiconfiguratorSystem};
    std::mt19937 random(11);
    std::int32_t read = 0;
    std::int32_t refused = 0;
    for (int round = 0; round < 5000; ++round) {
        std::vector<NamedText> files{{"f", mutated(seeds[random() % seeds.size()], random)}};
        if (round % 4 == 0)
            files.push_back({"g", mutated(kTopologyConf, random)});
        const auto made =
            machineCluster({files, round % 2 == 0 ? "H100" : "", static_cast<std::int32_t>(random() % 3)});
        if (made) {
            ++read;
            EXPECT_GT(made->cluster.deviceCount, 0);
            continue;
        }
        ++refused;
        EXPECT_NE(made.error().code, ErrorCode::Internal) << describe(made.error());
        EXPECT_FALSE(made.error().message.empty());
        EXPECT_FALSE(made.error().where.empty()) << describe(made.error());
        EXPECT_TRUE(isPrintable(made.error().message));
    }
    EXPECT_GT(read, 300);
    EXPECT_GT(refused, 300);
}

} // namespace
} // namespace planloom
