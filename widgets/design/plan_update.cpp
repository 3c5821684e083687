#include "widgets/design/plan_update.h"

#include "engine/base/background_disposal.h"
#include "engine/plan/decided_by.h"

#include <utility>

namespace planloom {

UpdateMaker::UpdateMaker(const PlanUpdateSnapshot &begin)
    : m_scene(std::make_shared<TimelineSceneSnapshot>(begin ? begin->scene : nullptr))
{
}

PlanUpdateSnapshot UpdateMaker::operator()(const PlanAnswer &answer) const
{
    if (answer.timeline && !*m_scene)
        *m_scene =
            makeTimelineScene(answer.timeline, answer.execution, answer.cluster, decidedBy(*answer.plan));
    return sharedInBackground(PlanUpdate{answer, *m_scene});
}

void makeUpdates(PlanRequest request, const PlanUpdateSnapshot &begin, const std::stop_token &stop,
    const std::function<void(PlanUpdateSnapshot)> &report)
{
    request.begin = begin;
    const UpdateMaker made(begin);
    makePlan(request, stop, [&](const PlanAnswer &answer) { report(made(answer)); });
}

} // namespace planloom
