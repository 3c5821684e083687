#include "app/cli/commands.h"

#include "sessions/session_store.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

void write(const json &object)
{
    std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
}

/// "2026-11-21 03:05", in UTC so that everybody sees the same.
std::string timeText(std::int64_t milliseconds)
{
    const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
    std::tm parts{};
    std::array<char, 32> text{};
    if (::gmtime_r(&seconds, &parts) == nullptr
        || std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts) == 0)
        return "?";
    return text.data();
}

std::string figuresText(const std::optional<StepFigures> &figures)
{
    if (!figures)
        return {};
    std::array<char, 64> text{};
    const double milliseconds = figures->stepSeconds * 1000;
    std::snprintf(text.data(), text.size(), "%.3g ms%s", milliseconds, figures->verified ? ", verified" : "");
    return text.data();
}

std::string valueOf(const DesignState &state, const std::string &name)
{
    const auto found = state.values.find(name);
    return found == state.values.end() ? std::string{} : found->second;
}

json stepJson(const HistoryStep &step)
{
    json object{{"id", step.id}, {"parent", step.parent}, {"words", step.words}, {"created", step.created}};
    if (step.figures) {
        object["step_seconds"] = step.figures->stepSeconds;
        object["peak_bytes"] = step.figures->peakBytes;
        object["verified"] = step.figures->verified;
    }
    return object;
}

json sessionJson(
    const SessionContents &contents, const std::vector<std::string> &damage, const json &problems)
{
    const History &history = contents.history;
    json object{{"model", contents.model.source}, {"model_bytes", contents.model.content.size()},
        {"cluster", valueOf(history.state(), "cluster")}, {"rows", history.state().table.rowLines().size()},
        {"problems", problems}, {"step", history.current()}, {"steps", json::array()},
        {"branches", json::array()},
        {"branch", history.branches()[static_cast<std::size_t>(history.branch())].name},
        {"names", history.names()}, {"runs", json::array()}, {"damage", damage}};
    const std::string devices = valueOf(history.state(), "devices");
    object["devices"] = json::parse(devices, nullptr, false);
    if (!object["devices"].is_number())
        object["devices"] = nullptr;
    for (const HistoryStep &step : history.steps())
        object["steps"].push_back(stepJson(step));
    for (const Branch &branch : history.branches())
        object["branches"].push_back({{"id", branch.id}, {"name", branch.name}, {"head", branch.head}});
    for (const SessionRun &run : contents.runs) {
        object["runs"].push_back({{"id", run.id}, {"step", run.step}, {"created", run.created},
            {"title", run.title}, {"state", run.state}});
    }
    return object;
}

void printSession(const std::string &name, const SessionContents &contents,
    const std::vector<std::string> &damage, const json &problems)
{
    const History &history = contents.history;
    std::printf("%s\n  model     %s\n  cluster   %s, %s devices\n  rows      %zu\n", name.c_str(),
        contents.model.source.c_str(), valueOf(history.state(), "cluster").c_str(),
        valueOf(history.state(), "devices").c_str(), history.state().table.rowLines().size());
    const auto title = [&](StepId id) {
        const HistoryStep *step = history.find(id);
        return step ? "step " + std::to_string(id) + " \"" + step->words + "\""
                    : std::string("the first state");
    };
    std::printf(
        "  stands at %s\n  steps     %zu\n", title(history.current()).c_str(), history.steps().size());
    for (const HistoryStep &step : history.steps()) {
        std::printf("    %c %lld after %lld  %s  \"%s\"  %s\n", step.id == history.current() ? '>' : ' ',
            static_cast<long long>(step.id), static_cast<long long>(step.parent),
            timeText(step.created).c_str(), step.words.c_str(), figuresText(step.figures).c_str());
    }
    for (const Branch &branch : history.branches()) {
        std::printf("  branch    %s%s: %s\n", branch.name.c_str(),
            branch.id == history.branch() ? " (current)" : "", title(branch.head).c_str());
    }
    for (const auto &[words, id] : history.names())
        std::printf("  name      %s: %s\n", words.c_str(), title(id).c_str());
    for (const SessionRun &run : contents.runs) {
        std::printf("  run       %lld  %s, %s, of %s\n", static_cast<long long>(run.id), run.title.c_str(),
            run.state.c_str(), title(run.step).c_str());
    }
    for (const json &problem : problems)
        std::printf("  problem: %s\n", problem.get<std::string>().c_str());
    for (const std::string &each : damage)
        std::printf("  damage: %s\n", each.c_str());
}

/// Reads what can be read, and writes it to a file of its own.
Result<int> repair(const Arguments &arguments)
{
    const std::string target = arguments.text("repair");
    TRY(auto opened, SessionStore::openToLook(arguments.positional()));
    TRY(auto losses, checkSession(arguments.positional()));
    for (SessionRun &run : opened.contents.runs) {
        auto timeline = opened.store.loadRunTimeline(run.id);
        if (timeline)
            run.timeline = *std::move(timeline);
        else
            losses.push_back(timeline.error().message);
    }
    TRY(const auto written, SessionStore::create(target, opened.contents));
    if (arguments.has("json")) {
        write({{"file", target}, {"losses", losses}});
    } else {
        std::printf("%s: %s\n", target.c_str(), losses.empty() ? "nothing was lost" : "what could be read");
        for (const std::string &loss : losses)
            std::printf("  lost: %s\n", loss.c_str());
    }
    return losses.empty() ? 0 : 1;
}

} // namespace

Result<int> runSession(const Arguments &arguments)
{
    if (arguments.has("repair"))
        return repair(arguments);
    TRY(const auto opened, SessionStore::openToLook(arguments.positional()));
    const SessionContents &contents = opened.contents;
    const TableDocument &table = contents.history.state().table;
    if (arguments.has("table") && !arguments.has("json")) {
        std::cout << table.text();
        return 0;
    }
    std::vector<std::string> damage;
    if (arguments.has("check")) {
        TRY(damage, checkSession(arguments.positional()));
    } else if (!contents.remark.empty()) {
        damage.push_back(contents.remark);
    }
    json problems = json::array();
    for (const Error &error : table.errors())
        problems.push_back(describe(error));
    if (arguments.has("json")) {
        json object = sessionJson(contents, damage, problems);
        if (arguments.has("table"))
            object["table"] = table.text();
        write(object);
    } else {
        printSession(arguments.positional(), contents, damage, problems);
    }
    return arguments.has("check") && !(problems.empty() && damage.empty()) ? 1 : 0;
}

} // namespace planloom::cli
