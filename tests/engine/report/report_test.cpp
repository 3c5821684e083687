#include "engine/report/report.h"

#include "engine/analyse/communication_lines.h"
#include "engine/report/report_csv.h"
#include "engine/report/report_graph.h"
#include "engine/report/report_timeline.h"
#include "tests/engine/simulate/gallery_plans.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>
#include <sstream>

namespace planloom {
namespace {

using nlohmann::json;

ReportedPlan reported(const SimulatedPlan &plan)
{
    ReportedPlan made{.name = plan.name + ".json"};
    made.plan = plan.plan;
    made.cluster = plan.cluster;
    made.timeline = plan.timeline;
    return made;
}

const std::vector<SimulatedPlan> &somePlans()
{
    static const std::vector<SimulatedPlan> plans = galleryPlans();
    return plans;
}

json dataOf(const std::string &html)
{
    const std::string begin = "<script type=\"application/json\" id=\"data\">";
    const std::size_t at = html.find(begin) + begin.size();
    return json::parse(html.substr(at, html.find("</script>", at) - at));
}

std::size_t countOf(const std::string &text, const std::string &part)
{
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++count;
    return count;
}

TEST(Report, StandsAloneAndIsTheSameEachTime)
{
    for (const SimulatedPlan &plan : somePlans()) {
        SCOPED_TRACE(plan.name);
        const std::string html = htmlOf({{reported(plan)}, {}});
        EXPECT_EQ(html, htmlOf({{reported(plan)}, {}}));
        EXPECT_LT(html.size(), 5'000'000U);
        for (const char *outside :
            {"src=", "href=\"http", "url(", "@import", "<link", "fetch(", "XMLHttp", "import("})
            EXPECT_EQ(html.find(outside), std::string::npos) << outside;
        EXPECT_EQ(countOf(html, "<script"), 2U);
        EXPECT_EQ(countOf(html, "</script>"), 2U);
        for (const char *section :
            {"timeline", "parts", "memory", "communication", "graph", "rows", "assumptions"})
            EXPECT_EQ(countOf(html, "<section id=\"" + std::string(section) + "\""), 1U) << section;
    }
}

TEST(Report, DrawsEverySpanOfTheTimelineWhereItIs)
{
    for (const SimulatedPlan &plan : somePlans()) {
        SCOPED_TRACE(plan.name);
        const ReportedPlan shown = reported(plan);
        ASSERT_FALSE(drawsBlocks(shown));
        const json data = dataOf(htmlOf({{shown}, {}}));
        const json &drawn = data["plans"][0];
        EXPECT_EQ(drawn["step"], plan.timeline.step.count());
        ASSERT_EQ(drawn["devices"].size(), plan.plan.devices.size());
        for (std::size_t d = 0; d < plan.plan.devices.size(); ++d) {
            std::size_t spans = 0;
            for (const json &lane : drawn["kinds"][drawn["devices"][d]["kind"].get<std::size_t>()]["lanes"]) {
                int queue = 0;
                while (lane["queue"] != nameOf(static_cast<QueueKind>(queue)))
                    ++queue;
                auto [row, end] = rowsOf(plan.timeline, d, static_cast<QueueKind>(queue));
                ASSERT_EQ(lane["g"].size(), end - row);
                std::int64_t time = 0;
                for (std::size_t i = 0; row < end; ++row, ++i) {
                    time += lane["g"][i].get<std::int64_t>();
                    EXPECT_EQ(time, plan.timeline.spans.start[row]);
                    EXPECT_EQ(lane["d"][i], plan.timeline.spans.duration[row]);
                    time += lane["d"][i].get<std::int64_t>();
                    EXPECT_LT(lane["n"][i].get<std::size_t>(), data["names"].size());
                }
                spans += lane["g"].size();
            }
            EXPECT_EQ(spans, plan.timeline.deviceBegin[d + 1] - plan.timeline.deviceBegin[d]);
        }
    }
}

TEST(Report, EscapesNamesOfModelsRowsAndFiles)
{
    const std::string evil = "</script><img src=x onerror=alert(1)>\"'&";
    ReportedPlan plan = reported(somePlans()[2]);
    plan.name = evil;
    plan.plan.origin["model"] = evil;
    plan.cluster.name = evil;
    Graph graph = *plan.plan.graph;
    graph.name = evil;
    for (Operator &op : graph.operators)
        op.name = evil + op.name;
    plan.plan.graph = std::make_shared<const Graph>(std::move(graph));
    plan.rows.emplace();
    Row row = *parseRow("mesh tp=2");
    row.note = evil;
    plan.rows->rows.push_back(row);
    for (const Report &report :
        {Report{{plan}, {{evil, evil, {evil}, {{evil}}}}}, Report{{plan, reported(somePlans()[1])}, {}}}) {
        const std::string html = htmlOf(report);
        EXPECT_EQ(html.find("<img"), std::string::npos);
        EXPECT_EQ(countOf(html, "</script>"), 2U);
        const json data = dataOf(html);
        EXPECT_TRUE(std::any_of(data["names"].begin(), data["names"].end(),
            [&](const json &name) { return name.get<std::string>().find(evil) != std::string::npos; }));
    }
}

TEST(Report, OfTwoPlansHasBothTimelinesAndWhatDiffers)
{
    const SimulatedPlan &a = somePlans()[1];
    const SimulatedPlan &b = somePlans()[2];
    ReportedPlan first = reported(a);
    ReportedPlan second = reported(b);
    first.rows = *parseTable("mesh dp=2\nsplit all : m by 2\n");
    second.rows = *parseTable("mesh dp=2\nmicro-batches 2\n");
    const std::string html = htmlOf({{first, second}, {}});
    EXPECT_EQ(countOf(html, "<canvas class=\"timeline\""), 2U);
    EXPECT_EQ(dataOf(html)["plans"].size(), 2U);
    EXPECT_NE(html.find("only in A"), std::string::npos);
    EXPECT_NE(html.find("<code>micro-batches 2</code>"), std::string::npos);
    EXPECT_NE(html.find("class=\"node differs\""), std::string::npos);
    // The same plan twice differs in nothing.
    const std::string same = htmlOf({{first, first}, {}});
    EXPECT_NE(same.find("All rows are the same."), std::string::npos);
    EXPECT_EQ(same.find("class=\"node differs\""), std::string::npos);
}

TEST(Report, DrawsBlocksWhereThereAreManySpans)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=8&hidden=32&heads=4&seq=8&batch=512&vocab=24");
    const ReportedPlan plan =
        reported(simulated("many", galleryPlan(graph, "pipeline:schedule=1f1b,micro-batches=256", 4)));
    ASSERT_GT(plan.timeline.spans.size(), kMostDrawnSpans);
    ASSERT_TRUE(drawsBlocks(plan));
    const std::string html = htmlOf({{plan}, {}});
    EXPECT_LT(html.size(), 5'000'000U);
    ReportNames names;
    for (const ReportLanes &lanes : lanesOf(plan, names)) {
        const ReportLane &compute = lanes.lanes.front();
        ASSERT_EQ(compute.queue, QueueKind::Compute);
        std::int64_t covered = 0;
        std::int64_t end = 0;
        for (std::size_t i = 0; i < compute.gap.size(); ++i) {
            covered += compute.duration[i];
            end += compute.gap[i] + compute.duration[i];
        }
        const auto device = static_cast<std::size_t>(lanes.devices.front());
        EXPECT_LT(compute.gap.size(), plan.timeline.spans.size() / 20);
        EXPECT_GE(covered, plan.timeline.busy[device].count());
        EXPECT_LE(covered, plan.timeline.busy[device].count() + plan.timeline.step.count() / 10);
        EXPECT_LE(end, plan.timeline.step.count());
    }
}

TEST(Report, MemoryStepsAreNowhereBelowTheCurve)
{
    for (const SimulatedPlan &plan : somePlans()) {
        const MemoryCurve &curve = plan.timeline.memory.front();
        const auto steps = memorySteps(curve, plan.timeline.step, 50);
        EXPECT_EQ(*std::max_element(steps.begin(), steps.end()), curve.peak.count);
        for (std::size_t i = 0; i < curve.time.size(); ++i) {
            const auto step = std::min<std::size_t>(
                49, static_cast<std::size_t>(curve.time[i] * 50 / plan.timeline.step.count()));
            std::int64_t bytes = 0;
            for (const std::int64_t each : curve.bytes[i])
                bytes += each;
            EXPECT_GE(steps[step], bytes);
        }
    }
}

TEST(ReportGraph, HasABoxForEveryOperatorOrLayerAndStandsInItsFrame)
{
    const SimulatedPlan &plan = somePlans()[3];
    const auto forward = static_cast<std::size_t>(
        std::count_if(plan.plan.graph->operators.begin(), plan.plan.graph->operators.end(),
            [](const Operator &op) { return op.direction == Direction::Forward; }));
    const std::string svg = graphSvg(plan.plan);
    EXPECT_EQ(countOf(svg, "<rect"), forward);
    EXPECT_NE(svg.find("stage 1, device 1"), std::string::npos);
    const std::regex kRect(R"re(<rect x="([-0-9.]+)" y="([-0-9.]+)" width="([0-9.]+)" height="([0-9.]+)")re");
    std::smatch frame;
    ASSERT_TRUE(
        std::regex_search(svg, frame, std::regex(R"re(viewBox="[-0-9.]+ [-0-9.]+ ([0-9.]+) ([0-9.]+)")re")));
    for (std::sregex_iterator it(svg.begin(), svg.end(), kRect), end; it != end; ++it) {
        EXPECT_GE(std::stod((*it)[1]), -1);
        EXPECT_LE(std::stod((*it)[1]) + std::stod((*it)[3]), std::stod(frame[1]));
        EXPECT_LE(std::stod((*it)[2]) + std::stod((*it)[4]), std::stod(frame[2]));
    }
    // Of a large model, layers behind the first are one box each.
    const GraphSnapshot large = trainingStep("zoo:gpt?layers=24&hidden=32&heads=4&seq=8&batch=4&vocab=24");
    const std::string folded = graphSvg(galleryPlan(large, "single", 1));
    EXPECT_EQ(countOf(folded, "class=\"node layer\""), 23U);
    EXPECT_EQ(graphSvg(ExecutionPlan{.graph = std::make_shared<const Graph>()}), "");
}

std::vector<std::vector<std::string>> cellsOf(const std::string &csv)
{
    std::vector<std::vector<std::string>> lines;
    std::istringstream stream(csv);
    for (std::string line; std::getline(stream, line);) {
        EXPECT_EQ(line.back(), '\r');
        line.pop_back();
        lines.emplace_back();
        std::istringstream cells(line);
        for (std::string cell; std::getline(cells, cell, ',');)
            lines.back().push_back(cell);
    }
    return lines;
}

TEST(ReportCsv, HasARowForEveryRankThatAddsUp)
{
    const SimulatedPlan &plan = somePlans()[6];
    const auto ranks = memoryOfRanks(plan.plan, plan.timeline, plan.cluster);
    const auto lines = cellsOf(ranksCsv(ranks));
    ASSERT_EQ(lines.size(), ranks.size() + 1);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const auto &cells = lines[r + 1];
        ASSERT_EQ(cells.size(), lines[0].size());
        std::int64_t sum = 0;
        for (std::size_t c = 4; c < cells.size(); ++c)
            sum += std::stoll(cells[c]);
        EXPECT_EQ(std::to_string(sum), cells[1]);
        EXPECT_EQ(cells[3], "1");
    }
}

TEST(ReportCsv, HasARowForEveryLineOfCommunication)
{
    const SimulatedPlan &plan = somePlans()[6];
    const auto lines = communicationLines(plan.plan, plan.timeline, plan.cluster);
    ASSERT_TRUE(lines);
    const std::string csv = communicationCsv(*lines);
    EXPECT_EQ(countOf(csv, "\r\n"), lines->size() + 1);
}

} // namespace
} // namespace planloom
