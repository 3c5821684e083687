#include "app/cli/commands.h"

#include "engine/plan/table_text.h"
#include "sessions/session_file.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace planloom::cli {

Result<int> runSession(const Arguments &arguments)
{
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
