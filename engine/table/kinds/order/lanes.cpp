#include "engine/table/kinds/order/lanes.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<LanesRule> RuleTraits<LanesRule>::parse(TextCursor &cursor, std::string_view)
{
    LanesRule rule;
    if (cursor.takeWord("over")) {
        TRY(rule.axis, cursor.word("the name of a mesh axis"));
        return rule;
    }
    TRY(const auto count,
        cursor.integer("a number of lanes, as lanes all : 2, or 'over' and a mesh axis", 2, kMostBlockLanes));
    rule.count = static_cast<std::int32_t>(count);
    return rule;
}

std::string RuleTraits<LanesRule>::print(const LanesRule &rule)
{
    return rule.axis.empty() ? std::to_string(rule.count) : "over " + asWord(rule.axis);
}

void RuleTraits<LanesRule>::write(const LanesRule &rule, nlohmann::json &json)
{
    if (rule.axis.empty())
        json["count"] = rule.count;
    else
        json["axis"] = rule.axis;
}

Result<LanesRule> RuleTraits<LanesRule>::read(const nlohmann::json &json, const std::string &where)
{
    LanesRule rule;
    if (json.contains("axis")) {
        TRY_VOID(requireMembers(json, {"type", "axis"}, where));
        TRY(rule.axis, textAt(json, "axis", where));
        if (rule.axis.empty())
            return wrong(where + "/axis", "expected the name of a mesh axis");
        return rule;
    }
    TRY_VOID(requireMembers(json, {"type", "count"}, where));
    TRY(rule.count, countAt(json, "count", where, 2));
    if (rule.count > kMostBlockLanes)
        return wrong(where + "/count", "expected at most " + std::to_string(kMostBlockLanes) + " lanes");
    return rule;
}

} // namespace planloom
