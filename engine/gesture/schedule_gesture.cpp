#include "engine/gesture/gesture.h"
#include "engine/gesture/row_edits.h"

namespace planloom {

Proposal proposeSchedule(const GestureContext &context, const ScheduleRule &rule, std::string words)
{
    Proposal proposal;
    proposal.words = words.empty() ? std::string("schedule ") + nameOf(rule.kind) : std::move(words);
    RowEdits edits(context);
    std::int32_t kept = -1;
    forEachRule<ScheduleRule>(context, [&](std::int32_t line, const Row &row, const ScheduleRule &old) {
        if (kept >= 0) {
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
    edits.finish(proposal);
    return proposal;
}

} // namespace planloom
