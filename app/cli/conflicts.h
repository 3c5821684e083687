#pragma once

#include "engine/design/make_plan.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

/// What keeps an answer's rows from being carried out, on standard error: the rows of each conflict, the
/// reason, and its ways out with their effect.
void printConflicts(const PlanAnswer &answer);

/// Of the first conflict: `conflict`, its rows from 0; of all: `conflicts`, and `ways_out`, each with the
/// number of its conflict, its row, what the row becomes, and what the plan would be.
nlohmann::json conflictsToJson(const PlanAnswer &answer);

/// That of a conflict where several rows don't hold together, else that of the answer's first error.
int exitStatusOf(const PlanAnswer &answer);

} // namespace planloom::cli
