#include "engine/measured/measured_file.h"

#include "engine/base/files.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <system_error>

namespace planloom {

namespace {

using nlohmann::json;

Error wrong(const std::string &where, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message),
        "a file of measured runs is an object with rows, which are objects or lists in the order of columns",
        where};
}

std::optional<RunValue> valueOf(const json &value)
{
    if (value.is_boolean())
        return value.get<bool>();
    if (value.is_number())
        return value.get<double>();
    if (value.is_string())
        return value.get<std::string>();
    const auto all = [&](auto isKind) { return std::all_of(value.begin(), value.end(), isKind); };
    if (value.is_array() && !value.empty() && all([](const json &each) { return each.is_number(); }))
        return value.get<std::vector<double>>();
    if (value.is_array() && !value.empty() && all([](const json &each) { return each.is_string(); }))
        return value.get<std::vector<std::string>>();
    return std::nullopt; // null, and what no column says
}

RunValues valuesOf(const json &object)
{
    RunValues values;
    if (object.is_object())
        for (const auto &[name, value] : object.items())
            if (auto known = valueOf(value))
                values.emplace(name, *std::move(known));
    return values;
}

std::string textOf(const json &object, const char *name)
{
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json memberOf(const json &object, const char *name)
{
    const auto found = object.find(name);
    return found == object.end() ? json() : *found;
}

RunSurroundings surroundingsOf(const json &file)
{
    const json fixed = memberOf(file, "fixed");
    RunSurroundings around;
    around.about =
        inSmallLetters(textOf(file, "source") + (fixed.is_object() ? fixed.dump() : std::string()));
    around.cluster = textOf(file, "cluster");
    around.fixed = valuesOf(fixed);
    return around;
}

/// Adds the runs of the list `rows`, of columns that are named once or of each row by itself.
Result<void> addRuns(const json &file, const std::string &name, const char *rows, const char *columns,
    bool failed, std::vector<MeasuredRun> &runs)
{
    const json all = memberOf(file, rows);
    if (all.is_null())
        return {};
    if (!all.is_array())
        return wrong(name + "/" + rows, "expected a list of runs");
    const json names = memberOf(file, columns);
    const json models = memberOf(file, "models");
    const RunSurroundings around = surroundingsOf(file);
    for (std::size_t r = 0; r < all.size(); ++r) {
        const std::string where = name + "/" + rows + "/" + std::to_string(r);
        json row = all[r];
        if (row.is_array()) {
            if (!names.is_array() || names.size() != row.size())
                return wrong(where,
                    "a row of " + std::to_string(row.size()) + " values, where " + columns + " names "
                        + std::to_string(names.is_array() ? names.size() : 0));
            json named = json::object();
            for (std::size_t i = 0; i < row.size(); ++i) {
                if (!names[i].is_string())
                    return wrong(name + "/" + columns + "/" + std::to_string(i), "expected a name");
                named[names[i].get<std::string>()] = row[i];
            }
            row = std::move(named);
        } else if (!row.is_object())
            return wrong(where, "expected a run, as an object or a list");
        RunValues model;
        if (models.is_object())
            model = valuesOf(memberOf(models, textOf(row, "model").c_str()));
        runs.emplace_back(valuesOf(row), std::move(model), around, failed);
    }
    return {};
}

bool isTraceOfPair(const json &file)
{
    const json names = memberOf(file, "columns");
    return memberOf(file, "whole").is_object() && names.is_array() && names.size() > 0 && names[0] == "phase";
}

/// How many layers ran the pass that phases end with, "(F)": a layer has each phase once.
double layersOf(const json &rows, std::string_view pass)
{
    std::map<std::string, double> counts;
    double layers = 0;
    for (const json &row : rows)
        if (row.is_array() && !row.empty() && row[0].is_string())
            if (const auto phase = row[0].get<std::string>(); phase.ends_with(pass))
                layers = std::max(layers, ++counts[phase]);
    return layers;
}

Result<MeasuredRun> runOfPair(const json &file, const std::string &name)
{
    const json span = memberOf(memberOf(file, "whole"), "span_us");
    if (!span.is_number())
        return wrong(name + "/whole/span_us", "expected what the pair took, in microseconds");
    const json rows = memberOf(file, "rows");
    const double layers = layersOf(rows, "(F)");
    if (layers < 1 || layers != layersOf(rows, "(B)"))
        return wrong(name + "/rows", "expected phases of as many layers forward as backward");
    RunSurroundings around = surroundingsOf(file);
    const std::string model = textOf(file, "model");
    RunValues columns{{"model", model.substr(0, model.find(':'))}, {"layers", layers},
        {"overlapped_pair", true}, {"step_seconds", span.get<double>() * 1e-6}};
    // "64 H800 (8 a node ...)"
    if (const double devices = std::strtod(around.cluster.c_str(), nullptr); devices >= 1)
        columns.emplace("devices", devices);
    return MeasuredRun(std::move(columns), {}, std::move(around));
}

/// Runs of files beside `path` that have recipes and no times.
std::vector<RunValues> settingsBeside(const std::filesystem::path &path)
{
    std::vector<RunValues> settings;
    const std::filesystem::path folder = path.parent_path();
    for (const std::filesystem::path &each : {folder, folder / "measured"}) {
        std::error_code none;
        for (const auto &entry : std::filesystem::directory_iterator(each.empty() ? "." : each, none)) {
            if (entry.path().extension() != ".json"
                || entry.path().filename().string().find("settings") == std::string::npos)
                continue;
            const auto text = readFile(entry.path());
            const json file = text ? json::parse(*text, nullptr, false) : json();
            if (!file.is_object())
                continue;
            for (const json &row : memberOf(file, "rows"))
                if (row.is_object() && row.contains("recipe") && !row.contains("step_seconds"))
                    settings.push_back(valuesOf(row));
        }
    }
    return settings;
}

} // namespace

Result<MeasuredFile> readMeasured(std::string_view text, const std::string &name)
{
    const json file = json::parse(text, nullptr, false);
    if (file.is_discarded())
        return wrong(name, "it is no JSON");
    if (!file.is_object() || !memberOf(file, "rows").is_array())
        return wrong(name, "it has no rows");
    MeasuredFile measured;
    measured.name = name;
    if (isTraceOfPair(file)) {
        TRY(MeasuredRun pair, runOfPair(file, name));
        measured.runs.push_back(std::move(pair));
        return measured;
    }
    TRY_VOID(addRuns(file, name, "rows", "columns", false, measured.runs));
    TRY_VOID(addRuns(file, name, "failed", "failed_columns", true, measured.runs));
    return measured;
}

Result<MeasuredFile> readMeasuredFile(const std::filesystem::path &path)
{
    TRY(const std::string text, readFile(path));
    TRY(MeasuredFile measured, readMeasured(text, path.filename().string()));
    std::vector<MeasuredRun> recipes;
    for (RunValues &settings : settingsBeside(path))
        recipes.emplace_back(std::move(settings), RunValues{}, RunSurroundings{});
    for (MeasuredRun &run : measured.runs) {
        const auto found = std::find_if(
            recipes.begin(), recipes.end(), [&](const MeasuredRun &recipe) { return run.isRunOf(recipe); });
        if (found != recipes.end())
            run.complete(found->columns());
    }
    return measured;
}

} // namespace planloom
