#include "engine/talk/talk.h"

#include "tests/engine/simulate/gallery_plans.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace planloom {
namespace {

using nlohmann::json;

/// A colour that says the device, the queue and the size.
TalkColour colourFor(const Timeline &timeline, std::int32_t device, std::size_t row, TalkDetail detail)
{
    const int queue = static_cast<int>(timeline.spans.queue[row]);
    std::string ink = "#000000";
    ink[2] = static_cast<char>('0' + device % 10);
    ink[4] = static_cast<char>('0' + queue % 10);
    ink[6] = detail == TalkDetail::Block ? '1' : '2';
    return {ink, ink};
}

TalkPlan talkPlan(const SimulatedPlan &plan, bool byDevice = false)
{
    TalkPlan made;
    made.reported.name = plan.name;
    made.reported.plan = plan.plan;
    made.reported.cluster = plan.cluster;
    made.reported.timeline = plan.timeline;
    made.colourings.push_back({"direction", {{"Forward", {"#111111", "#222222"}}},
        [timeline = plan.timeline](std::int32_t device, std::size_t row, TalkDetail detail) {
            return colourFor(timeline, device, row, detail);
        },
        byDevice});
    return made;
}

SimulatedPlan pipeline(const std::string &model, const std::string &gallery, std::int32_t devices)
{
    return simulated(gallery, galleryPlan(trainingStep(model), gallery, devices));
}

const SimulatedPlan &small()
{
    static const SimulatedPlan plan =
        pipeline("zoo:mlp?layers=4&hidden=16&batch=16", "pipeline:schedule=1f1b,micro-batches=4", 4);
    return plan;
}

json dataIn(const std::string &html)
{
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const std::size_t at = html.find(begin) + begin.size();
    return json::parse(html.substr(at, html.find("</script>", at) - at));
}

std::size_t timesIn(const std::string &text, const std::string &part)
{
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

TEST(Talk, StandsAloneAndIsTheSameEachTime)
{
    Talk talk{.title = "Pipelines"};
    talk.plans.push_back(talkPlan(small()));
    for (int i = 0; i < 3; ++i)
        talk.scenes.push_back({.title = "Scene", .note = "first\nsecond", .plan = 0, .seconds = 30});
    talk.scenes.push_back({.title = "Nothing", .without = "There is no plan."});
    talk.scenes[1].graph = true;
    const std::string html = htmlOf(talk);
    EXPECT_EQ(html, htmlOf(talk));
    for (const char *outside :
        {"src=", "href=\"http", "url(", "@import", "<link", "fetch(", "XMLHttp", "import("})
        EXPECT_EQ(html.find(outside), std::string::npos) << outside;
    EXPECT_EQ(timesIn(html, "<script"), 2U);
    EXPECT_EQ(timesIn(html, "<section class=\"scene\""), 4U);
    EXPECT_EQ(timesIn(html, "<template id=\"graph-0\">"), 1U);
    EXPECT_NE(html.find("<p class=\"note\">first\nsecond</p>"), std::string::npos);
    EXPECT_NE(html.find("There is no plan."), std::string::npos);
    const json data = dataIn(html);
    EXPECT_EQ(data["plans"].size(), 1U);
    EXPECT_FALSE(data["scenes"][3].contains("plan"));
    EXPECT_EQ(data["scenes"][0]["seconds"], 30);
}

TEST(Talk, DrawsEveryBlockAndSpanInItsColour)
{
    Talk talk{.title = "t"};
    talk.plans.push_back(talkPlan(small()));
    talk.scenes.push_back({.title = "s", .plan = 0, .begin = 10, .end = 20, .moment = 15});
    const json data = json::parse(talkJson(talk));
    const json &plan = data["plans"][0];
    EXPECT_EQ(plan["step"], small().timeline.step.count());
    EXPECT_EQ(data["scenes"][0]["span"], json({10.0, 20.0}));
    EXPECT_EQ(data["scenes"][0]["moment"], 15);
    ASSERT_EQ(plan["devices"].size(), 4U);
    std::set<std::string> names;
    for (std::size_t d = 0; d < 4; ++d) {
        const json &kind = plan["kinds"][plan["devices"][d]["kind"].get<std::size_t>()];
        const json &blocks = kind["lanes"][0];
        EXPECT_EQ(blocks["queue"], "compute");
        ASSERT_EQ(blocks["k"][0].size(), blocks["g"].size());
        for (std::size_t i = 0; i < blocks["g"].size(); ++i) {
            names.insert(data["names"][blocks["n"][i].get<std::size_t>()].get<std::string>());
            const std::string ink = data["colours"][blocks["k"][0][i].get<std::size_t>()][0];
            EXPECT_EQ(ink[2] - '0', static_cast<int>(d));
            EXPECT_EQ(ink[6], '1');
        }
        const auto [row, end] = rowsOf(small().timeline, d, QueueKind::Compute);
        EXPECT_EQ(kind["spans"]["g"].size(), end - row);
        for (const json &index : kind["spans"]["k"][0])
            EXPECT_EQ(data["colours"][index.get<std::size_t>()][0].get<std::string>()[6], '2');
    }
    for (const char *block : {"F0", "F3", "B0", "B3"})
        EXPECT_TRUE(names.count(block)) << block;
}

TEST(Talk, DevicesHaveColoursOfTheirOwnWhereColoursGoByDevice)
{
    const SimulatedPlan same = pipeline("zoo:mlp?layers=4&hidden=16&batch=16", "data-parallel", 2);
    Talk talk{.title = "t"};
    talk.plans.push_back(talkPlan(same, true));
    talk.scenes.push_back({.title = "s", .plan = 0});
    const json data = json::parse(talkJson(talk));
    const json &devices = data["plans"][0]["devices"];
    ASSERT_EQ(devices.size(), 2U);
    const auto ink = [&](std::size_t device) {
        return data["colours"][devices[device]["k"][0].get<std::size_t>()][0].get<std::string>();
    };
    EXPECT_EQ(ink(0)[2], '0');
    EXPECT_EQ(ink(1)[2], '1');
    talk.plans[0].colourings[0].byDevice = false;
    EXPECT_EQ(json::parse(talkJson(talk))["plans"][0]["devices"][1]["k"][0], -1);
}

TEST(Talk, EscapesWhatPeopleAndModelsWrote)
{
    const std::string evil = "</script><img src=x onerror=alert(1)>\"'&";
    SimulatedPlan plan = small();
    Graph graph = *plan.plan.graph;
    graph.name = evil;
    for (Operator &op : graph.operators)
        op.name = evil + op.name;
    plan.plan.graph = std::make_shared<const Graph>(std::move(graph));
    Talk talk{.title = evil};
    talk.plans.push_back(talkPlan(plan));
    talk.plans[0].colourings[0].legend[0].words = evil;
    talk.scenes.push_back({.title = evil, .note = evil, .plan = 0, .graph = true});
    talk.scenes.push_back({.title = evil, .without = evil});
    const std::string html = htmlOf(talk);
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_EQ(timesIn(html, "</script>"), 2U);
    const json data = dataIn(html);
    const auto &names = data["names"];
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const json &name) {
        return name.get<std::string>().find(evil) != std::string::npos;
    })) << "the script gets names as they are";
}

TEST(Talk, IsBelowThreeMegabytesForSixteenDevicesAndMicroBatches)
{
    const std::string model = "zoo:gpt?layers=32&hidden=64&heads=4&seq=32&vocab=128&batch=64";
    Talk talk{.title = "large"};
    for (const char *schedule : {"1f1b", "gpipe", "zb-h1"})
        talk.plans.push_back(talkPlan(
            pipeline(model, std::string("pipeline:schedule=") + schedule + ",micro-batches=16", 16)));
    for (std::size_t i = 0; i < 12; ++i)
        talk.scenes.push_back({.title = "Scene " + std::to_string(i),
            .note = std::string(600, 'n'),
            .plan = i % talk.plans.size(),
            .graph = true});
    const std::string html = htmlOf(talk);
    EXPECT_LT(html.size(), 3'000'000U);
    const json data = dataIn(html);
    ASSERT_EQ(data["plans"].size(), 3U);
    EXPECT_EQ(data["plans"][0]["devices"].size(), 16U);
    RecordProperty("bytes", static_cast<int>(html.size()));
    std::printf("a talk of 12 scenes: %zu bytes\n", html.size());
}

} // namespace
} // namespace planloom
