#include "engine/table/kinds/schedule.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr ScheduleKind kAllSchedules[] = {
    ScheduleKind::Sequential, ScheduleKind::GPipe, ScheduleKind::OneFOneB};

} // namespace

const char *nameOf(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::Sequential:
        return "sequential";
    case ScheduleKind::GPipe:
        return "gpipe";
    case ScheduleKind::OneFOneB:
        return "1f1b";
    }
    return "";
}

Result<ScheduleRule> RuleTraits<ScheduleRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const ScheduleKind kind : kAllSchedules) {
        if (cursor.takeWord(nameOf(kind)))
            return ScheduleRule{kind};
    }
    return cursor.expected("gpipe, 1f1b or sequential");
}

std::string RuleTraits<ScheduleRule>::print(const ScheduleRule &rule)
{
    return nameOf(rule.kind);
}

void RuleTraits<ScheduleRule>::write(const ScheduleRule &rule, nlohmann::json &json)
{
    json["schedule"] = nameOf(rule.kind);
}

Result<ScheduleRule> RuleTraits<ScheduleRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "schedule"}, where));
    TRY(const std::string name, textAt(json, "schedule", where));
    for (const ScheduleKind kind : kAllSchedules) {
        if (name == nameOf(kind))
            return ScheduleRule{kind};
    }
    return wrong(where + "/schedule", "expected gpipe, 1f1b or sequential");
}

} // namespace planloom
