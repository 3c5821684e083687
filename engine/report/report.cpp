#include "engine/report/report.h"

#include "engine/analyse/plan_difference.h"
#include "engine/report/embedded_files.h"
#include "engine/report/html_text.h"
#include "engine/report/report_graph.h"
#include "engine/report/report_sections.h"
#include "engine/report/report_timeline.h"

#include <array>
#include <cassert>
#include <set>

namespace planloom {

namespace {

/// Of the colours that the timelines have.
std::string legendHtml(const Report &report)
{
    std::set<SpanClass> drawn;
    ReportNames names;
    for (const ReportedPlan &plan : report.plans)
        for (const ReportLanes &lanes : lanesOf(plan, names))
            for (const ReportLane &lane : lanes.lanes)
                drawn.insert(lane.spanClass.begin(), lane.spanClass.end());
    std::string html = "<div class=\"legend\">";
    for (const SpanClass spanClass : drawn) {
        html += "<span><i style=\"--c:var(--" + std::string(colourOf(spanClass)) + ")\"></i>"
            + nameOf(spanClass) + "</span>";
    }
    return html + "<span><i style=\"--c:var(--memory)\"></i>memory</span></div>\n";
}

std::string timelineHtml(const Report &report)
{
    std::string html =
        "<section id=\"timeline\"><h2>Timeline</h2>\n<p class=\"about\">One predicted step. <span "
        "class=\"screen\">The wheel zooms, dragging moves, Shift and the wheel move along, a double "
        "click shows all; with the keyboard + &minus; 0 and the arrows.</span>";
    for (const ReportedPlan &plan : report.plans)
        if (drawsBlocks(plan)) {
            html +=
                " Operators of a block that follow one another are drawn as one, since there are so many.";
            break;
        }
    html += "</p>\n";
    for (std::size_t p = 0; p < report.plans.size(); ++p) {
        if (report.plans.size() > 1)
            html += "<h3>" + htmlText(titleOf(report, p)) + "</h3>\n";
        html += "<div class=\"lanes\"><canvas class=\"timeline\" tabindex=\"0\" role=\"img\" "
                "aria-label=\"timeline of "
            + htmlText(titleOf(report, p)) + "\"></canvas></div>\n";
    }
    return html + legendHtml(report) + "</section>\n";
}

std::string graphHtml(const Report &report)
{
    const std::string svg = reportGraphSvg(report);
    if (svg.empty())
        return {};
    const char *about = report.plans.size() == 2
        ? "The forward pass of plan B's model; framed in red is what B does otherwise than A."
        : "The forward pass, with the devices that run it. Layers behind the first are a box each where "
          "there are "
          "many operators.";
    return "<section id=\"graph\"><h2>Operators</h2>\n<p class=\"about\">" + std::string(about) + "</p>\n"
        + svg + "</section>\n";
}

std::string navigationOf(const std::string &body)
{
    static constexpr std::array<std::pair<const char *, const char *>, 8> kSections{
        {{"timeline", "Timeline"}, {"parts", "Where the time goes"}, {"differences", "Differences"},
            {"memory", "Memory by rank"}, {"communication", "Communication"}, {"graph", "Operators"},
            {"rows", "Rows"}, {"assumptions", "Assumptions"}}};
    std::string html = "<nav>";
    for (const auto &[id, words] : kSections)
        if (body.find("<section id=\"" + std::string(id) + "\"") != std::string::npos)
            html += "<a href=\"#" + std::string(id) + "\">" + words + "</a>";
    return html + "</nav>\n";
}

std::string modelOf(const ReportedPlan &plan)
{
    const auto found = plan.plan.origin.find("model");
    const std::string model = found == plan.plan.origin.end() ? plan.plan.graph->name : found->second;
    return model.substr(model.find_last_of('/') + 1);
}

/// A report's name, and a line below it.
std::pair<std::string, std::string> headingOf(const Report &report)
{
    const bool compares = report.plans.size() == 2;
    const std::string title = compares ? report.plans[0].name + " and " + report.plans[1].name
                                       : modelOf(report.plans[0]) + " on " + report.plans[0].cluster.name;
    const std::string under = compares ? modelOf(report.plans[0]) + " on " + report.plans[0].cluster.name
            + "; " + modelOf(report.plans[1]) + " on " + report.plans[1].cluster.name
                                       : report.plans[0].name;
    return {title, under};
}

} // namespace

std::string htmlOf(const Report &report)
{
    assert(report.plans.size() == 1 || report.plans.size() == 2);
    const auto [title, under] = headingOf(report);
    const std::string body = figuresHtml(report, Medium::Screen) + timelineHtml(report)
        + stepPartsHtml(report, Medium::Screen) + differenceHtml(report) + memoryHtml(report, Medium::Screen)
        + communicationHtml(report) + graphHtml(report) + rowsHtml(report) + assumptionsHtml(report)
        + tablesHtml(report);
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
           "'unsafe-inline'; "
           "script-src 'unsafe-inline'\">\n"
           "<meta name=\"generator\" content=\"Planloom\">\n<title>"
        + htmlText(title) + "</title>\n<style>\n" + pageStyle() + reportStyle()
        + "</style>\n</head>\n<body>\n<main>\n<header><h1>" + htmlText(title) + "</h1><p>" + htmlText(under)
        + "</p>\n" + navigationOf(body) + "</header>\n" + body
        + "<footer>Predicted by Planloom: nothing of this was run.</footer>\n</main>\n"
          "<div id=\"tip\" hidden></div>\n<script type=\"application/json\" id=\"data\">"
        + scriptText(timelineJson(report)) + "</script>\n<script>\n" + pageScript() + reportScript()
        + "</script>\n</body>\n</html>\n";
}

std::string printedHtml(const Report &report)
{
    assert(report.plans.size() == 1 || report.plans.size() == 2);
    const auto [title, under] = headingOf(report);
    std::string timelines;
    for (std::size_t p = 0; p < report.plans.size(); ++p)
        timelines +=
            (report.plans.size() > 1 ? "<h3>" + htmlText(titleOf(report, p)) + "</h3>" : std::string{})
            + "<p><img src=\"timeline:" + std::to_string(p) + "\"></p>\n";
    return "<html><head><title>" + htmlText(title) + "</title></head><body><h1>" + htmlText(title)
        + "</h1><p>" + htmlText(under) + "</p>\n" + figuresHtml(report, Medium::Paper) + "<h2>Timeline</h2>"
        + timelines + stepPartsHtml(report, Medium::Paper) + differenceHtml(report)
        + memoryHtml(report, Medium::Paper) + communicationHtml(report)
        + "<h2>Operators</h2><p><img src=\"graph:\"></p>\n" + rowsHtml(report) + assumptionsHtml(report)
        + tablesHtml(report) + "<p>Predicted by Planloom: nothing of this was run.</p></body></html>\n";
}

std::string reportGraphSvg(const Report &report)
{
    const ReportedPlan &shown = report.plans.back();
    std::set<OperatorId> marked;
    if (report.plans.size() == 2)
        if (const auto difference = differenceOf(report.plans[0].plan, shown.plan))
            for (const OperatorDifference &each : difference->operators)
                if (each.b)
                    marked.insert(each.b);
    return graphSvg(shown.plan, marked);
}

} // namespace planloom
