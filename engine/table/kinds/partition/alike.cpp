#include "engine/table/kinds/partition/alike.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<AlikeRule> RuleTraits<AlikeRule>::parse(TextCursor &cursor, std::string_view)
{
    if (!cursor.takeWord("as"))
        return cursor.expected("'as' and the second selector");
    TRY(Selector second, parseSelector(cursor));
    return AlikeRule{std::move(second)};
}

std::string RuleTraits<AlikeRule>::print(const AlikeRule &rule)
{
    return "as " + toString(rule.second);
}

void RuleTraits<AlikeRule>::write(const AlikeRule &rule, nlohmann::json &json)
{
    json["second"] = toString(rule.second);
}

Result<AlikeRule> RuleTraits<AlikeRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "second"}, where));
    TRY(Selector second, selectorAt(json, "second", where));
    return AlikeRule{std::move(second)};
}

} // namespace planloom
