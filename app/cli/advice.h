#pragma once

#include "engine/design/make_plan.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

/// `free_decisions`: what no row of a person's decides, by kind of operator and what was chosen.
nlohmann::json freeDecisionsToJson(const PlanAnswer &answer);

/// `suggestions`: what limits the step (`limits`), rows that would help (`helpful`), and rows that would
/// leave a search less to look at (`shrinking`). Simulates for a few seconds at most.
nlohmann::json suggestionsToJson(const PlanRequest &request, const PlanAnswer &answer);

} // namespace planloom::cli
