#include "app/cli/solve_for.h"
#include "app/cli/model.h"

#include "engine/base/words.h"
#include "engine/design/fullness.h"
#include "engine/hardware/framework.h"
#include "engine/interop/configs/write_config.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <utility>

namespace planloom::cli {

Result<PlanFor> solvedFor(const Arguments &arguments, PlanRequest request)
{
    PlanFor found;
    TRY(found.format, searchedFormatNamed(arguments.text("for")));
    for (const char *other : {"gallery", "schedule", "no-search"})
        if (arguments.has(other))
            return Error{ErrorCode::InvalidInput, std::string("--for goes without --") + other,
                "it searches what that decides", "--for"};
    if (!arguments.has("framework")) {
        TargetChoice target = request.target;
        target.cluster = joinFramework(target.cluster, found.format->framework);
        if (resolve(target)) // a cluster may have the figures of another one
            request.target = target;
    }
    request.upTo = PlanGrade::Timed;
    ConfigSearchOptions options;
    options.onBetter = [](const SaidPlan &plan) {
        if (plan.fits())
            std::fprintf(stderr, "planloom-cli: so far: %s\n", secondsText(plan.stepSeconds).c_str());
    };
    TRY(found.search, searchConfigs(*found.format, request, options));
    found.config = printConfig(*found.format, found.search.best.config);
    request.search = true;
    if (const auto best = planOf(request); best && fullnessOf(**best) <= 1)
        found.bestOfAllSeconds = (*best)->summary.stepSeconds;
    return found;
}

nlohmann::json planForJson(const PlanFor &found)
{
    return {{"format", found.format->name}, {"framework", found.format->framework},
        {"planned", found.search.planned}, {"refused", found.search.refused}, {"config", found.config},
        {"fits", found.search.best.fits()}, {"step_seconds", found.search.best.stepSeconds},
        {"best_of_all_seconds",
            found.bestOfAllSeconds > 0 ? nlohmann::json(found.bestOfAllSeconds) : nlohmann::json(nullptr)}};
}

void printPlanFor(const PlanFor &found)
{
    std::printf("  for            %s: the best of %s that it says whole (nothing is proven of others)\n",
        std::string(found.format->name).c_str(), counted(found.search.planned, "plan").c_str());
    const double step = found.search.best.stepSeconds;
    if (!found.search.best.fits())
        std::printf("  memory         none of them fits: this one needs least\n");
    if (found.bestOfAllSeconds <= 0)
        return;
    if (found.bestOfAllSeconds < step)
        std::printf("  beyond it      the best plan of all takes %s, %.1f%% less: solve without --for\n",
            secondsText(found.bestOfAllSeconds).c_str(), (1 - found.bestOfAllSeconds / step) * 100);
    else
        std::printf("  beyond it      nothing better was found\n");
}

} // namespace planloom::cli
