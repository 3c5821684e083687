#include "engine/gesture/gesture.h"
#include "engine/gesture/kept_schedules.h"
#include "engine/gesture/row_edits.h"
#include "engine/table/kinds/beside.h"

#include <algorithm>

namespace planloom {

std::optional<StageLayoutRows> stageRowsOf(const TableDocument &document)
{
    StageLayoutRows found;
    std::vector<std::pair<std::int32_t, const Row *>> numbers;
    std::vector<std::pair<std::int32_t, const Row *>> places; // at one coordinate
    const auto &lines = document.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i]->row || !lines[i]->row->enabled)
            continue;
        const Row &row = *lines[i]->row;
        const auto *place = std::get_if<OpAssignRule>(&row.rule);
        if (std::holds_alternative<StageRule>(row.rule))
            numbers.emplace_back(static_cast<std::int32_t>(i), &row);
        else if (place != nullptr && place->devices.empty() && place->coordinates.size() == 1)
            places.emplace_back(static_cast<std::int32_t>(i), &row);
    }
    for (const auto &[line, number] : numbers) {
        const auto place = std::find_if(places.begin(), places.end(),
            [&selector = number->selector](const auto &each) { return each.second->selector == selector; });
        if (place == places.end())
            return std::nullopt;
        const std::string &axis = std::get<OpAssignRule>(place->second->rule).coordinates.front().axis;
        if (!found.axis.empty() && axis != found.axis)
            return std::nullopt;
        found.axis = axis;
        found.lines.insert(found.lines.end(), {line, place->first});
    }
    std::sort(found.lines.begin(), found.lines.end());
    return numbers.empty() ? std::nullopt : std::optional(std::move(found));
}

Proposal proposeSchedule(const GestureContext &context, const ScheduleRule &rule, std::string words,
    const std::vector<Row> &stageRows, const std::vector<Row> &moreRows)
{
    Proposal proposal;
    proposal.words = words.empty() ? std::string("schedule ") + nameOf(rule.kind) : std::move(words);
    RowEdits edits(context);
    std::int32_t kept = -1;
    const std::int32_t microBatches = microBatchesOf(context);
    forEachRule<ScheduleRule>(context, [&](std::int32_t line, const Row &row, const ScheduleRule &old) {
        if (besides(context.graph(), old, rule) == Beside::Apart) {
            // One for this number comes before one for any: it is off then, and can be had again.
            if (rule.microBatches == 0 && old.microBatches == microBatches) {
                Row off = row;
                off.enabled = false;
                edits.replace(line, std::move(off));
            }
            return;
        }
        if (kept >= 0 || old.microBatches != rule.microBatches) {
            edits.remove(line);
            return;
        }
        kept = line;
        if (old == rule)
            return; // says so already
        Row changed = row;
        changed.rule = rule;
        changed.origin = RowOrigin::Gesture;
        edits.replace(line, std::move(changed));
    });
    if (kept < 0)
        edits.append(gestureRow(selectAll(), rule));
    if (const auto laid = stageRows.empty() ? std::nullopt : stageRowsOf(context.document)) {
        for (const std::int32_t line : laid->lines)
            edits.remove(line);
        for (const Row &row : stageRows)
            edits.append(row);
        // They are of places on the mesh: a search that chose another one would leave them without.
        forEachRule<MeshRule>(context, [&](std::int32_t line, const Row &row, const MeshRule &) {
            Row own = row;
            own.origin = RowOrigin::Gesture;
            if (row.origin == RowOrigin::Solver)
                edits.replace(line, std::move(own));
        });
    }
    for (const Row &row : moreRows)
        edits.append(row);
    edits.finish(proposal);
    return proposal;
}

} // namespace planloom
