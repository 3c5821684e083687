#include "app/cli/export_config.h"
#include "app/cli/model.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/design/remembered.h"
#include "engine/interop/configs/rank_order.h"
#include "engine/interop/configs/write_config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

json writtenJson(const std::string &format, const WrittenConfig &written)
{
    json object{{"format", format}, {"text", written.text}, {"whole", written.isWhole},
        {"unsaid", json::array()}, {"instead", written.instead}, {"notes", written.notes}};
    for (const UnsaidRow &row : written.unsaid)
        object["unsaid"].push_back({{"row", row.row.index}, {"text", row.text},
            {"seconds_without", row.secondsWithout > 0 ? json(row.secondsWithout) : json(nullptr)}});
    if (!written.ranks.empty()) {
        object["ranks"] = json::array();
        for (const DeviceId device : written.ranks)
            object["ranks"].push_back(device.index);
    }
    if (!written.isWhole) {
        object["plan_seconds"] = written.planSeconds;
        object["config_seconds"] = written.configSeconds;
    }
    return object;
}

/// Which device each rank of the framework runs on, in the words of what starts them.
Result<int> exportRanks(const Arguments &arguments, const WrittenConfig &written, const PlanRequest &request)
{
    TRY(const RankFile kind, rankFileNamed(arguments.text("ranks")));
    TRY(const Target target, resolve(request.target));
    std::vector<DeviceId> devices = written.ranks;
    for (std::int32_t device = 0; written.ranks.empty() && device < target.deviceCount; ++device)
        devices.push_back(DeviceId{device});
    std::vector<std::string> hosts;
    std::string rest = arguments.text("hosts");
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        hosts.push_back(rest.substr(0, comma));
        rest.erase(0, comma + 1);
    }
    TRY(const std::string text, rankFileText(kind, devices, target.cluster.links.devicesPerNode, hosts));
    if (arguments.has("out"))
        TRY_VOID(writeFile(arguments.text("out"), text));
    if (arguments.has("json")) {
        json list = json::array();
        for (const DeviceId device : devices)
            list.push_back(device.index);
        std::cout << json{{"ranks", list}, {"text", text}} << "\n";
    } else if (!arguments.has("out"))
        std::cout << text;
    return 0;
}

} // namespace

void sayUnsaid(const std::string &format, const WrittenConfig &written)
{
    for (const std::string &note : written.notes)
        std::fprintf(stderr, "planloom-cli: note: %s\n", note.c_str());
    if (!written.ranks.empty())
        std::fprintf(stderr,
            "planloom-cli: note: %s numbers ranks otherwise than the plan numbers devices: --ranks writes "
            "where "
            "to start them\n",
            format.c_str());
    if (written.isWhole)
        return;
    for (const UnsaidRow &row : written.unsaid)
        std::fprintf(stderr, "planloom-cli: %s has no words for %s: %s%s\n", format.c_str(),
            rowWords(row.row.index).c_str(), row.text.c_str(),
            row.secondsWithout > 0 ? (" (without it: " + secondsText(row.secondsWithout) + " in place of "
                + secondsText(written.planSeconds) + ")")
                                         .c_str()
                                   : "");
    for (const std::string &row : written.instead)
        std::fprintf(stderr, "planloom-cli: its plan has, beside the rows of this one: %s\n", row.c_str());
    if (written.configSeconds > 0)
        std::fprintf(stderr, "planloom-cli: as it is written a step takes %s in place of %s\n",
            secondsText(written.configSeconds).c_str(), secondsText(written.planSeconds).c_str());
}

Result<PlanRequest> requestRemembered(const Arguments &arguments, const ExecutionPlan &plan)
{
    PlanRequest request;
    TRY(const ModelSource source, rememberedModel(plan));
    TRY(request.model, openModel(source, {}, KeepContent::No));
    TRY(const std::string rows, rowsRemembered(plan));
    request.table = TableDocument(rows);
    request.target =
        arguments.has("cluster") ? TargetChoice{clusterWord(arguments, ""), {}, 0} : rememberedTarget(plan);
    return request;
}

bool isConfigFormat(std::string_view format)
{
    const std::vector<std::string> names = configFormatNames();
    return std::find(names.begin(), names.end(), format) != names.end();
}

Result<int> exportConfig(const Arguments &arguments)
{
    const std::string name = arguments.text("format");
    TRY(const ConfigFormat *const format, configFormatNamed(name));
    TRY(const ExecutionPlan plan, readPlan(arguments.positional()));
    TRY(const PlanRequest request, requestRemembered(arguments, plan));
    TRY(const WrittenConfig written, writeConfig(*format, request));
    if (arguments.has("ranks"))
        return exportRanks(arguments, written, request);
    if (arguments.has("out"))
        TRY_VOID(writeFile(arguments.text("out"), written.text));
    if (arguments.has("json"))
        std::cout << writtenJson(name, written).dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    else {
        if (!arguments.has("out"))
            std::cout << written.text;
        sayUnsaid(name, written);
    }
    return written.isWhole ? 0 : 1;
}

} // namespace planloom::cli
