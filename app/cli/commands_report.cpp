#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/cli/print_report.h"

#include "engine/analyse/communication_lines.h"
#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/report/report.h"
#include "engine/report/report_csv.h"
#include "engine/simulate/simulate.h"
#include "sessions/session_report.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kMostPrinted = 40; ///< Lines for people; JSON and CSV have all of them.

json lineJson(const CommunicationLine &line, const Graph &graph)
{
    json groups = json::array();
    for (const auto &group : line.groups) {
        json members = json::array();
        for (const DeviceId member : group)
            members.push_back(member.index);
        groups.push_back(std::move(members));
    }
    json starts = json::array();
    for (const Nanoseconds start : line.starts)
        starts.push_back(start.count());
    json operators = json::array();
    for (const OperatorId op : line.operators)
        operators.push_back(graph.at(op).name);
    json object{{"kind", nameOf(line.kind)}, {"queue", nameOf(line.queue)}, {"link", line.link},
        {"group_count", line.groupCount}, {"groups", std::move(groups)}, {"group_size", line.shape.ranks},
        {"nodes", line.shape.nodes}, {"bytes", line.bytes.count}, {"count", line.count},
        {"alone_nanoseconds", line.alone.count()}, {"nanoseconds", line.time.count()},
        {"exposed_nanoseconds", line.exposed.count()}, {"hidden_nanoseconds", line.hidden().count()},
        {"bus_bandwidth", busBandwidthOf(line)}, {"start_nanoseconds", std::move(starts)},
        {"operators", std::move(operators)}, {"algorithm", nullptr}, {"protocol", nullptr}};
    if (line.choice) {
        object["algorithm"] = nameOf(line.choice->algorithm);
        object["protocol"] = nameOf(line.choice->protocol);
    }
    return object;
}

void printLines(const std::vector<CommunicationLine> &lines)
{
    std::printf("  %-15s %-22s %-15s %-12s %10s %6s %10s %10s %10s %11s %10s\n", "what", "groups", "link",
        "algorithm", "size", "times", "alone", "all", "exposed", "bus GB/s", "first at");
    for (std::size_t i = 0; i < lines.size() && i < kMostPrinted; ++i) {
        const CommunicationLine &line = lines[i];
        const std::string groups = std::to_string(line.groupCount) + " x " + groupWords(line, 1);
        std::printf("  %-15s %-22s %-15s %-12s %10s %6lld %10s %10s %10s %11.1f %10s\n", nameOf(line.kind),
            groups.c_str(), line.link.c_str(), algorithmWords(line).c_str(), formatBytes(line.bytes).c_str(),
            static_cast<long long>(line.count), formatNanoseconds(line.alone.count()).c_str(),
            formatNanoseconds(line.time.count()).c_str(), formatNanoseconds(line.exposed.count()).c_str(),
            busBandwidthOf(line) * 1e-9, formatNanoseconds(line.starts.front().count()).c_str());
    }
    if (lines.size() > kMostPrinted)
        std::printf("  and %zu more: --csv and --json have all\n", lines.size() - kMostPrinted);
}

} // namespace

Result<int> runReport(const Arguments &arguments)
{
    const std::string out = arguments.text("out");
    if (out.empty() && arguments.has("json"))
        return Error{ErrorCode::InvalidInput, "--json needs --out: the report itself goes to standard output",
            {}, "--json"};
    const std::string cluster = clusterWord(arguments, "");
    TRY(const Report report, reportOfFiles(arguments.positional(), arguments.text("with"), cluster));
    if (out.empty()) {
        std::cout << htmlOf(report);
        return 0;
    }
    const bool isPdf = out.ends_with(".pdf");
    if (isPdf)
        TRY_VOID(printReport(out, cluster, arguments.positional(), arguments.text("with")));
    else
        TRY_VOID(writeFile(out, htmlOf(report)));
    if (arguments.has("json"))
        std::cout << json{{"file", out}, {"plans", report.plans.size()}} << "\n";
    else
        std::printf("%s: %s\n", out.c_str(), isPdf ? "a PDF of A4 pages" : "open it in a browser");
    return 0;
}

Result<int> runCommunication(const Arguments &arguments)
{
    TRY(const ExecutionPlan plan, readPlan(arguments.positional()));
    TRY(const Cluster cluster, clusterOf(arguments, plan));
    TRY(const Timeline timeline, simulate(plan, cluster));
    const auto lines = communicationLines(plan, timeline, cluster);
    if (!lines)
        return cancelled();
    if (arguments.has("csv"))
        TRY_VOID(writeFile(arguments.text("csv"), communicationCsv(*lines)));
    if (arguments.has("json")) {
        json object{{"step_nanoseconds", timeline.step.count()}, {"lines", json::array()}};
        for (const CommunicationLine &line : *lines)
            object["lines"].push_back(lineJson(line, *plan.graph));
        std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
        return 0;
    }
    std::printf("%s on %s: step %s\n", arguments.positional().c_str(), cluster.name.c_str(),
        formatNanoseconds(timeline.step.count()).c_str());
    if (lines->empty())
        std::printf("  nothing is communicated\n");
    else
        printLines(*lines);
    return 0;
}

} // namespace planloom::cli
