#include "widgets/dag/device_shelf.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

PlaceWorld world(std::int32_t devices, std::vector<MeshAxis> mesh = {})
{
    PlaceWorld made;
    made.deviceCount = devices;
    made.devicesPerHost = 8;
    made.mesh = std::move(mesh);
    return made;
}

std::vector<DeviceId> devices(std::initializer_list<std::int32_t> indices)
{
    std::vector<DeviceId> made;
    for (const auto index : indices)
        made.push_back(DeviceId{index});
    return made;
}

TEST(Shelf, HasATileForEachOfAFewDevices)
{
    const auto tiles = shelfTiles(world(8));
    ASSERT_EQ(tiles.size(), 9U);
    EXPECT_TRUE(tiles[0].target.free);
    for (std::int32_t device = 0; device < 8; ++device) {
        const auto &tile = tiles[static_cast<std::size_t>(device) + 1];
        EXPECT_EQ(tile.devices, devices({device}));
        EXPECT_EQ(tile.label, "GPU " + std::to_string(device));
    }
    PlaceWorld processors = world(2);
    processors.device = "CPU";
    EXPECT_EQ(shelfTiles(processors).back().label, "CPU 1") << "as the lanes of the timeline are called";
}

TEST(Shelf, OfManyDevicesHasHostsAndPlacesOnTheMesh)
{
    const auto tiles = shelfTiles(world(64, {{"pp", 4}, {"dp", 1}, {"tp", 16}}));
    ASSERT_EQ(tiles.size(), 1U + 4 + 16 + 8);
    std::set<std::string> labels;
    for (const auto &tile : tiles)
        EXPECT_TRUE(labels.insert(tile.label).second) << tile.label;
    EXPECT_TRUE(labels.contains("pp 3"));
    EXPECT_TRUE(labels.contains("host 7"));
    EXPECT_EQ(tiles.back().devices.size(), 8U);
    EXPECT_EQ(tiles.back().detail, "56-63") << "as it can be typed";
}

TEST(Shelf, FindsEveryTileWhereItIsDrawnAndScrollsToTheLast)
{
    auto layout = layOutShelf(40, 800, 600, 96, 90);
    EXPECT_EQ(layout.band.bottom(), 600);
    EXPECT_EQ(layout.tileAt(10, 100), -1) << "above the shelf";
    for (const double scroll : {0.0, 500.0, 1e9}) {
        layout.scrollBy(scroll);
        int shown = 0;
        for (std::int32_t tile = 0; tile < 40; ++tile) {
            const auto rect = layout.rectOf(tile);
            const double x = rect.x + rect.width / 2;
            if (x < 0 || x >= 800)
                continue;
            ++shown;
            EXPECT_EQ(layout.tileAt(x, rect.y + 1), tile);
        }
        EXPECT_GE(shown, 6);
    }
    EXPECT_LE(layout.rectOf(39).right(), 800) << "the last one can be reached";
    layout.scrollBy(-1e9);
    EXPECT_EQ(layout.scroll, 0);
    EXPECT_EQ(layOutShelf(2, 800, 600, 96, 90).mostScroll(), 0);
}

TEST(Shelf, SaysHowFullADeviceWouldBe)
{
    Cluster cluster;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    cluster.device.memory.value = 80 * kGiB;
    TimelineSummary summary;
    for (const double gib : {63.0, 75.0, 90.0})
        summary.devices.push_back({.peak = Bytes{static_cast<std::int64_t>(gib * kGiB)}});
    const auto tiles = shelfTiles(world(3));
    EXPECT_EQ(loadOf(tiles[0], &summary, cluster), ShelfLoad{}) << "Free is no device";
    EXPECT_EQ(loadOf(tiles[1], &summary, cluster).text, "63/80 GiB");
    EXPECT_EQ(loadOf(tiles[1], &summary, cluster).state, LoadState::Fits);
    EXPECT_EQ(loadOf(tiles[2], &summary, cluster).state, LoadState::Tight);
    EXPECT_EQ(loadOf(tiles[3], &summary, cluster).state, LoadState::Over);
    EXPECT_EQ(loadOf(tiles[1], nullptr, cluster).state, LoadState::Unknown);
    EXPECT_EQ(loadText(1536, 4096), "1.5/4 KiB");
    EXPECT_EQ(loadText(0, 512), "0/512 B");
}

TEST(Shelf, CountsEachOperatorOnceADevice)
{
    auto graph = std::make_shared<Graph>();
    graph->operators.resize(3);
    graph->operators[2].direction = Direction::Backward;
    Plan plan;
    plan.graph = graph;
    plan.deviceCount = 2;
    plan.decisions.resize(3);
    plan.decisions[0].devices = {DeviceId{0}, DeviceId{0}, DeviceId{1}};
    plan.decisions[1].devices = {DeviceId{1}};
    plan.decisions[2].devices = {DeviceId{1}};
    EXPECT_EQ(
        operatorCounts(shelfTiles(world(2)), operatorsOnDevices(plan)), (std::vector<std::int32_t>{0, 1, 2}));
}

} // namespace
} // namespace planloom
