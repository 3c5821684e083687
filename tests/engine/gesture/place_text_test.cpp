#include "engine/gesture/place_text.h"

#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

PlaceWorld world(std::int32_t devices, std::vector<MeshAxis> mesh = {})
{
    PlaceWorld made;
    made.deviceCount = devices;
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

TEST(Places, AreReadAsPeopleWriteThem)
{
    const auto sixteen = world(16, {{"dp", 2}, {"tp", 8}});
    EXPECT_EQ(placeFromText("3", sixteen)->devices, devices({3}));
    EXPECT_EQ(placeFromText(" 0-3 ", sixteen)->devices, devices({0, 1, 2, 3}));
    EXPECT_EQ(placeFromText("0, 2,5", sixteen)->devices, devices({0, 2, 5}));
    EXPECT_EQ(placeFromText("h1", sixteen)->devices, devices({8, 9, 10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(placeFromText("tp:2", sixteen)->coordinates, (std::vector<AxisCoordinate>{{"tp", 2}}));
    EXPECT_EQ(placeFromText("dp=1,tp=0", sixteen)->coordinates,
        (std::vector<AxisCoordinate>{{"dp", 1}, {"tp", 0}}));
    EXPECT_TRUE(placeFromText("free", sixteen)->free);
    EXPECT_EQ(placeFromText("all", world(2))->devices, devices({0, 1}));
    EXPECT_EQ(placeFromText("All", world(2))->devices, devices({0, 1}));
    EXPECT_EQ(placeFromText("H1, 0", sixteen)->devices, devices({8, 9, 10, 11, 12, 13, 14, 15, 0}));
    EXPECT_EQ(placeFromText("h2", world(20))->devices, devices({16, 17, 18, 19}))
        << "the last host has fewer";
    EXPECT_EQ(placeFromText("1,1,0,0", sixteen)->devices, devices({1, 1, 0, 0}))
        << "one for each part, in order";
    EXPECT_EQ(devicesOf(*placeFromText("tp:2", sixteen), sixteen), devices({2, 10}));
}

TEST(Places, ThatAreNotThereSayWhatIs)
{
    const auto eight = world(8, {{"tp", 8}});
    const auto message = [&](const char *text) {
        const auto place = placeFromText(text, eight);
        return place ? std::string("accepted") : place.error().message;
    };
    EXPECT_EQ(message("9"), "there is no device 9: they are 0-7");
    EXPECT_EQ(message("3-1"), "a range of devices runs upwards: 1-3");
    EXPECT_EQ(message("h4"), "there is no host 4: they are 0");
    EXPECT_EQ(message("dp:0"), "the mesh has no axis dp");
    EXPECT_EQ(message("tp:0, tp:1"), "axis tp is named twice");
    EXPECT_EQ(message("tp:8"), "axis tp has the places 0-7");
    EXPECT_EQ(message("gpu"), "expected devices, found \"gpu\"");
    EXPECT_EQ(message(""), "no device is named");
    EXPECT_EQ(message("1,,2"), "a comma stands between two devices");
    EXPECT_EQ(message("1,tp:0"), "devices and places on the mesh do not mix");
    EXPECT_EQ(message("99999999999"), "expected devices, found \"99999999999\"");
    EXPECT_EQ(message("-1"), "expected devices, found \"-1\"");
}

TEST(Places, OfADesignAreThoseOfItsClusterAndMesh)
{
    GestureContext context = contextOf(indexOf("zoo:mlp?layers=2&hidden=16&batch=16"), 12, "mesh dp=3 tp=4");
    context.cluster.links.devicesPerNode = 8;
    context.cluster.links.architecture = LinkArchitecture::SharedMemory;
    const PlaceWorld of = placeWorldOf(context);
    EXPECT_EQ(of.deviceCount, 12);
    EXPECT_EQ(of.hostCount(), 2);
    EXPECT_EQ(of.devicesOfHost(1), devices({8, 9, 10, 11}));
    EXPECT_EQ(of.mesh, context.mesh);
    EXPECT_EQ(of.device, "CPU");
    context.cluster.links.devicesPerNode = 0; // of a cluster that says nothing
    EXPECT_EQ(placeWorldOf(context).hostCount(), 12);
}

TEST(Places, ThatAreReadBecomeTheRowThatSaysThem)
{
    const GestureContext context =
        contextOf(indexOf("zoo:mlp?layers=2&hidden=16&batch=16"), 8, "mesh dp=2 tp=4");
    const std::vector<OperatorId> operators{one(context, "layers.0.linear")};
    const auto row = [&](const char *text) {
        const auto place = placeFromText(text, placeWorldOf(context));
        EXPECT_TRUE(place) << text;
        const Proposal proposal = proposePlace(context, placeGesture(*place, operators));
        return proposal.rows.empty() ? std::string{} : proposal.rows.front();
    };
    EXPECT_EQ(row("3"), "place name:layers.0.linear : devices 3");
    EXPECT_EQ(row("tp:2"), "place name:layers.0.linear : tp=2");
    EXPECT_EQ(row("free"), "");
}

} // namespace
} // namespace planloom
