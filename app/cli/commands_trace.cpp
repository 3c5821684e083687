#include "app/cli/commands.h"
#include "app/cli/match_report.h"
#include "app/cli/model.h"
#include "app/cli/trace_report.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/simulate/simulate.h"
#include "engine/traces/reading/open_trace.h"
#include "engine/traces/trace_perfetto.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

Result<Trace> traceOf(const std::vector<std::string> &paths, const Arguments &arguments)
{
    TRY(const TraceFiles files, traceFilesOf({paths.begin(), paths.end()}));
    TraceOptions options;
    if (arguments.has("no-cache"))
        options.cache.clear();
    return arguments.has("quick") ? sampleTrace(files, options) : openTrace(files, options);
}

std::vector<const RankTrace *> ranksOf(const Trace &trace)
{
    std::vector<const RankTrace *> ranks;
    for (const RankTrace &rank : trace.ranks)
        ranks.push_back(&rank);
    return ranks;
}

/// "0,3": two ranks of the trace.
Result<std::vector<const RankTrace *>> twoRanks(const Trace &trace, const std::string &text)
{
    std::vector<const RankTrace *> two;
    const char *at = text.data();
    const char *const end = text.data() + text.size();
    for (int i = 0; i < 2; ++i) {
        std::int32_t number = -1;
        const auto [rest, failure] = std::from_chars(at, end, number);
        if (failure != std::errc{} || (i == 0 ? rest == end || *rest != ',' : rest != end))
            return Error{
                ErrorCode::InvalidInput, "expected two ranks as 0,3, found \"" + text + "\"", {}, "--ranks"};
        for (const RankTrace &rank : trace.ranks)
            if (rank.rank == number)
                two.push_back(&rank);
        if (two.size() != static_cast<std::size_t>(i) + 1)
            return Error{ErrorCode::InvalidInput, "the trace has no rank " + std::to_string(number),
                "it has " + std::to_string(trace.ranks.size()) + " ranks, from "
                    + std::to_string(trace.ranks.front().rank) + " to "
                    + std::to_string(trace.ranks.back().rank),
                "--ranks"};
        at = rest + 1;
    }
    return two;
}

/// Against another trace, or one rank against another one.
Result<TraceDifference> differenceIn(const Arguments &arguments, const Trace &trace)
{
    if (arguments.has("ranks")) {
        TRY(const auto two, twoRanks(trace, arguments.text("ranks")));
        return differenceOf({two[0]}, {two[1]});
    }
    TRY(const Trace other, traceOf({arguments.text("with")}, arguments));
    printRemarks(other);
    return differenceOf(ranksOf(trace), ranksOf(other));
}

/// Against the plan that ran, which is simulated for this.
Result<MatchReport> matchIn(const Arguments &arguments, const Trace &trace, const TraceAnalysis &analysis)
{
    TRY(const ExecutionPlan folded, readPlan(arguments.text("plan")));
    TRY(const Cluster cluster, clusterOf(arguments, folded));
    const ExecutionPlan plan = expandUnits(folded);
    TRY(const Timeline predicted, simulate(plan, cluster));
    TRY(MatchedTrace matched, matchPlan(trace, analysis, plan, predicted));
    return matchReport(plan, predicted, std::move(matched));
}

} // namespace

Result<int> runTrace(const Arguments &arguments)
{
    if (arguments.has("with") && arguments.has("ranks"))
        return Error{ErrorCode::InvalidInput, "--with and --ranks both say what to compare",
            "take one of them", "--ranks"};
    TRY(const Trace trace, traceOf(arguments.positionals(), arguments));
    const auto analysis = analyseTrace(trace);
    if (!analysis)
        return cancelled();
    json object;
    if (arguments.has("json"))
        object = traceToJson(trace, *analysis);
    else
        printTrace(
            trace, *analysis, arguments.has("with") || arguments.has("ranks") || arguments.has("plan"));
    if (arguments.has("with") || arguments.has("ranks")) {
        TRY(const TraceDifference difference, differenceIn(arguments, trace));
        if (arguments.has("json"))
            object["difference"] = differenceToJson(difference);
        else
            printDifference(difference);
    }
    if (arguments.has("plan")) {
        TRY(const MatchReport report, matchIn(arguments, trace, *analysis));
        if (arguments.has("json"))
            object["plan"] = matchToJson(report);
        else
            printMatch(report);
    }
    if (arguments.has("csv"))
        TRY_VOID(writeFile(arguments.text("csv"), traceCsv(trace, *analysis)));
    if (arguments.has("perfetto"))
        TRY_VOID(writeFileBy(arguments.text("perfetto"),
            [&](std::ostream &stream) { return writeTracePerfetto(stream, trace, analysis->clocks); }));
    if (arguments.has("json"))
        std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    printRemarks(trace);
    return 0;
}

} // namespace planloom::cli
