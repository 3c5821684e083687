#include "engine/analyse/limits.h"

#include "engine/table/table_text.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// Two devices, of which the second needs more.
Timeline twoDevices(std::int64_t most, std::int64_t step)
{
    Timeline timeline;
    timeline.memory.resize(2);
    timeline.memory[0].peak = {most / 2};
    timeline.memory[1].peak = {most};
    timeline.step = Nanoseconds{step};
    return timeline;
}

TEST(Limits, MemoryIsEachDevicesOwn)
{
    Cluster cluster = *clusterNamed("mixed-h100-a100:16");
    cluster.otherClasses[0].device.memory.value = 40e9;
    TimelineSummary summary;
    summary.devices.resize(16);
    summary.devices[3].peak = {70'000'000'000};
    summary.devices[9].peak = {39'000'000'000};
    const MemoryUse fits = memoryUse(summary, cluster, {});
    EXPECT_EQ(fits.device, 9); // the fuller one, though it holds less
    EXPECT_EQ(fits.memory.count, 40'000'000'000);
    EXPECT_EQ(fits.over, 0);
    summary.devices[9].peak = {41'000'000'000};
    EXPECT_EQ(memoryUse(summary, cluster, {}).over, 1);
}

TEST(Limits, BrokenOnesNameTheDeviceWhatItNeedsAndWhatTheRowAllows)
{
    const auto table =
        parseTable("schedule 1f1b\nlimit memory 40GiB\nlimit time 50ms\noff limit memory 1B\n");
    ASSERT_TRUE(table);
    const Timeline timeline = twoDevices(63 * kGiB + kGiB / 5, 71'200'000);
    const auto broken = brokenLimits(*table, timeline);
    ASSERT_EQ(broken.size(), 2u);
    EXPECT_EQ(broken[0].row, RowId{1});
    EXPECT_EQ(broken[0].error.message, "device 1 needs 63.2 GiB at its peak, the row allows 40.0 GiB");
    EXPECT_EQ(broken[0].error.where, "row:1/rule");
    EXPECT_EQ(broken[0].error.code, ErrorCode::ResourceLimit);
    EXPECT_EQ(broken[1].error.message, "the step takes 71.2 ms, the row allows 50.0 ms");
    EXPECT_EQ(broken[1].needed, 71'200'000);
    for (const std::string &remark : limitRemarks(*table, timeline))
        EXPECT_TRUE(remark.empty()) << remark;
}

TEST(Limits, ThoseThatHoldAreMeasured)
{
    const auto table = parseTable("limit memory 40GiB\nschedule 1f1b\nlimit time 50ms\n");
    ASSERT_TRUE(table);
    const Timeline timeline = twoDevices(31 * kGiB, 50'000'000);
    EXPECT_TRUE(brokenLimits(*table, timeline).empty());
    EXPECT_EQ(limitRemarks(*table, timeline),
        (std::vector<std::string>{"peak 31.0 GiB of 40.0 GiB", "", "step 50.0 ms of 50.0 ms"}));
}

TEST(Limits, TrafficIsThatOfDevicesOrOfLinks)
{
    Timeline timeline = twoDevices(1, 1);
    timeline.busy.resize(2);
    timeline.traffic = {{InstructionKind::Send, -1, DeviceId{1}, DeviceId{0}, Bytes{3 * kGiB}, 1}};
    timeline.links = {{"device", Bytes{3 * kGiB}, 1}, {"card", Bytes{kGiB}, 1}, {"node", Bytes{2 * kGiB}, 0}};
    const auto said = [&](const std::string &row) {
        const auto broken = brokenLimits(*parseTable(row + "\n"), timeline);
        return broken.empty() ? limitRemarks(*parseTable(row + "\n"), timeline).front()
                              : broken.front().error.message;
    };
    EXPECT_EQ(said("limit traffic 2GiB"), "device 1 sends 3.00 GiB in a step, the row allows 2.00 GiB");
    EXPECT_EQ(said("limit traffic 2GiB per link"),
        "device 1 sends 3.00 GiB inside its node in a step, the row allows 2.00 GiB");
    EXPECT_EQ(said("limit traffic 1GiB on node"),
        "node 0 sends 2.00 GiB to other nodes in a step, the row allows 1.00 GiB");
    EXPECT_EQ(said("limit traffic 1GiB on card"), "sent 1.00 GiB of 1.00 GiB");
    EXPECT_EQ(said("limit traffic 2GiB on node links"), "sent 2.00 GiB of 2.00 GiB");
    EXPECT_EQ(
        said("limit traffic 2GiB on rack"), "the cluster has no links of 'rack': it has device, card, node");
    EXPECT_EQ(brokenLimits(*parseTable("limit traffic 2GiB on nod\n"), timeline).front().error.advice,
        "did you mean 'node'?");
}

TEST(Limits, AByteTooMuchIsToldApart)
{
    const auto table = parseTable("limit memory 40GiB\n");
    ASSERT_TRUE(table);
    const auto broken = brokenLimits(*table, twoDevices(40 * kGiB + 1, 1));
    ASSERT_EQ(broken.size(), 1u);
    EXPECT_EQ(broken[0].error.message.find("needs 40.0 GiB at"), std::string::npos)
        << broken[0].error.message;
    EXPECT_TRUE(brokenLimits(*table, twoDevices(40 * kGiB, 1)).empty());
}

} // namespace
} // namespace planloom
