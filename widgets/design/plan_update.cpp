#include "widgets/design/plan_update.h"

#include "engine/base/background_disposal.h"
#include "engine/plan/decided_by.h"

#include <utility>

namespace planloom {

void makeUpdates(PlanRequest request, const PlanUpdateSnapshot &begin, const std::stop_token &stop,
    const std::function<void(PlanUpdateSnapshot)> &report)
{
    request.begin = begin;
    TimelineSceneSnapshot scene = begin ? begin->scene : nullptr;
    makePlan(request, stop, [&](const PlanAnswer &answer) {
        if (answer.timeline && !scene)
            scene =
                makeTimelineScene(answer.timeline, answer.execution, answer.cluster, decidedBy(*answer.plan));
        report(sharedInBackground(PlanUpdate{answer, scene}));
    });
}

} // namespace planloom
