#include "app/cli/advice.h"

#include "engine/design/explain/free_decisions.h"
#include "engine/design/explain/suggestions.h"

#include <nlohmann/json.hpp>

namespace planloom::cli {

using nlohmann::json;

json freeDecisionsToJson(const PlanAnswer &answer)
{
    json free = json::array();
    for (const FreeDecision &each : freeDecisionsOf(*answer.model, *answer.plan, answer.table.table()))
        free.push_back({{"kind", each.kind}, {"operators", each.operators.size()}, {"names", each.words},
            {"chosen", each.chosen}, {"by", each.bySearch ? "search" : "default"}, {"why", each.why}});
    return free;
}

json suggestionsToJson(const PlanRequest &request, const PlanAnswer &answer)
{
    constexpr double kMostSeconds = 3;
    const StepLimits limits = limitsOf(answer);
    json suggestions{{"limits",
        {{"words", wordsOf(limits)}, {"memory", limits.memory}, {"peak_bytes", limits.peakBytes},
            {"memory_bytes", limits.memoryBytes}, {"computing", limits.computing},
            {"communication", limits.communication}, {"idle", limits.idle}}}};
    json helpful = json::array();
    if (const auto rows = helpfulRows(request, answer, kMostSeconds))
        for (const HelpfulRow &each : *rows)
            helpful.push_back({{"row", each.row}, {"step_seconds", each.stepSeconds},
                {"peak_bytes", each.peakBytes}, {"fits", each.fits}});
    json shrinking = json::array();
    for (const ShrinkingRow &each : shrinkingRows(answer))
        shrinking.push_back({{"row", each.row}, {"configurations", each.left}, {"of", each.of}});
    suggestions["helpful"] = std::move(helpful);
    suggestions["shrinking"] = std::move(shrinking);
    return suggestions;
}

} // namespace planloom::cli
