#include "app/cli/cluster_of_spans.h"

#include "app/cli/model.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/simulate/simulate.h"
#include "engine/traces/calibration/span_fit.h"
#include "engine/traces/matching/match_plan.h"
#include "engine/traces/reading/open_trace.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace planloom::cli {

namespace {

Result<SpanFit> fitOf(const Arguments &arguments)
{
    if (!arguments.has("plan"))
        return Error{ErrorCode::InvalidInput, "--spans needs the plan that ran",
            "planloom-cli cluster --spans FOLDER --plan plan.json", "--plan"};
    const std::vector<std::string> paths = arguments.texts("spans");
    TRY(const TraceFiles files, traceFilesOf({paths.begin(), paths.end()}));
    TRY(const Trace trace, openTrace(files));
    const auto analysis = analyseTrace(trace);
    if (!analysis)
        return cancelled();
    TRY(const ExecutionPlan folded, readPlan(arguments.text("plan")));
    TRY(const Cluster base,
        arguments.has("base") ? clusterNamed(arguments.text("base")) : clusterOf(arguments, folded));
    const ExecutionPlan plan = expandUnits(folded);
    TRY(const Timeline predicted, simulate(plan, base));
    TRY(const MatchedTrace matched, matchPlan(trace, *analysis, plan, predicted));
    return fittedToSpans(base, plan, matched.measured, paths.front(), matched.isExact);
}

nlohmann::json errorsOf(const SpanFit &fit)
{
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t i = 0; i < fit.errors.size(); ++i)
        list.push_back({{"kind", fit.errors[i].kind}, {"times", fit.errors[i].rows},
            {"median_before", fit.before[i].median}, {"median", fit.errors[i].median},
            {"worst", fit.errors[i].worst}});
    return list;
}

} // namespace

Result<int> clusterOfSpans(const Arguments &arguments)
{
    for (const char *const other : {"kernels", "collectives", "device", "topology", "hosts"})
        if (arguments.has(other))
            return Error{ErrorCode::InvalidInput,
                std::string("--") + other + " and --spans are two ways to a cluster", "take one of them",
                std::string("--") + other};
    TRY(const SpanFit fit, fitOf(arguments));
    const std::string text = toJson(fit.cluster);
    const std::string out = arguments.text("out");
    if (!out.empty())
        TRY_VOID(writeFile(out, text));
    if (arguments.has("json")) {
        const nlohmann::json object{{"errors", errorsOf(fit)}, {"step_seconds", fit.measured},
            {"predicted_before", fit.predictedBefore}, {"predicted", fit.predicted},
            {"file", out.empty() ? nlohmann::json() : nlohmann::json(out)},
            {"cluster", nlohmann::json::parse(text)}};
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
        return 0;
    }
    std::ostream &report = out.empty() ? std::cerr : std::cout;
    for (const FitError &error : fit.errors)
        report << toString(error) << "\n";
    report << "a step: " << formatSeconds(fit.measured) << " measured, " << formatSeconds(fit.predicted)
           << " predicted, before " << formatSeconds(fit.predictedBefore) << "\n";
    if (out.empty())
        std::cout << text;
    else
        report << out << ": " << deviceNames(fit.cluster) << ", " << fit.cluster.deviceCount << " devices\n";
    return 0;
}

} // namespace planloom::cli
