#include "engine/table/kinds/partition/parts.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<PartsRule> RuleTraits<PartsRule>::parse(TextCursor &cursor, std::string_view)
{
    PartsRule rule;
    const std::size_t begin = cursor.position();
    if (!cursor.takeWord("in") || !cursor.takeWord("all")) {
        cursor.rewind(begin); // an identifier may be called "in"
        TRY(rule.dimension, parseDimension(cursor));
    }
    TRY(rule.bound, parseCountBound(cursor));
    return rule;
}

std::string RuleTraits<PartsRule>::print(const PartsRule &rule)
{
    return (rule.dimension ? planloom::print(*rule.dimension) : std::string("in all")) + ' '
        + planloom::print(rule.bound);
}

void RuleTraits<PartsRule>::write(const PartsRule &rule, nlohmann::json &json)
{
    if (rule.dimension)
        json["dimension"] = toJson(*rule.dimension);
    planloom::write(rule.bound, json);
}

Result<PartsRule> RuleTraits<PartsRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "dimension", "at_most", "at_least", "one_of"}, where));
    PartsRule rule;
    if (json.contains("dimension")) {
        TRY(rule.dimension, dimensionAt(json, where));
    }
    TRY(rule.bound, countBoundAt(json, where));
    return rule;
}

} // namespace planloom
