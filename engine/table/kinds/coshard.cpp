#include "engine/table/kinds/coshard.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<CoshardRule> RuleTraits<CoshardRule>::parse(TextCursor &cursor, std::string_view)
{
    CoshardRule rule;
    TRY(rule.dimension, parseDimension(cursor));
    if (!cursor.takeWord("by"))
        return cursor.expected("'by' and a number of parts");
    TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
    rule.parts = static_cast<std::int32_t>(parts);
    rule.keep = cursor.takeWord("keep");
    return rule;
}

std::string RuleTraits<CoshardRule>::print(const CoshardRule &rule)
{
    return planloom::print(rule.dimension) + " by " + std::to_string(rule.parts) + (rule.keep ? " keep" : "");
}

void RuleTraits<CoshardRule>::write(const CoshardRule &rule, nlohmann::json &json)
{
    json["dimension"] = toJson(rule.dimension);
    json["parts"] = rule.parts;
    if (rule.keep)
        json["keep"] = true;
}

Result<CoshardRule> RuleTraits<CoshardRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "dimension", "parts", "keep"}, where));
    CoshardRule rule;
    TRY(rule.dimension, dimensionAt(json, where));
    TRY(rule.parts, countAt(json, "parts", where, 1));
    TRY(rule.keep, flagAt(json, "keep", where, false));
    return rule;
}

} // namespace planloom
