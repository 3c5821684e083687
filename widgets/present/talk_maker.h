#pragma once

#include "engine/talk/talk.h"
#include "widgets/present/talk_plans.h"

#include <string>
#include <vector>

namespace planloom {

/// The plan as a report has it. For workers: it copies the plan. `update` must have a scene.
ReportedPlan reportedPlanOf(const PlanUpdate &update, const std::string &name);

/// The talk that scenes make, coloured as the window colours. Equal plans are one. For workers.
Talk makeTalk(const std::string &title, const std::vector<Scene> &scenes, const PlansBySteps &plans);

} // namespace planloom
