#include "app/cli/conflicts.h"

#include "engine/base/place.h"
#include "engine/base/words.h"
#include "engine/terminal/exit_status.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace planloom::cli {

using nlohmann::json;

namespace {

constexpr std::size_t kWidthOfWay = 60;

std::string rowsText(const std::vector<RowId> &rows)
{
    std::string text = rows.size() == 1 ? "row " : "rows ";
    for (std::size_t i = 0; i < rows.size(); ++i)
        text += (i == 0 ? "" : i + 1 == rows.size() ? " and " : ", ") + std::to_string(rows[i].index + 1);
    return text;
}

/// The reason, with rows by index: `RowConflict::words` has them by line.
std::string sentenceOf(const RowConflict &conflict)
{
    const std::string &reason = conflict.reason.message;
    if (reason.empty()) // a pair, where there was no time to look further
        return conflict.words;
    const std::string cannot = conflict.rows.size() == 1 ? ": "
        : conflict.minimal                               ? " cannot hold together: "
                                                         : " hold a conflict, not narrowed down in time: ";
    return rowsText(conflict.rows) + cannot + reason;
}

} // namespace

void printConflicts(const PlanAnswer &answer)
{
    for (const RowConflict &conflict : answer.conflicts) {
        std::cerr << "planloom-cli: " << sentenceOf(conflict) << "\n";
        for (const RowId row : conflict.rows)
            std::cerr << "  " << rowWords(row.index) << ": " << answer.rows[at(row)].text << "\n";
        if (!conflict.waysOut.empty())
            std::cerr << "  ways out\n";
        for (const RowWayOut &way : conflict.waysOut) {
            std::string left = "    " + (way.row.valid() ? rowWords(way.row.index) + ": " : std::string{})
                + (way.text.empty() ? way.words : way.text);
            const std::string effect = effectOf(way);
            if (!effect.empty())
                left.resize(std::max(left.size() + 2, kWidthOfWay), ' ');
            std::cerr << left << effect << "\n";
        }
    }
    for (const RowLine &row : answer.rows) {
        const auto isTold = [&](const RowConflict &conflict) {
            return std::find(conflict.rows.begin(), conflict.rows.end(), row.row) != conflict.rows.end();
        };
        if (row.report.error && std::none_of(answer.conflicts.begin(), answer.conflicts.end(), isTold)) {
            Error shown = *row.report.error;
            shown.where = placeWords(placeOf(shown));
            std::cerr << "planloom-cli: " << describe(shown) << "\n";
        }
    }
}

json conflictsToJson(const PlanAnswer &answer)
{
    json object{{"conflict", json::array()}, {"conflicts", json::array()}, {"ways_out", json::array()}};
    const auto error = answer.firstError();
    object["error"] = {{"message", error ? error->message : ""}, {"advice", error ? error->advice : ""},
        {"where", error ? error->where : ""}};
    for (std::size_t c = 0; c < answer.conflicts.size(); ++c) {
        const RowConflict &conflict = answer.conflicts[c];
        json rows = json::array();
        for (const RowId row : conflict.rows)
            rows.push_back(row.index);
        if (c == 0)
            object["conflict"] = rows;
        object["conflicts"].push_back(
            {{"rows", rows}, {"minimal", conflict.minimal}, {"reason", sentenceOf(conflict)}});
        for (const RowWayOut &way : conflict.waysOut) {
            json one{{"conflict", c}, {"row", way.row.index}, {"edit", way.text}, {"words", way.words},
                {"holds", way.holds}, {"effect", effectOf(way)}};
            if (way.stepSeconds > 0) {
                one["step_seconds"] = way.stepSeconds;
                one["peak_bytes"] = way.peak.count;
                one["devices_over_memory"] = way.overMemory;
            }
            object["ways_out"].push_back(std::move(one));
        }
    }
    return object;
}

int exitStatusOf(const PlanAnswer &answer)
{
    const bool several = std::any_of(answer.conflicts.begin(), answer.conflicts.end(),
        [](const RowConflict &conflict) { return conflict.rows.size() > 1; });
    const auto error = answer.firstError();
    return several ? kExitConflict : planloom::exitStatusOf(error ? error->code : ErrorCode::InvalidInput);
}

} // namespace planloom::cli
