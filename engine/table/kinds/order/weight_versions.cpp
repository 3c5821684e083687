#include "engine/table/kinds/order/weight_versions.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<WeightVersionsRule> RuleTraits<WeightVersionsRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(const auto count,
        cursor.integer("a number of versions, as weight-versions all : 2", 1, kMostWeightVersions));
    return WeightVersionsRule{static_cast<std::int32_t>(count)};
}

std::string RuleTraits<WeightVersionsRule>::print(const WeightVersionsRule &rule)
{
    return std::to_string(rule.count);
}

void RuleTraits<WeightVersionsRule>::write(const WeightVersionsRule &rule, nlohmann::json &json)
{
    json["count"] = rule.count;
}

Result<WeightVersionsRule> RuleTraits<WeightVersionsRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "count"}, where));
    WeightVersionsRule rule;
    TRY(rule.count, countAt(json, "count", where, 1));
    if (rule.count > kMostWeightVersions)
        return wrong(
            where + "/count", "expected at most " + std::to_string(kMostWeightVersions) + " versions");
    return rule;
}

} // namespace planloom
