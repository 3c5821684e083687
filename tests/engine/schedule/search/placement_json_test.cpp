#include "engine/schedule/search/placement_json.h"

#include "engine/schedule/search/schedule_picture.h"
#include "tests/engine/schedule/search/placements_for_tests.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace planloom {
namespace {

TEST(PlacementJson, ReadsBackWhatItWrites)
{
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        const Placement placement = seed % 2 == 0 ? drawnOptions(seed) : drawnOnce(seed);
        if (!validate(placement))
            continue;
        const auto read = placementFromJson(placementToJson(placement).dump());
        ASSERT_TRUE(read) << describe(read.error());
        EXPECT_EQ(*read, placement);
    }
}

TEST(PlacementJson, SaysWhereAndWhatIsWrong)
{
    const auto errorOf = [](const char *text) {
        const auto read = placementFromJson(text);
        return read ? std::string("none") : describe(read.error());
    };
    EXPECT_EQ(errorOf("{"), "placement: this is no JSON (a placement is one JSON object)");
    EXPECT_EQ(errorOf("[]"),
        "placement: expected an object with name, devices, memory_limit, blocks, edges, found []");
    EXPECT_EQ(errorOf(R"({"blocks": []})"), "devices: expected a whole number, found nothing");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": []})"), "blocks: expected from 1 to 4096 blocks, found 0");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [0], "time": 0.5}]})"),
        "blocks/0/time: expected a whole number from 1 to 1125899906842624, found 0.5 (measure in a smaller "
        "unit, nanoseconds for one)");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [1], "time": 1}]})"),
        "block:0: expected devices from 0 to 0, found 1");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [0], "time": 1, "tmie": 2}]})"),
        "blocks/0/tmie: nothing here is called \"tmie\" (known: id, kind, name, devices, queue, time, "
        "memory, workspace, gives_back, once, recompute, offload)");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [0], "time": 1, "once": 1}]})"),
        "blocks/0/once: expected true or false, found 1");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [0], "time": 1, "memory": 2,
        "offload": {"until": 7, "time": 1}}]})"),
        "blocks/0/offload/until: there is no block 7 (the id of the block that needs it again)");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [0], "time": 1, "memory": 2,
        "recompute": {"until": 1, "time": 1, "memory": 3}}, {"id": 1, "devices": [0], "time": 1}],
        "edges": [[0, 1]]})"),
        "block:0: its recompute saves 3 of the 2 that it takes (at least 1, and no more than the block's "
        "memory)");
    EXPECT_EQ(errorOf(R"({"devices": 1, "blocks": [{"id": 0, "devices": [0], "time": 1, "memory": 2,
        "recompute": {"until": 1, "time": 1}}, {"id": 1, "devices": [0], "time": 1}]})"),
        "block:0: block 1, which needs what its recompute saves, does not wait for it, or runs on other "
        "devices (name a later block on the same devices)");
    EXPECT_EQ(
        errorOf(R"({"devices": 1, "blocks": [{"id": 4, "devices": [0], "time": 1}], "edges": [[4, 5]]})"),
        "edges/0: there is no block 5 (edges join blocks by their ids)");
    EXPECT_EQ(
        errorOf(R"({"devices": 1, "blocks": [{"id": 4, "devices": [0], "time": 1}], "edges": [[4, 4]]})"),
        "edges: blocks 4 wait for one another, or for blocks that do (the edges inside a micro-batch must "
        "not "
        "form a cycle)");
    EXPECT_EQ(
        errorOf(R"({"devices": 2, "memory_limit": [1], "blocks": [{"id": 4, "devices": [0], "time": 1}]})"),
        "memory_limit: expected 2 limits, one for each device, found 1");
}

TEST(PlacementJson, WritesTheAnswer)
{
    const Placement placement = tesselPlacement("vshape", 2, 2);
    const auto answer = findSchedule(placement, {.microBatches = 3, .seconds = 60});
    ASSERT_TRUE(answer);
    const auto json = toJson(placement, *answer);
    EXPECT_EQ(json["status"], "optimal");
    EXPECT_EQ(json["period"], 4);
    EXPECT_EQ(json["period_bound"], 4);
    EXPECT_EQ(json["makespan"]["3"], 16);
    EXPECT_EQ(json["makespan_bound"]["3"], 16);
    EXPECT_EQ(json["peak_memory"], nlohmann::json({2, 1}));
    EXPECT_EQ(json["in_flight"], 2);
    EXPECT_EQ(json["blocks"].size(), 12);
}

TEST(SchedulePicture, HasABoxForEachBlockOnEachDevice)
{
    Placement placement = tesselPlacement("mshape", 2, 2);
    placement.blocks[0].kind = "a<b>&\"c\"";
    const auto answer = findSchedule(placement, {.microBatches = 2, .seconds = 60});
    ASSERT_TRUE(answer);
    const std::string svg = scheduleToSvg(placement, answer->makespan.starts);
    std::size_t boxes = 0;
    for (std::size_t found = svg.find("<title>"); found != std::string::npos;
         found = svg.find("<title>", found + 1))
        ++boxes;
    EXPECT_EQ(boxes, 2 * (2 + 4 + 2));
    EXPECT_EQ(svg.find("a<b>"), std::string::npos);
    EXPECT_NE(svg.find("a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos);
}

} // namespace
} // namespace planloom
