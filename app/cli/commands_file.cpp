#include "app/cli/commands.h"

#include "engine/plan/table_text.h"
#include "sessions/session_file.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <iostream>

namespace planloom::cli {

namespace {

/// Reads what can be read, and writes it to a file of its own.
Result<int> repair(const Arguments &arguments)
{
    const std::string target = arguments.text("repair");
    std::error_code failure;
    if (std::filesystem::exists(target, failure))
        return Error{
            ErrorCode::InvalidInput, "there is already a file " + target, "choose another name", "--repair"};
    TRY(const auto salvaged, salvageSession(arguments.positional()));
    TRY_VOID(saveSession(target, salvaged.data));
    if (arguments.has("json")) {
        const nlohmann::json object{{"file", target}, {"losses", salvaged.losses}};
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
        std::printf(
            "%s: %s\n", target.c_str(), salvaged.losses.empty() ? "nothing was lost" : "what could be read");
        for (const std::string &loss : salvaged.losses)
            std::printf("  lost: %s\n", loss.c_str());
    }
    return salvaged.losses.empty() ? 0 : 1;
}

} // namespace

Result<int> runSession(const Arguments &arguments)
{
    if (arguments.has("repair"))
        return repair(arguments);
    TRY(auto file, SessionFile::open(arguments.positional()));
    TRY(const auto data, file.load());
    const TableText table = readTable(data.tableText);
    if (arguments.has("table") && !arguments.has("json")) {
        std::cout << data.tableText;
        return 0;
    }
    nlohmann::json problems = nlohmann::json::array();
    for (const Error &error : table.errors)
        problems.push_back(describe(error));
    if (arguments.has("json")) {
        nlohmann::json object{{"model", data.model.source}, {"model_bytes", data.model.content.size()},
            {"cluster", data.cluster.name}, {"devices", data.cluster.deviceCount},
            {"rows", table.table.rows.size()}, {"problems", problems}};
        if (arguments.has("table"))
            object["table"] = data.tableText;
        if (data.plan)
            object["plan"] = nlohmann::json::parse(data.plan->summary, nullptr, false);
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
        std::printf("%s\n  model    %s\n  cluster  %s, %d devices\n  rows     %zu\n  plan     %s\n",
            arguments.positional().c_str(), data.model.source.c_str(), data.cluster.name.c_str(),
            data.cluster.deviceCount, table.table.rows.size(),
            data.plan ? data.plan->summary.c_str() : "none");
        for (const nlohmann::json &problem : problems)
            std::printf("  problem: %s\n", problem.get<std::string>().c_str());
    }
    return arguments.has("check") && !problems.empty() ? 1 : 0;
}

} // namespace planloom::cli
