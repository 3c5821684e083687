#include "engine/table/kinds/partition/spread.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr std::array kAllSpreads{SpreadBy::Time, SpreadBy::Memory, SpreadBy::Count};

} // namespace

const char *nameOf(SpreadBy by)
{
    constexpr std::array kNames{"time", "memory", "count"};
    return kNames[static_cast<std::size_t>(by)];
}

Result<SpreadRule> RuleTraits<SpreadRule>::parse(TextCursor &cursor, std::string_view)
{
    SpreadRule rule;
    if (!cursor.takeWord("over"))
        return cursor.expected("'over' and a mesh axis");
    TRY(rule.axis, cursor.word("the name of a mesh axis"));
    if (!cursor.takeWord("by"))
        return rule;
    for (const SpreadBy by : kAllSpreads)
        if (cursor.takeWord(nameOf(by))) {
            rule.by = by;
            return rule;
        }
    return cursor.expected("time, memory or count");
}

std::string RuleTraits<SpreadRule>::print(const SpreadRule &rule)
{
    return "over " + asWord(rule.axis)
        + (rule.by == SpreadBy::Time ? std::string{} : std::string(" by ") + nameOf(rule.by));
}

void RuleTraits<SpreadRule>::write(const SpreadRule &rule, nlohmann::json &json)
{
    json["axis"] = rule.axis;
    json["by"] = nameOf(rule.by);
}

Result<SpreadRule> RuleTraits<SpreadRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "axis", "by"}, where));
    SpreadRule rule;
    TRY(rule.axis, textAt(json, "axis", where));
    TRY(const std::string name, textAt(json, "by", where, "time"));
    for (const SpreadBy by : kAllSpreads)
        if (name == nameOf(by)) {
            rule.by = by;
            return rule;
        }
    return wrong(where + "/by", "expected time, memory or count");
}

} // namespace planloom
