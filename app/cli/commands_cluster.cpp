#include "app/cli/commands.h"

#include "engine/base/files.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/cluster_json.h"
#include "engine/hardware/kernel_fit.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

constexpr std::uintmax_t kMostTimingBytes = std::uintmax_t{64} << 20;

Result<std::string> textOf(const std::string &path, const char *what)
{
    return readFile(path, {.what = what, .mostBytes = kMostTimingBytes});
}

/// The times that the options name.
Result<KernelTimings> timingsOf(const Arguments &arguments)
{
    KernelTimings timings;
    const std::string kernels = arguments.text("kernels");
    const std::string collectives = arguments.text("collectives");
    if (kernels.empty() && collectives.empty())
        return Error{ErrorCode::InvalidInput, "there are no times to make a cluster of",
            "name a file with --kernels, --collectives or both", "command line"};
    if (!kernels.empty()) {
        TRY(const std::string text, textOf(kernels, "file of timings"));
        auto read = kernelTimings(text, arguments.text("device"));
        if (!read) {
            if (read.error().where.starts_with("/"))
                read.error().where = kernels + "#" + read.error().where;
            return read.error();
        }
        timings = *std::move(read);
    } else {
        timings.device = arguments.text("device");
    }
    if (!collectives.empty()) {
        TRY(const std::string text, textOf(collectives, "output of nccl-tests"));
        TRY_VOID(addNcclTests(timings, text, collectives));
    }
    return timings;
}

/// One node of the cluster that says what the times don't.
Result<Cluster> baseOf(const Arguments &arguments, const std::string &device)
{
    std::string base = arguments.text("base");
    if (base.empty()) {
        const auto profile = profileOfDevice(device);
        if (!profile)
            return Error{ErrorCode::NotFound,
                device.empty() ? "nothing says which device the times are of"
                               : "no profile is of the device \"" + device + "\"",
                "name one with --base, whose data sheet says what times can't", "--base"};
        base = *profile;
    }
    if (base.ends_with(".json") || base.find(':') != std::string::npos)
        return clusterNamed(base);
    TRY(const Cluster one, clusterNamed(base + ":1"));
    return clusterNamed(base + ":" + std::to_string(one.links.devicesPerNode));
}

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
    TRY(const KernelTimings timings, timingsOf(arguments));
    TRY(Cluster base, baseOf(arguments, timings.device));
    base.name = timings.device.empty() ? base.name : timings.device;
    auto fitted = fittedCluster(std::move(base), timings);
    if (!fitted) {
        if (fitted.error().where.starts_with("/"))
            fitted.error().where = arguments.text("kernels") + "#" + fitted.error().where;
        return fitted.error();
    }
    const std::string text = toJson(fitted->cluster);
    const std::string out = arguments.text("out");
    if (!out.empty())
        TRY_VOID(writeFile(out, text));
    if (arguments.has("json")) {
        nlohmann::json object{{"device", timings.device}, {"errors", errorsJson(fitted->errors)},
            {"unknown_formats", timings.unknown}};
        object["file"] = out.empty() ? nlohmann::json() : nlohmann::json(out);
        object["cluster"] = nlohmann::json::parse(text);
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
        return 0;
    }
    // The file alone is what is asked for where it goes to standard output.
    std::ostream &report = out.empty() ? std::cerr : std::cout;
    for (const FitError &error : fitted->errors)
        report << toString(error) << "\n";
    for (const auto &[format, rows] : timings.unknown)
        report << rows << " times of the format \"" << format
               << "\" were left out: Planloom does not have it\n";
    if (out.empty())
        std::cout << text;
    else
        report << out << ": " << fitted->cluster.device.name << ", " << fitted->cluster.deviceCount
               << " devices\n";
    return 0;
}

} // namespace planloom::cli
