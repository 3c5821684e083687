#include "engine/table/kinds/partition/ring.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<RingRule> RuleTraits<RingRule>::parse(TextCursor &cursor, std::string_view)
{
    if (!cursor.takeWord("over"))
        return cursor.expected("'over' and a mesh axis");
    RingRule rule;
    TRY(rule.axis, cursor.word("the name of a mesh axis"));
    return rule;
}

std::string RuleTraits<RingRule>::print(const RingRule &rule)
{
    return "over " + asWord(rule.axis);
}

void RuleTraits<RingRule>::write(const RingRule &rule, nlohmann::json &json)
{
    json["axis"] = rule.axis;
}

Result<RingRule> RuleTraits<RingRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "axis"}, where));
    RingRule rule;
    TRY(rule.axis, textAt(json, "axis", where));
    if (rule.axis.empty())
        return wrong(where + "/axis", "expected the name of a mesh axis");
    return rule;
}

} // namespace planloom
