#include "engine/talk/talk.h"

#include "engine/base/words.h"
#include "engine/report/embedded_files.h"
#include "engine/report/html_text.h"
#include "engine/report/report_graph.h"
#include "engine/talk/talk_files.h"

#include <set>

namespace planloom {

namespace {

/// The pictures of operators that scenes show, each once: the script puts them where they are seen.
std::string graphsHtml(const Talk &talk)
{
    std::set<std::size_t> wanted;
    for (const TalkScene &scene : talk.scenes)
        if (scene.graph && scene.plan)
            wanted.insert(*scene.plan);
    std::string html;
    for (const std::size_t plan : wanted) {
        const std::string svg = graphSvg(talk.plans[plan].reported.plan);
        if (!svg.empty() && html.size() + svg.size() <= kMostTalkGraphs)
            html += "<template id=\"graph-" + std::to_string(plan) + "\">" + svg + "</template>\n";
    }
    return html;
}

std::string sceneHtml(const Talk &talk, std::size_t index)
{
    const TalkScene &scene = talk.scenes[index];
    std::string html = "<section class=\"scene\" id=\"scene-" + std::to_string(index + 1)
        + "\">\n<header><h2>" + htmlText(scene.title) + "</h2><span class=\"count\">"
        + std::to_string(index + 1) + " of " + std::to_string(talk.scenes.size()) + "</span></header>\n";
    html += scene.plan ? "<div class=\"stage\"></div>\n"
                       : "<p class=\"without\">" + htmlText(scene.without) + "</p>\n";
    if (!scene.note.empty())
        html += "<p class=\"note\">" + htmlText(scene.note) + "</p>\n";
    return html + "</section>\n";
}

constexpr const char *kControls =
    "<nav id=\"controls\"><button id=\"previous\" title=\"Previous scene (Left)\">&#8592;</button>"
    "<span id=\"where\"></span>"
    "<button id=\"next\" title=\"Next scene (Right, Space)\">&#8594;</button>"
    "<button id=\"play\" title=\"Play the step (P)\">Play step</button>"
    "<button id=\"run\" title=\"Go through the scenes by themselves (A)\">Play scenes</button>"
    "<button id=\"notes\" title=\"Show or hide the notes (N)\">Notes</button></nav>\n";

} // namespace

std::string htmlOf(const Talk &talk)
{
    std::string body;
    for (std::size_t i = 0; i < talk.scenes.size(); ++i)
        body += sceneHtml(talk, i);
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
           "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
           "<meta name=\"generator\" content=\"Planloom\">\n<title>"
        + htmlText(talk.title) + "</title>\n<style>\n" + pageStyle() + talkStyle()
        + "</style>\n</head>\n<body>\n<main>\n<h1>" + htmlText(talk.title) + "</h1>\n" + body + "</main>\n"
        + kControls + graphsHtml(talk) + "<script type=\"application/json\" id=\"data\">"
        + scriptText(talkJson(talk)) + "</script>\n<script>\n" + pageScript() + talkScript()
        + "</script>\n</body>\n</html>\n";
}

} // namespace planloom
