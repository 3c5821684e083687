#include "engine/table/kinds/zero1.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<OptimizerShardingRule> RuleTraits<OptimizerShardingRule>::parse(TextCursor &cursor, std::string_view)
{
    OptimizerShardingRule rule;
    if (cursor.takeWord("over")) {
        TRY(rule.axis, cursor.word("the name of a mesh axis"));
    }
    if (cursor.takeWord("by")) {
        TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
        rule.parts = static_cast<std::int32_t>(parts);
    }
    return rule;
}

std::string RuleTraits<OptimizerShardingRule>::print(const OptimizerShardingRule &rule)
{
    std::string text;
    if (!rule.axis.empty())
        text += "over " + asWord(rule.axis);
    if (rule.parts > 0)
        text += (text.empty() ? "by " : " by ") + std::to_string(rule.parts);
    return text;
}

void RuleTraits<OptimizerShardingRule>::write(const OptimizerShardingRule &rule, nlohmann::json &json)
{
    if (!rule.axis.empty())
        json["axis"] = rule.axis;
    if (rule.parts > 0)
        json["parts"] = rule.parts;
}

Result<OptimizerShardingRule> RuleTraits<OptimizerShardingRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "axis", "parts"}, where));
    OptimizerShardingRule rule;
    TRY(rule.axis, textAt(json, "axis", where, ""));
    TRY(rule.parts, countAt(json, "parts", where, 1, 0));
    return rule;
}

} // namespace planloom
