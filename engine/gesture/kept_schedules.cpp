#include "engine/gesture/kept_schedules.h"

#include "engine/base/words.h"
#include "engine/gesture/row_edits.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>

namespace planloom {

std::vector<KeptSchedule> keptSchedules(const TableDocument &document)
{
    std::vector<KeptSchedule> kept;
    const auto &lines = document.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i]->row)
            continue;
        const Row &row = *lines[i]->row;
        if (const auto *rule = std::get_if<ScheduleRule>(&row.rule); rule && rule->microBatches > 0)
            kept.push_back({static_cast<std::int32_t>(i), *rule, row.enabled, row.note});
    }
    std::stable_sort(kept.begin(), kept.end(), [](const KeptSchedule &a, const KeptSchedule &b) {
        return a.rule.microBatches < b.rule.microBatches;
    });
    return kept;
}

std::int32_t microBatchesOf(const GestureContext &context)
{
    const auto given = givenMicroBatches(context.document.table());
    return given ? *given : context.plan ? context.plan->microBatches : 1;
}

TableEdit withMicroBatches(const TableDocument &document, std::int32_t count)
{
    const auto &lines = document.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i]->row || !lines[i]->row->enabled)
            continue;
        Row row = *lines[i]->row;
        auto *rule = std::get_if<MicroBatchesRule>(&row.rule);
        if (!rule)
            continue;
        if (rule->count == count)
            return {};
        rule->count = count;
        if (rule->updateEvery > 0 && count % rule->updateEvery != 0)
            rule->updateEvery = 0;
        return replaceRow(document, static_cast<std::int32_t>(i), row);
    }
    return appendRows(document, {gestureRow(selectAll(), MicroBatchesRule{count})});
}

Proposal proposeKeptSchedule(const GestureContext &context, std::int32_t line)
{
    Proposal proposal;
    const auto kept = keptSchedules(context.document);
    const auto own = std::find_if(
        kept.begin(), kept.end(), [line](const KeptSchedule &each) { return each.line == line; });
    if (own == kept.end()) {
        proposal.refusal =
            refusalOf("no schedule is kept in " + rowWords(line), "row:" + std::to_string(line));
        return proposal;
    }
    const std::int32_t count = own->rule.microBatches;
    proposal.words =
        std::string("schedule ") + nameOf(own->rule.kind) + " kept for " + counted(count, "micro-batch");
    std::vector<std::int32_t> others;
    for (const KeptSchedule &each : kept)
        if (each.rule.microBatches == count && each.enabled && each.line != line)
            others.push_back(each.line);
    if (!others.empty())
        proposal.edit = setEnabled(context.document, others, false);
    TableDocument changed = context.document;
    const auto add = [&](const TableEdit &edit) {
        if (!edit.empty() && changed.apply(edit))
            proposal.edit = joined(std::move(proposal.edit), edit);
    };
    if (const auto applied = changed.apply(proposal.edit); !applied)
        return withRefusal(std::move(proposal), applied.error());
    if (!own->enabled)
        add(setEnabled(changed, {line}, true));
    if (microBatchesOf(context) != count)
        add(withMicroBatches(changed, count));
    return proposal;
}

} // namespace planloom
