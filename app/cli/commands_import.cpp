#include "app/cli/commands.h"
#include "app/cli/model.h"

#include "engine/base/files.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/framework.h"
#include "engine/interop/configs/imported_design.h"
#include "engine/interop/configs/setting.h"
#include "engine/table/table_text.h"

#include "sessions/session_store.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

json remarksJson(const std::vector<KeyRemark> &remarks)
{
    json list = json::array();
    for (const KeyRemark &remark : remarks) {
        list.push_back({{"key", remark.key}, {"line", remark.line}});
        if (!remark.why.empty())
            list.back()["why"] = remark.why;
    }
    return list;
}

json errorJson(const Error &error)
{
    return {{"message", error.message}, {"advice", error.advice}, {"where", error.where}};
}

/// What was read, with the design that it makes or why it makes none.
json importJson(const ImportedConfig &imported, const Result<ImportedDesign> &design)
{
    json object{{"format", imported.format->name}, {"framework", imported.config.text("framework")},
        {"model", nullptr}, {"cluster", nullptr}, {"rows", json::array()},
        {"understood", remarksJson(imported.understood)}, {"irrelevant", remarksJson(imported.irrelevant)},
        {"unknown", remarksJson(imported.unknown)}, {"errors", json::array()}, {"notes", imported.notes}};
    json values = json::object();
    for (const auto &[field, entry] : imported.config.entries())
        values[field] = wordOf(entry.value);
    object["values"] = std::move(values);
    for (const Error &error : imported.errors)
        object["errors"].push_back(errorJson(error));
    if (!design) {
        object["errors"].push_back(errorJson(design.error()));
        return object;
    }
    object["model"] = design->request.model->source.source;
    object["cluster"] = splitFramework(design->request.target.cluster).first;
    for (const ImportedRow &row : design->rows)
        object["rows"].push_back({{"text", print(row.row)}, {"key", row.key}, {"line", row.line}});
    return object;
}

void printImport(const ImportedConfig &imported, const Result<ImportedDesign> &design)
{
    std::printf("%s\n", std::string(imported.format->meaning).c_str());
    if (design) {
        std::printf("  model          %s\n  cluster        %s\n",
            design->request.model->source.source.c_str(), design->request.target.cluster.c_str());
        for (const ImportedRow &row : design->rows)
            std::printf("  %s%s%s\n", print(row.row).c_str(), row.row.note.empty() ? "" : "   # ",
                row.row.note.c_str());
    }
    std::printf("  keys           %zu understood, %zu of no effect on plans, %zu unknown\n",
        imported.understood.size(), imported.irrelevant.size(), imported.unknown.size());
    for (const KeyRemark &remark : imported.unknown)
        std::printf(
            "  unknown        line %d: %s: %s\n", remark.line, remark.key.c_str(), remark.why.c_str());
    for (const std::string &note : imported.notes)
        std::printf("  note           %s\n", note.c_str());
    for (const Error &error : imported.errors)
        std::printf("  error          %s\n", describe(error).c_str());
    if (!design)
        std::printf("  error          %s\n", describe(design.error()).c_str());
}

Result<void> writeDesign(const std::string &path, const ImportedDesign &design)
{
    const PlanRequest &request = design.request;
    if (!path.ends_with(".planloom"))
        return writeFile(path, request.table.text());
    SessionContents contents;
    contents.model.source = request.model->source.source;
    if (!isZooSpec(contents.model.source)) {
        TRY(contents.model.content, readFile(contents.model.source));
    }
    DesignState state{request.table,
        {{"cluster", request.target.cluster}, {"devices", std::to_string(request.target.deviceCount)}}};
    contents.history = History(std::move(state));
    TRY(const auto store, SessionStore::create(path, contents));
    return {};
}

} // namespace

Result<int> runImport(const Arguments &arguments)
{
    const std::string &path = arguments.positional();
    TRY(const std::string text,
        readFile(path, {.what = "config", .mostBytes = kMostConfigBytes, .pipes = true}));
    ConfigOptions options{
        .format = arguments.text("format"), .fileName = path, .function = arguments.text("function")};
    options.cluster = arguments.text("cluster", options.cluster);
    TRY(options.devices, arguments.integer("devices", 0, 1, 1 << 20));
    for (const std::string &set : arguments.texts("set")) {
        const std::size_t equals = set.find('=');
        if (equals == std::string::npos || equals == 0)
            return Error{ErrorCode::InvalidInput, "expected NAME=VALUE, found \"" + set + "\"", {}, "--set"};
        options.variables[set.substr(0, equals)] = set.substr(equals + 1);
    }
    auto read = readConfig(text, options);
    if (!read) {
        Error error = std::move(read).error();
        error.where = error.where.empty() ? path : path + ":" + error.where;
        return error;
    }
    ModelSnapshot model;
    if (arguments.has("model")) {
        TRY(model, openModel({arguments.text("model"), {}, {}}, {}, KeepContent::No));
    }
    const auto design = designOf(*read, model);
    if (arguments.has("json"))
        std::cout << importJson(*read, design).dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    else
        printImport(*read, design);
    if (design && arguments.has("out"))
        TRY_VOID(writeDesign(arguments.text("out"), *design));
    return design && read->errors.empty() ? 0 : 1;
}

} // namespace planloom::cli
