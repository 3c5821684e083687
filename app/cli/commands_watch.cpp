#include "app/cli/commands_watch.h"

#include "app/cli/commands.h"
#include "app/cli/model.h"

#include "engine/analyse/bound.h"
#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/design/live_solver.h"
#include "engine/design/models/table_file.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

namespace planloom::cli {

namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// Between two looks at the file, and how long it must stay as it is before it is read: editors write in
/// several steps.
constexpr auto kLook = 25ms;
constexpr int kLooksAlike = 3;

std::atomic<bool> gInterrupted{false}; ///< A signal's handler can reach nothing else.
extern "C" void onInterrupt(int)
{
    gInterrupted = true;
}

json errorsToJson(const PlanAnswer &answer)
{
    json errors = json::array();
    const auto add = [&](const Error &error, std::int32_t row) {
        errors.push_back({{"message", error.message}, {"advice", error.advice}, {"where", error.where}});
        if (row >= 0)
            errors.back()["row"] = row;
    };
    for (const Error &error : answer.textErrors)
        add(error, -1);
    if (answer.error)
        add(*answer.error, -1);
    for (const RowLine &row : answer.rows)
        if (row.report.error)
            add(*row.report.error, row.row.index);
    return errors;
}

json toJson(const LiveReport &report)
{
    json line{{"revision", report.revision}, {"grade", nameOf(report.grade)}};
    if (const SearchResult *better = report.better)
        line.update({{"plan", toString(better->best.configuration)},
            {"step_seconds", better->best.simulatedSeconds}, {"model_seconds", better->best.seconds},
            {"bound_seconds", better->bound}, {"gap", better->gap()}, {"fits", better->fits},
            {"peak_bytes", better->best.simulatedPeak}, {"seconds", better->best.at}});
    const PlanAnswer *answer = report.answer;
    if (!answer)
        return line;
    line.update({{"rows", answer->rows.size()}, {"errors", errorsToJson(*answer)}});
    json conflicts = json::array();
    for (const RowConflict &conflict : answer->conflicts) {
        json rows = json::array();
        for (const RowId row : conflict.rows)
            rows.push_back(row.index);
        conflicts.push_back(std::move(rows));
    }
    line["conflicts"] = std::move(conflicts);
    if (answer->search)
        line.update({{"plan", toString(answer->search->best.configuration)}, {"gap", answer->search->gap()},
            {"fits", answer->search->fits}});
    if (answer->isTimed())
        line.update({{"step_seconds", answer->summary.stepSeconds},
            {"bound_seconds", stepBound(*answer->execution, costModelOf(answer->cluster))},
            {"peak_bytes", answer->summary.largestPeak.count}, {"bubble", answer->summary.bubble}});
    return line;
}

std::string wordsOf(const LiveReport &report)
{
    std::string words = "#" + std::to_string(report.revision) + " " + nameOf(report.grade) + ": ";
    if (const SearchResult *better = report.better) {
        char gap[32];
        std::snprintf(gap, sizeof gap, "%.1f%%", better->gap() * 100);
        words += toString(better->best.configuration) + ", " + secondsText(better->best.simulatedSeconds)
            + ", gap about " + gap;
    } else if (const auto error = report.answer->firstError()) {
        words += describe(*error);
    } else if (report.answer->isTimed()) {
        words += "step " + secondsText(report.answer->summary.stepSeconds) + ", peak "
            + formatBytes(report.answer->summary.largestPeak);
    } else {
        words += counted(static_cast<std::int64_t>(report.answer->rows.size()), "row");
    }
    return words;
}

/// A file that has stopped changing.
class WatchedFile
{
public:
    explicit WatchedFile(std::string path)
        : m_path(std::move(path))
    {
    }

    /// What it holds, once for every change: when it has been the same for a few looks.
    std::optional<Result<std::string>> next()
    {
        Result<std::string> now = readFile(m_path, {});
        const std::string seen = now ? "+" + *now : "-" + now.error().message;
        if (seen != m_seen) {
            m_seen = seen;
            m_alike = 0;
        }
        if (m_told == m_seen || ++m_alike < (m_told.empty() ? 1 : kLooksAlike))
            return std::nullopt;
        m_told = m_seen;
        return now;
    }

private:
    std::string m_path;
    std::string m_seen{}; ///< At the last look.
    std::string m_told{};
    int m_alike = 0;
};

} // namespace

Result<int> watchTable(const Arguments &arguments)
{
    const bool asJson = arguments.has("json");
    gInterrupted = false;
    std::signal(SIGINT, onInterrupt);
    std::signal(SIGTERM, onInterrupt);
    // Lines of two threads, each written at once.
    const auto tell = [asJson](const json &line, const std::string &words) {
        const std::string text =
            (asJson ? line.dump(-1, ' ', false, json::error_handler_t::replace) : words) + "\n";
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
    };
    const std::string path = arguments.text("watch");
    ModelSnapshot model;
    const auto report = [&](const LiveReport &news) {
        tell(asJson ? toJson(news) : json{}, asJson ? std::string{} : wordsOf(news));
    };
    LiveSolver solver;
    WatchedFile file(path);
    bool first = true;
    while (!gInterrupted && std::ferror(stdout) == 0) {
        if (const auto changed = file.next()) {
            auto request = *changed ? planRequest(arguments, arguments.positional(), {}, model)
                                    : Result<PlanRequest>(changed->error());
            if (request) {
                model = request->model;
                request->upTo = PlanGrade::Timed;
                request->search = !arguments.has("no-search") && !arguments.has("gallery");
                request->explains = true;
                solver.solve(*std::move(request), report);
            } else if (first) {
                return request.error();
            } else {
                solver.stop(); // what is shown is not of these rows
                const Error &error = request.error();
                tell({{"grade", "unreadable"},
                         {"errors",
                             json::array({{{"message", error.message}, {"advice", error.advice},
                                 {"where", error.where}}})}},
                    "unreadable: " + describe(error));
            }
            first = false;
        }
        std::this_thread::sleep_for(kLook);
    }
    return 0;
}

} // namespace planloom::cli
