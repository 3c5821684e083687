#include "engine/table/kinds/partition/dimension_size.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<DimensionSizeRule> RuleTraits<DimensionSizeRule>::parse(TextCursor &cursor, std::string_view)
{
    DimensionSizeRule rule;
    TRY(rule.name, cursor.word("a dimension with its size, as in dim batch = 64"));
    TRY_VOID(cursor.require('=', "and the size of the dimension"));
    TRY(rule.size, cursor.integer("the size of the dimension", 1, kMostExtent));
    return rule;
}

std::string RuleTraits<DimensionSizeRule>::print(const DimensionSizeRule &rule)
{
    return asWord(rule.name) + " = " + std::to_string(rule.size);
}

void RuleTraits<DimensionSizeRule>::write(const DimensionSizeRule &rule, nlohmann::json &json)
{
    json["name"] = rule.name;
    json["size"] = rule.size;
}

Result<DimensionSizeRule> RuleTraits<DimensionSizeRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "name", "size"}, where));
    DimensionSizeRule rule;
    TRY(rule.name, textAt(json, "name", where));
    TRY(rule.size, integerAt(json, "size", where, 1, kMostExtent));
    return rule;
}

} // namespace planloom
