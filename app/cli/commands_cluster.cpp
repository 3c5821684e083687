#include "app/cli/commands.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/measured_cluster.h"

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

} // namespace

Result<int> runCluster(const Arguments &arguments)
{
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
