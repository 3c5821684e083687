// The data of a talk: plans once each, colours by number, scenes that refer to them.

#include "engine/report/report_timeline.h"
#include "engine/talk/talk.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace planloom {

namespace {

using nlohmann::json;

/// Colours of a talk, each once.
class TalkColours
{
public:
    std::int32_t indexOf(const TalkColour &colour)
    {
        const auto [found, isNew] = m_known.try_emplace(colour, static_cast<std::int32_t>(m_colours.size()));
        if (isNew)
            m_colours.push_back({colour.light, colour.dark});
        return found->second;
    }
    const json &all() const { return m_colours; }

private:
    std::map<TalkColour, std::int32_t> m_known{};
    json m_colours = json::array();
};

/// The colours of a lane's pieces, a list for each colouring.
json colouredJson(const TalkPlan &plan, const ReportLanes &lanes, const ReportLane &lane, TalkDetail detail,
    TalkColours &colours)
{
    json all = json::array();
    for (const TalkColouring &colouring : plan.colourings) {
        json own = json::array();
        for (const std::size_t row : lane.row)
            own.push_back(colours.indexOf(colouring.colourOf(lanes.devices.front(), row, detail)));
        all.push_back(std::move(own));
    }
    return all;
}

json colouringsJson(const TalkPlan &plan, TalkColours &colours)
{
    json all = json::array();
    for (const TalkColouring &colouring : plan.colourings) {
        json legend = json::array();
        for (const TalkLegendEntry &entry : colouring.legend)
            legend.push_back({entry.words, colours.indexOf(entry.colour)});
        all.push_back({{"name", colouring.name}, {"legend", std::move(legend)}});
    }
    return all;
}

/// Where colours go by device, those that do the same have different ones all the same.
void colourDevices(
    json &devices, const TalkPlan &plan, const std::vector<ReportLanes> &kinds, TalkColours &colours)
{
    std::vector<std::int32_t> inOrder;
    std::map<std::int32_t, std::size_t> rowOf;
    const bool oneByOne = plan.reported.plan.devices.size() <= kMostDrawnDevices;
    for (const ReportLanes &kind : kinds)
        for (const std::int32_t device : kind.devices) {
            inOrder.push_back(device);
            if (!kind.lanes.empty() && !kind.lanes.front().row.empty())
                rowOf[device] = kind.lanes.front().row.front();
            if (!oneByOne)
                break;
        }
    std::sort(inOrder.begin(), inOrder.end());
    for (std::size_t i = 0; i < inOrder.size() && i < devices.size(); ++i) {
        const auto row = rowOf.find(inOrder[i]);
        for (const TalkColouring &colouring : plan.colourings)
            devices[i]["k"].push_back(colouring.byDevice && row != rowOf.end()
                    ? colours.indexOf(colouring.colourOf(inOrder[i], row->second, TalkDetail::Block))
                    : -1);
    }
}

json planOf(const TalkPlan &plan, bool fine, ReportNames &names, TalkColours &colours)
{
    const std::vector<ReportLanes> blocks = lanesOf(plan.reported, names, true);
    json made = planJson(plan.reported, blocks);
    for (std::size_t k = 0; k < blocks.size(); ++k)
        for (std::size_t l = 0; l < blocks[k].lanes.size(); ++l)
            made["kinds"][k]["lanes"][l]["k"] =
                colouredJson(plan, blocks[k], blocks[k].lanes[l], TalkDetail::Block, colours);
    if (fine) {
        const std::vector<ReportLanes> spans = lanesOf(plan.reported, names, false);
        for (std::size_t k = 0; k < spans.size(); ++k) {
            const ReportLane &compute = spans[k].lanes.front();
            json lane = laneJson(compute);
            lane.erase("m"); // the block above says it
            lane["k"] = colouredJson(plan, spans[k], compute, TalkDetail::Span, colours);
            made["kinds"][k]["spans"] = std::move(lane);
        }
    }
    made["colourings"] = colouringsJson(plan, colours);
    colourDevices(made["devices"], plan, blocks, colours);
    return made;
}

json sceneJson(const TalkScene &scene)
{
    json made{{"seconds", scene.seconds}, {"timeline", scene.timeline}, {"graph", scene.graph},
        {"plays", scene.plays}};
    if (scene.plan) {
        made["plan"] = *scene.plan;
        made["colouring"] = scene.colouring;
    }
    if (scene.end > scene.begin)
        made["span"] = {scene.begin, scene.end};
    if (scene.moment)
        made["moment"] = *scene.moment;
    return made;
}

} // namespace

std::string talkJson(const Talk &talk)
{
    std::size_t spans = 0;
    for (const TalkPlan &plan : talk.plans)
        spans += distinctSpans(plan.reported);
    ReportNames names;
    TalkColours colours;
    json plans = json::array();
    for (const TalkPlan &plan : talk.plans)
        plans.push_back(planOf(plan, spans <= kMostTalkSpans, names, colours));
    json scenes = json::array();
    for (const TalkScene &scene : talk.scenes)
        scenes.push_back(sceneJson(scene));
    const json object{{"names", names.all()}, {"colours", colours.all()}, {"plans", std::move(plans)},
        {"scenes", std::move(scenes)}};
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace planloom
