#include "engine/table/kinds/schedule.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

const char *nameOf(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::Sequential:
        return "sequential";
    case ScheduleKind::GPipe:
        return "gpipe";
    case ScheduleKind::OneFOneB:
        return "1f1b";
    case ScheduleKind::Interleaved:
        return "interleaved";
    case ScheduleKind::CombinedOneFOneB:
        return "combined-1f1b";
    case ScheduleKind::ZeroBubbleH1:
        return "zb-h1";
    case ScheduleKind::Chimera:
        return "chimera";
    case ScheduleKind::Eager1F1B:
        return "eager-1f1b";
    case ScheduleKind::BreadthFirst:
        return "breadth-first";
    case ScheduleKind::OneFOneBPlus:
        return "1f1b-plus";
    case ScheduleKind::Recycling:
        return "3f1b";
    case ScheduleKind::Hanayo:
        return "hanayo";
    case ScheduleKind::ZeroBubbleH2:
        return "zb-h2";
    case ScheduleKind::ZeroBubbleV:
        return "zb-v";
    case ScheduleKind::VHalf:
        return "v-half";
    case ScheduleKind::VMin:
        return "v-min";
    case ScheduleKind::DualPipe:
        return "dualpipe";
    case ScheduleKind::DualPipeV:
        return "dualpipev";
    }
    return "";
}

bool splitsBackward(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::ZeroBubbleH1:
    case ScheduleKind::ZeroBubbleH2:
    case ScheduleKind::ZeroBubbleV:
    case ScheduleKind::VHalf:
    case ScheduleKind::VMin:
    case ScheduleKind::DualPipe:
    case ScheduleKind::DualPipeV:
        return true;
    default:
        return false;
    }
}

std::optional<ScheduleKind> scheduleNamed(std::string_view name)
{
    for (const ScheduleKind kind : kAllSchedules)
        if (name == nameOf(kind))
            return kind;
    return std::nullopt;
}

std::string scheduleNames()
{
    std::string names;
    for (std::size_t i = 0; i < kAllSchedules.size(); ++i)
        names += (i == 0                                ? ""
                         : i + 1 < kAllSchedules.size() ? ", "
                                                        : " or ")
            + std::string(nameOf(kAllSchedules[i]));
    return names;
}

Result<ScheduleRule> RuleTraits<ScheduleRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const ScheduleKind kind : kAllSchedules) {
        if (cursor.takeWord(nameOf(kind)))
            return ScheduleRule{kind};
    }
    return cursor.expected(scheduleNames());
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
    if (const auto kind = scheduleNamed(name))
        return ScheduleRule{*kind};
    return wrong(where + "/schedule", "expected " + scheduleNames());
}

} // namespace planloom
