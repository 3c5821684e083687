#include "engine/interop/configs/rank_order.h"
#include "tests/dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace planloom {
namespace {

/// Where `index` lies along each axis.
std::map<std::string, std::int32_t> placeIn(const std::vector<MeshAxis> &mesh, std::int32_t index)
{
    std::map<std::string, std::int32_t> place;
    for (auto axis = mesh.rbegin(); axis != mesh.rend(); index /= axis->size, ++axis)
        place[axis->name] = index % axis->size;
    return place;
}

TEST(RankOrder, EveryRankIsWhereThePlanHasItsPart)
{
    Dice dice(3);
    for (int i = 0; i < 50; ++i) {
        std::vector<MeshAxis> ranks;
        std::int32_t count = 1;
        for (const char *name : {"pp", "dp", "cp", "tp"}) {
            ranks.push_back({name, static_cast<std::int32_t>(1 + dice.below(4))});
            count *= ranks.back().size;
        }
        std::vector<MeshAxis> devices = ranks;
        for (std::size_t axis = devices.size(); axis > 1; --axis)
            std::swap(devices[axis - 1],
                devices[static_cast<std::size_t>(dice.below(static_cast<std::int32_t>(axis)))]);
        const std::vector<DeviceId> order = devicesOfRanks(ranks, devices);
        std::set<DeviceId> used;
        for (std::int32_t rank = 0; rank < count; ++rank) {
            const DeviceId device = order.empty() ? DeviceId{rank} : order[static_cast<std::size_t>(rank)];
            EXPECT_EQ(placeIn(ranks, rank), placeIn(devices, device.index));
            used.insert(device);
        }
        EXPECT_EQ(used.size(), static_cast<std::size_t>(count));
    }
    EXPECT_TRUE(devicesOfRanks({{"dp", 2}, {"tp", 2}}, {{"dp", 2}, {"tp", 4}}).empty());
    EXPECT_TRUE(devicesOfRanks({{"pp", 1}, {"tp", 2}}, {{"tp", 2}, {"pp", 1}}).empty());
}

TEST(RankOrder, FilesSayHostAndSlot)
{
    const std::vector<DeviceId> devices{DeviceId{0}, DeviceId{2}, DeviceId{1}, DeviceId{3}};
    const auto mpi = rankFileText(RankFile::OpenMpi, devices, 2);
    ASSERT_TRUE(mpi);
    EXPECT_EQ(*mpi, "rank 0=+n0 slot=0\nrank 1=+n1 slot=0\nrank 2=+n0 slot=1\nrank 3=+n1 slot=1\n");
    const auto slurm = rankFileText(RankFile::Slurm, devices, 2, {"a", "b"});
    ASSERT_TRUE(slurm);
    EXPECT_EQ(*slurm, "a\nb\na\nb\n");
    const auto torchrun = rankFileText(RankFile::VisibleDevices, devices, 2);
    ASSERT_FALSE(torchrun); // ranks 0 and 1 are on two nodes
    const std::vector<DeviceId> swapped{DeviceId{3}, DeviceId{2}, DeviceId{0}, DeviceId{1}};
    const auto visible = rankFileText(RankFile::VisibleDevices, swapped, 2, {"a", "b"});
    ASSERT_TRUE(visible);
    EXPECT_NE(visible->find("--node-rank 0 on b: CUDA_VISIBLE_DEVICES=1,0\n"), std::string::npos) << *visible;
    EXPECT_NE(visible->find("--node-rank 1 on a: CUDA_VISIBLE_DEVICES=0,1\n"), std::string::npos) << *visible;
    const auto few = rankFileText(RankFile::Slurm, devices, 2, {"a"});
    ASSERT_FALSE(few);
    EXPECT_EQ(few.error().where, "--hosts");
    EXPECT_FALSE(rankFileNamed("lsf"));
}

} // namespace
} // namespace planloom
