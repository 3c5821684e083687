#pragma once

#include "engine/terminal/arguments.h"

#include "engine/interop/configs/config_search.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

/// What `--for` found.
struct PlanFor {
    const ConfigFormat *format = nullptr;
    ConfigSearch search{};
    std::string config{}; ///< The plan in the format.
    double bestOfAllSeconds =
        0; ///< A step of the best plan there is, sayable or not; 0 where none was found.
};

/// The best plan of `request` that the format of `--for` says whole, and the best of all beside it. Where the
/// request names no framework, steps are predicted for the format's.
/// @return as `searchedFormatNamed` and `searchConfigs`; InvalidInput beside options that decide what it
/// searches
Result<PlanFor> solvedFor(const Arguments &arguments, PlanRequest request);

nlohmann::json planForJson(const PlanFor &found);
void printPlanFor(const PlanFor &found);

} // namespace planloom::cli
