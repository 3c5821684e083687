#include "engine/search/partition/halos.h"

#include "engine/hardware/cluster.h"

#include <gtest/gtest.h>

#include <vector>

namespace planloom {
namespace {

class Halos : public testing::Test
{
protected:
    double copy(std::int64_t lines) const { return m_costs.copy(Bytes{lines * kLine}, 0); }
    double send(std::int64_t lines) const
    {
        return m_costs.collective(
            CollectiveKind::SendRecv, Bytes{lines * kLine}, groupShape(m_cluster, {{0}, {1}}));
    }
    HaloTime between(
        const std::vector<Range> &held, const std::vector<Range> &wanted, std::int64_t line = kLine) const
    {
        std::vector<DeviceId> devices;
        for (std::size_t i = 0; i < held.size(); ++i)
            devices.push_back({static_cast<std::int32_t>(i)});
        return haloTime(held, wanted, line, m_costs, groupShape(m_cluster, devices), 0);
    }

    static constexpr std::int64_t kLine = 1 << 20;
    const Cluster m_cluster = *clusterNamed("dgx-h100:8");
    const CostModel m_costs = costModelOf(m_cluster);
};

TEST_F(Halos, AreNothingWhereEverybodyHasWhatItWants)
{
    const HaloTime none = between({{0, 8}, {8, 16}}, {{0, 8}, {8, 16}});
    EXPECT_EQ(none.sent, 0);
    EXPECT_EQ(none.copied, 0);
}

/// Those in the middle send to both sides, and receive from both.
TEST_F(Halos, AreTheRimsOfNeighbours)
{
    const HaloTime rims =
        between({{0, 64}, {64, 128}, {128, 192}, {192, 256}}, {{0, 65}, {63, 129}, {127, 193}, {191, 256}});
    EXPECT_DOUBLE_EQ(rims.sent, 4 * send(1));
    EXPECT_DOUBLE_EQ(rims.copied, 2 * copy(1) + copy(66));
}

/// What is on the device already is copied out of what it holds.
TEST_F(Halos, TakeAPieceOfTheirOwnWithoutSending)
{
    const HaloTime own = between({{0, 8}, {8, 16}}, {{0, 4}, {8, 12}});
    EXPECT_EQ(own.sent, 0);
    EXPECT_DOUBLE_EQ(own.copied, copy(4));
}

/// Where launches take longer than bytes, and each wants from many, all is gathered.
TEST_F(Halos, GatherAllWhereThatIsFaster)
{
    std::vector<Range> held;
    std::vector<Range> wanted;
    for (std::int64_t i = 0; i < 8; ++i) {
        held.push_back({i, i + 1});
        wanted.push_back({0, 7 + i % 2});
    }
    const HaloTime all = between(held, wanted, 16);
    EXPECT_LT(all.sent, 7 * send(1));
    EXPECT_GT(all.sent, 0);
}

/// Gradients that parts make of the same lines are added up where they belong: nothing is gathered.
TEST_F(Halos, AddUpWhatOverlaps)
{
    const HaloTime back = between({{0, 9}, {7, 16}}, {{0, 8}, {8, 16}});
    EXPECT_DOUBLE_EQ(back.sent, 2 * send(1));
    EXPECT_DOUBLE_EQ(back.copied, copy(8) + copy(1) + copy(8));
}

} // namespace
} // namespace planloom
