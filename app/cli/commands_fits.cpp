#include "app/cli/commands.h"
#include "app/cli/conflicts.h"
#include "app/cli/model.h"
#include "app/cli/without_effect.h"

#include "engine/analyse/limits.h"
#include "engine/analyse/memory_fit.h"
#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/report/report_csv.h"
#include "engine/simulate/simulate.h"
#include "engine/simulate/summary.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kMostKinds = 5; ///< Of what a rank holds, where a person reads it.

struct Planned {
    ExecutionPlan plan{};
    Cluster cluster{};
    int status = 0; ///< Not 0: there is no plan, and it was said why.
};

/// The plan of a file, or that of a model's rows.
Result<Planned> plannedBy(const Arguments &arguments)
{
    Planned planned;
    const std::string &positional = arguments.positional();
    if (isPlanFile(positional)) {
        TRY(planned.plan, readPlan(positional));
        TRY(planned.cluster, clusterOf(arguments, planned.plan));
        return planned;
    }
    TRY(auto request, planRequest(arguments, positional));
    request.search = !arguments.has("no-search") && !arguments.has("gallery");
    request.explains = true;
    request.allowsCopies = arguments.has("allow-copies");
    request.upTo = request.search ? PlanGrade::Timed : PlanGrade::Lowered;
    TRY(const PlanAnswerSnapshot solved, answerOf(request));
    if (auto error = solved->firstError()) {
        if (solved->conflicts.empty())
            return *std::move(error);
        printConflicts(*solved);
        if (arguments.has("json"))
            std::cout << conflictsToJson(*solved).dump(-1, ' ', false, json::error_handler_t::replace)
                      << "\n";
        planned.status = exitStatusOf(*solved);
        return planned;
    }
    planned.plan = *solved->execution;
    planned.cluster = solved->cluster;
    return planned;
}

std::string gibText(std::int64_t bytes)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", static_cast<double>(bytes) / (std::int64_t{1} << 30));
    return text;
}

/// "logits 12.6, parameters 10.2, ...": the largest first.
std::string heldText(const RankMemory &rank)
{
    std::vector<std::size_t> kinds;
    for (std::size_t k = 0; k < kHeldAsCount; ++k)
        if (rank.held[k] > 0)
            kinds.push_back(k);
    std::stable_sort(kinds.begin(), kinds.end(),
        [&](std::size_t a, std::size_t b) { return rank.held[a] > rank.held[b]; });
    std::string text;
    std::int64_t rest = rank.peak;
    for (std::size_t i = 0; i < std::min(kinds.size(), kMostKinds); ++i) {
        text += (i > 0 ? ", " : "") + std::string(nameOf(static_cast<HeldAs>(kinds[i]))) + " "
            + gibText(rank.held[kinds[i]]);
        rest -= rank.held[kinds[i]];
    }
    return kinds.size() > kMostKinds ? text + ", others " + gibText(rest) : text;
}

json ranksToJson(const std::vector<RankMemory> &ranks)
{
    json list = json::array();
    for (const RankMemory &rank : ranks) {
        json kinds = json::object();
        for (std::size_t k = 0; k < kHeldAsCount; ++k)
            kinds[keyOf(static_cast<HeldAs>(k))] = rank.held[k];
        list.push_back({{"rank", rank.rank.index}, {"peak_bytes", rank.peak}, {"limit_bytes", rank.limit},
            {"kinds", std::move(kinds)}});
    }
    return list;
}

} // namespace

Result<int> runFits(const Arguments &arguments)
{
    TRY(const Planned planned, plannedBy(arguments));
    if (planned.status != 0)
        return planned.status;
    TRY(const Timeline timeline, simulate(planned.plan, planned.cluster));
    const std::vector<RankMemory> ranks = memoryOfRanks(planned.plan, timeline, planned.cluster);
    const auto host = hostOverflow(summaryOf(timeline), planned.cluster, planned.plan.units);
    const auto over =
        std::count_if(ranks.begin(), ranks.end(), [](const RankMemory &rank) { return !rank.fits(); });
    const bool fits = over == 0 && !host;
    if (arguments.has("csv"))
        TRY_VOID(writeFile(arguments.text("csv"), ranksCsv(ranks)));
    if (arguments.has("json")) {
        json object{{"fits", fits}, {"ranks", ranksToJson(ranks)}};
        if (host)
            object["host"] = host->message;
        std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
        return fits ? 0 : 1;
    }
    if (const RankMemory *fullest = fullestOf(ranks)) {
        const std::string amounts = gibText(fullest->peak) + " of " + gibText(fullest->limit) + " GiB";
        std::printf(over == 0 ? "%srank %d holds the most, %s: %s\n" : "%srank %d needs %s: %s\n",
            fits ? "fits: " : "", fullest->rank.index, amounts.c_str(), heldText(*fullest).c_str());
        if (over > 1)
            std::printf("%s of %zu do not fit\n", counted(over, "rank").c_str(), ranks.size());
    }
    if (host)
        std::printf("%s\n", host->message.c_str());
    return fits ? 0 : 1;
}

} // namespace planloom::cli
