#include "engine/table/kinds/order/unroll.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<UnrollRule> RuleTraits<UnrollRule>::parse(TextCursor &cursor, std::string_view)
{
    UnrollRule rule;
    TRY(rule.name, cursor.word("a recurrence, or all, as in unroll all"));
    return rule;
}

std::string RuleTraits<UnrollRule>::print(const UnrollRule &rule)
{
    return asWord(rule.name);
}

void RuleTraits<UnrollRule>::write(const UnrollRule &rule, nlohmann::json &json)
{
    json["name"] = rule.name;
}

Result<UnrollRule> RuleTraits<UnrollRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "name"}, where));
    UnrollRule rule;
    TRY(rule.name, textAt(json, "name", where));
    return rule;
}

} // namespace planloom
