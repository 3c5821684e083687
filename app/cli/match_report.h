#pragma once

#include "engine/analyse/waterfall.h"
#include "engine/traces/matching/match_plan.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

/// A trace against the plan that it ran.
struct MatchReport {
    MatchedTrace matched{};
    SpanErrors errors{};
    std::vector<CollectiveFigures> collectives{};
    Waterfall waterfall{}; ///< From predicted to measured.
};

/// @param plan  written out for all ranks
MatchReport matchReport(const ExecutionPlan &plan, const Timeline &predicted, MatchedTrace matched);
nlohmann::json matchToJson(const MatchReport &report);
void printMatch(const MatchReport &report);

} // namespace planloom::cli
