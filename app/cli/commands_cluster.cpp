#include "app/cli/cluster_of_spans.h"
#include "app/cli/commands.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/measured_cluster.h"
#include "engine/interop/machines/machine_cluster.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

nlohmann::json errorsJson(const std::vector<FitError> &errors)
{
    nlohmann::json list = nlohmann::json::array();
    for (const FitError &error : errors)
        list.push_back(
            {{"kind", error.kind}, {"times", error.rows}, {"median", error.median}, {"worst", error.worst}});
    return list;
}

/// The cluster of files about machines: what each said, and what none of them did.
Result<int> clusterOfTopologies(const Arguments &arguments)
{
    TRY(const std::int64_t hosts, arguments.integer("hosts", 0, 1, kMostDevices));
    TRY(const MachineCluster made,
        machineClusterOf(
            arguments.texts("topology"), arguments.text("device"), static_cast<std::int32_t>(hosts)));
    const std::string text = toJson(made.cluster);
    const std::string out = arguments.text("out");
    if (!out.empty())
        TRY_VOID(writeFile(out, text));
    if (arguments.has("json")) {
        const nlohmann::json object{{"read", made.read}, {"assumed", made.assumed},
            {"file", out.empty() ? nlohmann::json() : nlohmann::json(out)},
            {"cluster", nlohmann::json::parse(text)}};
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
        return 0;
    }
    std::ostream &report = out.empty() ? std::cerr : std::cout;
    for (const std::string &sentence : made.read)
        report << sentence << "\n";
    for (const std::string &sentence : made.assumed)
        report << "assumed: " << sentence << "\n";
    if (out.empty())
        std::cout << text;
    else
        report << out << ": " << deviceNames(made.cluster) << ", " << made.cluster.deviceCount
               << " devices\n";
    return 0;
}

} // namespace

Result<int> runCluster(const Arguments &arguments)
{
    if (arguments.has("spans"))
        return clusterOfSpans(arguments);
    if (arguments.has("plan"))
        return Error{ErrorCode::InvalidInput, "--plan is for --spans", "leave it out", "--plan"};
    if (arguments.has("topology"))
        return clusterOfTopologies(arguments);
    auto measured = measuredCluster({arguments.text("kernels"), arguments.text("collectives"),
        arguments.text("device"), arguments.text("base")});
    if (!measured)
        return std::move(measured).error();
    const FittedCluster &fitted = measured->fitted;
    const std::string text = toJson(fitted.cluster);
    const std::string out = arguments.text("out");
    if (!out.empty())
        TRY_VOID(writeFile(out, text));
    if (arguments.has("json")) {
        nlohmann::json object{{"device", measured->device}, {"errors", errorsJson(fitted.errors)},
            {"unknown_formats", measured->unknown}};
        object["file"] = out.empty() ? nlohmann::json() : nlohmann::json(out);
        object["cluster"] = nlohmann::json::parse(text);
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
        return 0;
    }
    // The file alone is what is asked for where it goes to standard output.
    std::ostream &report = out.empty() ? std::cerr : std::cout;
    for (const FitError &error : fitted.errors)
        report << toString(error) << "\n";
    for (const auto &[format, rows] : measured->unknown)
        report << rows << " times of the format \"" << format
               << "\" were left out: Planloom does not have it\n";
    if (out.empty())
        std::cout << text;
    else
        report << out << ": " << fitted.cluster.device.name << ", " << fitted.cluster.deviceCount
               << " devices\n";
    return 0;
}

} // namespace planloom::cli
