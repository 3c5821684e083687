#include "widgets/present/talk_maker.h"

#include "widgets/common/qt_text.h"
#include "widgets/timeline/timeline_colours.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace planloom {

namespace {

TalkColour talkColour(const QColor &light, const QColor &dark)
{
    return {light.name().toStdString(), dark.name().toStdString()};
}

const char *nameOfColouring(TimelineColouring colouring)
{
    switch (colouring) {
    case TimelineColouring::Direction:
        return "direction";
    case TimelineColouring::MicroBatch:
        return "micro-batch";
    case TimelineColouring::Stage:
        return "stage";
    case TimelineColouring::Device:
        return "device";
    case TimelineColouring::Kind:
        return "kind";
    case TimelineColouring::Time:
        return "time";
    case TimelineColouring::DecidedBy:
        return "decided by";
    }
    return "";
}

/// What the window gives a span, or the block that it begins.
QColor colourIn(const Palette &palette, const TimelineScene &scene, TimelineColouring colouring,
    std::int32_t device, std::size_t row, TalkDetail detail)
{
    if (scene.timeline->spans.queue[row] != QueueKind::Compute) {
        const Instruction *instruction = scene.findInstruction(row);
        return instruction ? communicationColour(palette, instruction->kind) : palette.neutral;
    }
    const DeviceLane &lane = scene.lanes[static_cast<std::size_t>(device)];
    const std::int32_t block = detail == TalkDetail::Block ? lane.blockOf(row) : -1;
    return block >= 0 ? blockColour(palette, lane, colouring, lane.blocks[static_cast<std::size_t>(block)])
                      : computeColour(palette, scene, colouring, row);
}

TalkColouring talkColouring(const TimelineSceneSnapshot &scene, TimelineColouring colouring)
{
    TalkColouring made;
    made.name = nameOfColouring(colouring);
    made.byDevice = colouring == TimelineColouring::Device;
    const auto light = legendOf(lightPalette(), *scene, colouring);
    const auto dark = legendOf(darkPalette(), *scene, colouring);
    for (std::size_t i = 0; i < light.size(); ++i)
        made.legend.push_back({light[i].words.toStdString(), talkColour(light[i].colour, dark[i].colour)});
    for (const InstructionKind kind : scene->communicationKinds)
        made.legend.push_back({nameOf(kind),
            talkColour(communicationColour(lightPalette(), kind), communicationColour(darkPalette(), kind))});
    made.colourOf = [scene, colouring](std::int32_t device, std::size_t row, TalkDetail detail) {
        return talkColour(colourIn(lightPalette(), *scene, colouring, device, row, detail),
            colourIn(darkPalette(), *scene, colouring, device, row, detail));
    };
    return made;
}

/// Plans of a talk, each once, and the ways in which each is coloured.
class PlansOfTalk
{
public:
    explicit PlansOfTalk(Talk &talk)
        : m_talk(talk)
    {
    }
    /// Where a plan is among those of the talk.
    std::size_t indexOf(const PlanUpdate &update)
    {
        const auto [found, isNew] = m_known.try_emplace(update.scene.get(), m_talk.plans.size());
        if (isNew)
            m_talk.plans.push_back({reportedPlanOf(update, m_talk.title), {}});
        return found->second;
    }
    std::size_t colouringOf(std::size_t plan, const TimelineSceneSnapshot &scene, TimelineColouring colouring)
    {
        auto &colourings = m_talk.plans[plan].colourings;
        const auto found = std::find_if(colourings.begin(), colourings.end(),
            [&](const TalkColouring &each) { return each.name == nameOfColouring(colouring); });
        if (found != colourings.end())
            return static_cast<std::size_t>(found - colourings.begin());
        colourings.push_back(talkColouring(scene, colouring));
        return colourings.size() - 1;
    }

private:
    Talk &m_talk;
    std::map<const TimelineScene *, std::size_t> m_known{};
};

} // namespace

ReportedPlan reportedPlanOf(const PlanUpdate &update, const std::string &name)
{
    ReportedPlan plan{.name = name};
    plan.plan = *update.scene->plan;
    plan.cluster = update.cluster;
    plan.timeline = *update.scene->timeline;
    plan.rows = update.table.table();
    return plan;
}

Talk makeTalk(const std::string &title, const std::vector<Scene> &scenes, const PlansBySteps &plans)
{
    Talk talk{.title = title};
    PlansOfTalk known(talk);
    for (const Scene &scene : scenes) {
        TalkScene made{.title = scene.name.toStdString(), .note = scene.note.toStdString()};
        made.seconds = scene.seconds;
        made.plays = scene.plays;
        made.timeline = scene.canvases != SceneCanvases::Graph;
        made.graph = scene.canvases != SceneCanvases::Timeline;
        const auto found = plans.find(scene.step);
        const PlanUpdateSnapshot update = found == plans.end() ? nullptr : found->second;
        if (!update) {
            made.without = "This scene is of a step that the session does not have.";
        } else if (!update->scene) {
            made.without =
                update->error ? "There is no plan: " + describe(*update->error) : "There is no plan.";
        } else {
            made.plan = known.indexOf(*update);
            const int colouring = scene.colouring < kTimelineColouringCount ? scene.colouring : 0;
            made.colouring =
                known.colouringOf(*made.plan, update->scene, static_cast<TimelineColouring>(colouring));
            const auto step = static_cast<double>(update->scene->timeline->step.count());
            if (scene.span) {
                made.begin = std::clamp(scene.span->first, 0.0, step);
                made.end = std::clamp(scene.span->second, 0.0, step);
            }
            if (scene.moment)
                made.moment = std::llround(std::clamp(*scene.moment, 0.0, step));
        }
        talk.scenes.push_back(std::move(made));
    }
    return talk;
}

} // namespace planloom
