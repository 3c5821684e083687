#include "engine/interop/machines/host_names.h"
#include "engine/interop/machines/slurm_topology.h"

#include "tests/engine/interop/machines/machine_texts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

using Names = std::vector<std::string>;

TEST(HostNames, ReadsRangesListsAndSeveralBrackets)
{
    EXPECT_EQ(hostNames("node[01-03,09],login").value_or(Names{}),
        (Names{"node01", "node02", "node03", "node09", "login"}));
    EXPECT_EQ(hostNames("r[0-1]n[8-10]x").value_or(Names{}),
        (Names{"r0n8x", "r0n9x", "r0n10x", "r1n8x", "r1n9x", "r1n10x"}));
    EXPECT_EQ(hostNames("a[099-101]").value_or(Names{}), (Names{"a099", "a100", "a101"}));
}

TEST(HostNames, RefusesWhatIsNoExpressionOrNamesTooMany)
{
    for (const char *text : {"", "a,,b", "node[1-", "node[]", "node[3-1]", "node[a-b]", "node]", "node[1--2]",
             "[1-2", "a[1][1][1][1][1]", "node[-1]"}) {
        const auto names = hostNames(text);
        ASSERT_FALSE(names) << text;
        EXPECT_EQ(names.error().code, ErrorCode::InvalidInput) << text;
    }
    for (const char *text : {"node[1-999999999]", "node[1-99999999999999999999]", "a[0-999]b[0-999]",
             "a[0-9999],b[0-9999]", "a[0-99]b[0-99]c[0-99]d[0-99]"}) {
        const auto names = hostNames(text);
        ASSERT_FALSE(names) << text;
        EXPECT_EQ(names.error().code, ErrorCode::ResourceLimit) << text;
    }
}

TEST(SlurmTopology, ReadsTreesOfBothFormsAlike)
{
    const auto conf = readTopologyConf(kTopologyConf);
    ASSERT_TRUE(conf) << describe(conf.error());
    EXPECT_EQ(conf->hosts.size(), 8U);
    EXPECT_EQ(conf->hosts.front(), "node01");
    EXPECT_EQ(conf->levels, (std::vector<SwitchLevel>{{"switch", 4, true}}));
    const auto yaml = readTopologyYaml(kTopologyYaml);
    ASSERT_TRUE(yaml) << describe(yaml.error());
    EXPECT_EQ(*yaml, *conf);
}

TEST(SlurmTopology, ReadsBlocksAndUnevenSwitches)
{
    const auto blocks =
        readTopologyConf("BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18\n");
    ASSERT_TRUE(blocks) << describe(blocks.error());
    EXPECT_EQ(blocks->levels, (std::vector<SwitchLevel>{{"block", 18, true}}));
    const auto uneven =
        readTopologyConf("SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[4-6]\nSwitchName=c Nodes=n7\n"
                         "SwitchName=top Switches=a,b,c\n");
    ASSERT_TRUE(uneven) << describe(uneven.error());
    EXPECT_EQ(uneven->levels, (std::vector<SwitchLevel>{{"switch", 3, false}}));
    const auto three = readTopologyConf("SwitchName=l[1] Nodes=n1\n");
    ASSERT_TRUE(three);
    EXPECT_TRUE(three->levels.empty()); // one switch joins all
}

TEST(SlurmTopology, SaysWhereAFileContradictsItself)
{
    const auto placed = [](const std::string &text) {
        const auto tree = readTopologyConf(text);
        EXPECT_FALSE(tree) << text;
        return tree ? std::string() : tree.error().where;
    };
    EXPECT_EQ(placed("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"), "line:2:1");
    EXPECT_EQ(
        placed("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\nSwitchName=t Switches=a,b\n"), "line:2:1");
    EXPECT_EQ(placed("SwitchName=a Nodes=n1\nSwitchName=t Switches=a,b\n"), "line:2:1");
    EXPECT_EQ(placed("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), "line:1:1");
    EXPECT_EQ(
        placed("SwitchName=r Nodes=n1\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n"), "line:2:1");
    EXPECT_EQ(placed("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n"), "line:2:1");
    EXPECT_EQ(placed("SwitchName=a Nodes=n1 Switches=b\n"), "line:1:1");
    EXPECT_EQ(placed("SwitchName=a\n"), "line:1:1");
    EXPECT_EQ(placed("SwitchName=a Nodes=n1\nSwitchName\n"), "line:2:1");
    EXPECT_EQ(placed("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\nSwitchName=c Nodes=n2\nSwitchName=t "
                     "Switches=a,b\n"),
        "line:3:1");
    EXPECT_EQ(
        placed("SwitchName=t Switches=a,b\nSwitchName=a Nodes=n1\nSwitchName=b Switches=a\n"), "line:3:1");
    EXPECT_EQ(placed("BlockName=b Nodes=n1\nSwitchName=a Nodes=n2\n"), "line:2:1");
}

} // namespace
} // namespace planloom
